"""Options of a stage: dataclasses whose fields are declared once, with their help texts.

A field is declared with `option`. From the fields come the keywords of the public functions (`lists_options`), the
flags of the command line (`cli.flags`), `manifest.json` (`as_plain`), settings files (`from_plain`) and the tables of
the documentation. Knows no data, and loads nothing that takes time.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from keyword import iskeyword
from numbers import Real
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeVar, Union, get_args, get_origin, get_type_hints

from moral_entropy.errors import MoralEntropyError, UsageError

TAB = "    "
_FLAGS: ContextVar[bool] = ContextVar("_FLAGS", default=False)
"""Whether errors call options by their flags: while those of a command line are read."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One option of a stage, as it was declared.

    Parameters
    ----------
    name, kind, default
        Name of the field and of the keyword, its type and its default.
    help
        What it does, in a sentence or two.
    flag
        Its name on the command line; empty where it has none.
    short
        Its short name, such as -n.
    metavar
        What the value is called in `--help`; empty where it follows from the type.
    panel
        Heading of the group of flags it belongs to; by default that of its stage.
    least
        Smallest value allowed.
    everyday
        Whether `--help` shows it; `--help-all` shows every option.
    rare
        Whether it has no flag of its own: `--set NAME=VALUE` sets it on the command line.
    section
        The field of the options of a whole run that it belongs to; empty for their own.
    keyword
        Its name among the options of a whole run: that of its flag.
    share
        Whether it is a share: more than 0 and less than 1.
    """

    name: str
    kind: Any
    default: Any
    help: str
    flag: str
    metavar: str = ""
    short: str = ""
    panel: str = ""
    least: float | None = None
    everyday: bool = False
    rare: bool = False
    section: str = ""
    keyword: str = ""
    share: bool = False

    @property
    def help_text(self) -> str:
        """What it does, and the default where there is one."""
        by_default = ",".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        if self.kind is bool:
            by_default = "yes" if self.default else ""
        return self.help if by_default in (None, "") else f"{self.help} Default: {by_default}."

    def typed(self, value: Any = None) -> str:
        """Return how it is typed on the command line, with a value of it."""
        if self.rare:
            return f"--set {self.flag.removeprefix('--')}" + ("" if value is None else f"={value}")
        return self.flag if value in (None, True) else f"{self.flag} {value}"


def option(help: str, default: Any = None, **about: Any) -> Any:
    """Declare an option as a field of a `StageOptions` class; `Option` explains the arguments."""
    return field(default=default, metadata={"option": {"help": help, **about}})


@dataclass(frozen=True)
class StageOptions:
    """Base of the options of every stage: converts what was given to the types of the fields, and checks it."""

    error: ClassVar[type[MoralEntropyError]] = UsageError
    """What is raised when a value is impossible."""

    panel: ClassVar[str] = ""
    """Heading of its flags."""

    everyday: ClassVar[tuple[str, ...]] = ()
    rare: ClassVar[tuple[str, ...]] = ()
    """Fields that `--help` shows, and those without a flag of their own: see `Option`."""

    def __post_init__(self) -> None:
        """Convert every value to the type of its field, and refuse what contradicts itself."""
        for choice in options_in(type(self)):
            value = getattr(self, choice.name)
            try:
                value = choice.default if value is None else convert(value, choice.kind)
            except ValueError:
                msg = f"{self.called(choice.name)} is {value!r}; {how_to_write(choice.kind)}."
                raise self.error(msg) from None
            if choice.least is not None and value is not None and not value >= choice.least:
                msg = f"{self.called(choice.name)} is {value:g}; it is at least {choice.least:g}."
                raise self.error(msg)
            if choice.share and not 0.0 < value < 1.0:
                kind = f"it is a share between 0 and 1, such as {choice.default:g}"
                msg = f"{self.called(choice.name)} is {value:g}; {kind}."
                raise self.error(msg)
            object.__setattr__(self, choice.name, value)
        for problem in self.problems():
            raise self.error(problem)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with values that are right by themselves, and what to do about it."""
        yield from ()

    def called(self, name: str, value: Any = None) -> str:
        """Return what an error calls an option, with a value of it: as a keyword, or as a flag (`naming_flags`).

        Examples
        --------
        >>> @dataclass(frozen=True)
        ... class Fit(StageOptions):
        ...     max_passes: int = option("How many passes.", 9)
        >>> Fit().called("max_passes", 5)
        'max_passes=5'
        >>> with naming_flags():
        ...     Fit().called("max_passes", 5)
        '--max-passes 5'
        """
        [choice] = [choice for choice in options_in(type(self)) if choice.name == name]
        if _FLAGS.get() and choice.flag:
            return choice.typed(value)
        return name if value is None else f"{name}={value!r}"

    def changed(self, changes: Mapping[str, Any], function: str = "") -> Self:
        """Return the same options with some of them changed, those of nested stages too.

        A name that is none of them is a TypeError. Options of nested stages go by the name of their flag.
        """
        options, by_section = keywords(type(self)), dict[str, dict[str, Any]]({"": {}})
        for name, value in changes.items():
            if name not in options:
                msg = f"{function or type(self).__name__}() has no option {name!r}.{did_you_mean(name, options)}"
                raise TypeError(msg)
            by_section.setdefault(options[name].section, {})[options[name].name] = value
        top = by_section.pop("")
        return replace(self, **top, **{name: replace(getattr(self, name), **new) for name, new in by_section.items()})


@contextmanager
def naming_flags() -> Iterator[None]:
    """Call options by their flags in errors that are raised meanwhile."""
    before = _FLAGS.set(True)
    try:
        yield
    finally:
        _FLAGS.reset(before)


def options_in(stage: type[StageOptions]) -> tuple[Option, ...]:
    """Return the options that a class declares, in order; those of nested classes are in `sections`."""
    kinds, options = get_type_hints(stage), []
    for declared in fields(stage):
        if about := declared.metadata.get("option"):
            name = declared.name
            marks = {"everyday": name in stage.everyday, "rare": name in stage.rare}
            about = {"flag": f"--{name.replace('_', '-')}", "panel": stage.panel, **about, **marks}
            keyword = about["flag"].removeprefix("--").replace("-", "_")
            about["keyword"] = name if not keyword or iskeyword(keyword) else keyword
            options.append(Option(name, kinds[name], declared.default, **about))
    return tuple(options)


def sections(stage: type[StageOptions]) -> dict[str, Any]:
    """Return the classes of the options of other stages that a class holds, by name of the field."""
    return {stated.name: stated.default_factory for stated in fields(stage) if "option" not in stated.metadata}


def keywords(stage: type[StageOptions]) -> dict[str, Option]:
    """Return the options of a class and of the stages nested in it, which come first, by keyword."""
    nested = {choice.keyword: replace(choice, section=section)
              for section, kind in sections(stage).items() for choice in options_in(kind)}  # fmt: skip
    return nested | {choice.name: choice for choice in options_in(stage)}


RENAMED = {"layout": "format"}
"""Options of 0.2 that another one says; until version 0.4."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a sentence that names the nearest of the known names, empty where none is near.

    Examples
    --------
    >>> did_you_mean("drwas", ["draws", "seed"])
    " Did you mean 'draws'?"
    """
    near = get_close_matches(RENAMED.get(name, name), choices, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


# --- Types: what was given → the type of the field ---------------------------------------------------------------


NAMES = (str, Path, Real)
"""What may be a name: columns and labels may be numbers in a dataframe."""

SCALARS: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
    **{bool: (bool, bool), int: (SupportsIndex, operator.index), float: (Real, float)},
    **{str: (NAMES, str), Path: (NAMES, str), Mapping: (Mapping, dict)},
}
"""By type of an option, what may be given for it, and what makes the one of the other."""


def convert(value: Any, kind: Any, *, typed: bool = False) -> Any:
    """Convert a value to a type of an option; a ValueError where it cannot be.

    Parameters
    ----------
    value
        What was given.
    kind
        The type: a number, text, a Literal, a tuple of these, or a union; a Sequence for flags that are repeated.
    typed
        Whether a text is what somebody typed, so that "80,20" is two numbers.

    Examples
    --------
    >>> convert("80,20", tuple[float, ...], typed=True), convert(["care"], tuple[str, ...]), convert("3", int | str)
    ((80.0, 20.0), ('care',), '3')
    """
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for choice in kinds:
            with suppress(ValueError):
                return convert(value, choice, typed=typed)
    if origin in (tuple, Sequence):
        if isinstance(value, str):
            # Nothing typed is a list without names.
            value = [value] if not typed else [part.strip() for part in value.split(",")] if value.strip() else []
            if not all(value):
                raise ValueError(value)
        if not isinstance(value, Iterable) or isinstance(value, Mapping):
            raise ValueError(value)
        values = tuple(value)
        each = kinds[:1] * len(values) if origin is Sequence or kinds[-1] is Ellipsis else kinds
        return tuple(convert(choice, of, typed=typed) for choice, of in zip(values, each, strict=True))
    is_choice = origin is Literal and value in kinds
    if kind in (Any, object) or is_choice or (kind is NoneType and value is None):
        return value
    types, make = SCALARS.get(origin or kind, ((), str))
    if isinstance(value, types):
        return make(value)
    if typed and isinstance(value, str) and kind in (int, float):
        return kind(value)
    if typed and kind is bool and value in ("true", "false"):
        return value == "true"
    raise ValueError(value)


def how_to_write(kind: Any) -> str:
    """Say how a value of a type is written.

    Examples
    --------
    >>> how_to_write(Literal["off", "gold"] | float)
    'choose one of off, gold, or write a number'
    """
    return ", or ".join(dict.fromkeys(advice for _, advice in _ways_to_write(kind)))


def metavar_of(choice: Option) -> str:
    """Return what the value of an option is called in help texts: its choices, "N", "X", "A,B,…".

    Examples
    --------
    >>> metavar_of(Option("seed", int, 0, "Seed.", "--seed"))
    'N'
    """
    if Path in get_args(choice.kind):
        return choice.metavar or "FILE"
    return choice.metavar or "|".join(dict.fromkeys(metavar for metavar, _ in _ways_to_write(choice.kind)))


def _ways_to_write(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield what a value is called and how it is written, for each type that it may have."""
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for choice in kinds:
            yield from () if choice is NoneType else _ways_to_write(choice)
    elif origin is Literal:
        yield "|".join(kinds), f"choose one of {', '.join(kinds)}"
    elif origin is tuple and get_origin(kinds[0]) is Literal:
        yield "A,B,…", f"choose among {', '.join(get_args(kinds[0]))}, with commas between them"
    elif origin is tuple and kinds[0] is not float:
        yield "A,B,…", "write names separated by single commas, as care,fairness"
    elif origin is tuple:
        any_number = ("X,Y,…", "write numbers separated by commas, as 80,20")
        yield any_number if kinds[1] is ... else ("X,Y", "write two numbers, as 1.8,1.2")
    else:
        scalars = {
            int: ("N", "write a whole number"),
            float: ("X", "write a number"),
            bool: ("", "write true or false"),
        }
        yield scalars.get(kind, ("NAME", "write a name"))


# --- Keywords: options as arguments of a public function ----------------------------------------------------------


def lists_options(stage: type[StageOptions]) -> Callable[[Function], Function]:
    """Show the options of a stage in the signature and the docstring of a function that takes them as `**changes`.

    The function itself stays as it is. The paragraph on `**changes` in its docstring becomes one per option.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Sizes(StageOptions):
    ...     items: int = option("How many items.", 9)
    >>> @lists_options(Sizes)
    ... def make(options: Sizes | None = None, **changes: Any) -> int:
    ...     return (options or Sizes()).changed(changes, "make").items
    >>> list(inspect.signature(make).parameters), make(items=3)
    (['options', 'items'], 3)
    """

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        plain = [choice for choice in signature.parameters.values() if choice.kind is not inspect.Parameter.VAR_KEYWORD]
        options = {
            keyword: choice for keyword, choice in keywords(stage).items() if keyword not in signature.parameters
        }
        listed = [
            inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY, default=choice.default, annotation=choice.kind)
            for keyword, choice in options.items()
        ]
        function.__signature__ = signature.replace(parameters=[*plain, *listed])  # type: ignore[attr-defined]
        texts = "".join(
            f"{keyword}\n{fill(choice.help, 110, initial_indent=TAB, subsequent_indent=TAB, break_on_hyphens=False)}\n"
            for keyword, choice in options.items()
        )
        doc = inspect.cleandoc(function.__doc__ or "") + "\n"
        function.__doc__ = re.sub(r"^\*\*changes\n(    .*\n)+", lambda _: texts, doc, flags=re.MULTILINE)
        return function

    return show


# --- Plain values: options as JSON and TOML have them -------------------------------------------------------------


def as_plain(value: Any) -> Any:
    """Return options, or a value of one, as values that JSON has; those of other stages as objects within it.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Names(StageOptions):
    ...     names: tuple[str, ...] = option("Some names.", ())
    >>> as_plain(Names(names=("care", "harm")))
    {'names': ['care', 'harm']}
    """
    if isinstance(value, StageOptions):
        return {choice.name: as_plain(getattr(value, choice.name)) for choice in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_plain(choice) for name, choice in value.items()}
    if isinstance(value, tuple):
        return [as_plain(choice) for choice in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Rules of one's own have a name; of a dataframe its kind is enough.
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or f"a {type(value).__name__}")


Stage = TypeVar("Stage", bound=StageOptions)


def from_plain(stage: type[Stage], values: Mapping[str, Any], where: str) -> Stage:
    """Make options of plain values, as `as_plain` returns them and TOML files hold them.

    Parameters
    ----------
    stage
        The class of the options.
    values
        By name of the option, or of its flag; those of another stage in a mapping of their own.
    where
        What to call the source of the values in an error.
    """
    options, nested = options_in(stage), sections(stage)
    choices = {choice.keyword: choice for choice in options} | {choice.name: choice for choice in options}
    values_by_name: dict[str, Any] = {}
    for typed_name, value in values.items():
        name = typed_name.replace("-", "_")
        if name in nested and isinstance(value, Mapping):
            values_by_name[name] = from_plain(nested[name], value, f"{where} [{name}]")
        elif name in choices:
            choice = choices[name]
            try:
                values_by_name[choice.name] = convert(value, choice.kind, typed=True)
            except ValueError:
                msg = f"{where}: {choice.name} is {value!r}; {how_to_write(choice.kind)}."
                raise UsageError(msg) from None
        else:
            near = did_you_mean(typed_name, [*choices, *nested])
            names = ", ".join([*nested, *(choice.name for choice in options)])
            msg = f"{where} has {typed_name!r}, which is no option there.{near} Options: {names}."
            raise UsageError(msg)
    return stage(**values_by_name)
