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
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from moral_entropy.errors import MoralEntropyError, UsageError

TAB = "    "
_IN_SETTINGS: ContextVar[frozenset[str] | None] = ContextVar("_IN_SETTINGS", default=None)
"""Options that stand in a settings file, while those of a command line are read; None where Python is spoken."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One option of a stage, as it was declared.

    Parameters
    ----------
    name
        Name of the field and of the keyword.
    kind
        Its type.
    default
        Its default.
    help
        What it does, in a sentence or two.
    flag
        Its name on the command line; empty where it has none.
    metavar
        What the value is called in `--help`; empty where it follows from the type.
    panel
        Heading of the group of flags it belongs to.
    everyday
        Whether `--help` shows it; `--help-all` shows every option.
    least
        Smallest value allowed.
    rare
        Whether it has no flag of its own: `--set NAME=VALUE` sets it on the command line.
    """

    name: str
    kind: Any
    default: Any
    help: str
    flag: str
    metavar: str
    panel: str
    everyday: bool
    least: float | None
    rare: bool = False

    @property
    def keyword(self) -> str:
        """Its name among the options of a whole run: that of its flag."""
        return self.flag.removeprefix("--").replace("-", "_") or self.name

    @property
    def shown_default(self) -> str:
        """The default as help texts show it; empty where there is none."""
        if self.kind is bool:
            return "yes" if self.default else ""
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        return "" if self.default is None else str(self.default)


def option(
    default: Any,
    help: str,
    *,
    flag: str | None = None,
    metavar: str = "",
    panel: str = "",
    everyday: bool = False,
    least: float | None = None,
    rare: bool = False,
) -> Any:
    """Declare an option as a field of a `StageOptions` class; `Option` explains the arguments."""
    about = {"help": help, "flag": flag, "metavar": metavar, "panel": panel, "everyday": everyday, "least": least}
    return field(default=default, metadata={"option": about | {"rare": rare}})


@dataclass(frozen=True)
class StageOptions:
    """Base of the options of every stage: converts what was given to the types of the fields, and checks it."""

    error: ClassVar[type[MoralEntropyError]] = UsageError
    """What is raised when a value is impossible."""

    def __post_init__(self) -> None:
        """Convert every value to the type of its field."""
        for choice in options_in(type(self)):
            value = self.converted(choice, getattr(self, choice.name))
            object.__setattr__(self, choice.name, value)

    def converted(self, choice: Option, value: Any) -> Any:
        """Convert a value to the type of its option, or say what is wrong with it."""
        if value is None and choice.default is not None:
            return choice.default
        try:
            value = convert(value, choice.kind)
        except ValueError:
            msg = f"{self.called(choice.name)} is {value!r}; {how_to_write(choice.kind)}."
            raise self.error(msg) from None
        if choice.least is not None and value is not None and not value >= choice.least:
            msg = f"{self.called(choice.name)} is {value:g}; it is at least {choice.least:g}."
            raise self.error(msg)
        return value

    def called(self, name: str, value: Any = None) -> str:
        """Return what an error calls an option, with a value of it: as a keyword, or as a flag (`naming_flags`).

        Examples
        --------
        >>> @dataclass(frozen=True)
        ... class Fit(StageOptions):
        ...     max_passes: int = option(9, "How many passes.")
        >>> Fit().called("max_passes", 5)
        'max_passes=5'
        >>> with naming_flags():
        ...     Fit().called("max_passes", 5)
        '--max-passes 5'
        """
        [about] = [column.metadata["option"] for column in fields(self) if column.name == name]
        flag, in_settings = _flag(name, about["flag"]), _IN_SETTINGS.get()
        if in_settings is None or name in in_settings or not flag:
            return name if value is None else f"{name}={value!r}"
        if about["rare"]:
            return f"--set {flag.removeprefix('--')}" + ("" if value is None else f"={value}")
        return flag if value in (None, True) else f"{flag} {value}"

    def changed(self, changes: Mapping[str, Any], function: str = "") -> Self:
        """Return the same options with some of them changed, those of nested stages too.

        A name that is none of them is a TypeError. Options of nested stages go by the name of their flag.
        """
        places = {keyword: (section, choice.name) for section, keyword, choice in keywords(type(self))}
        top: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            if name not in places:
                msg = f"{function or type(self).__name__}() has no option {name!r}.{did_you_mean(name, places)}"
                raise TypeError(msg)
            section, field_name = places[name]
            (nested.setdefault(section, {}) if section else top)[field_name] = value
        return replace(
            self, **top, **{section: getattr(self, section).changed(values) for section, values in nested.items()}
        )


@contextmanager
def naming_flags(in_settings: Iterable[str] = ()) -> Iterator[None]:
    """Call options by their flags in errors that are raised meanwhile, but for those that a settings file has."""
    before = _IN_SETTINGS.set(frozenset(in_settings))
    try:
        yield
    finally:
        _IN_SETTINGS.reset(before)


def options_in(stage: type[StageOptions]) -> tuple[Option, ...]:
    """Return the options that a class declares, in order; those of nested classes are in `sections`."""
    kinds = get_type_hints(stage)
    return tuple(
        Option(choice.name, kinds[choice.name], choice.default, **{**about, "flag": _flag(choice.name, about["flag"])})
        for choice in fields(stage)
        if (about := choice.metadata.get("option"))
    )


def sections(stage: type[StageOptions]) -> dict[str, type[StageOptions]]:
    """Return the fields of a class that hold the options of another stage, by name."""
    kinds = get_type_hints(stage)
    types = {choice.name: kinds[choice.name] for choice in fields(stage)}
    return {name: kind for name, kind in types.items() if isinstance(kind, type) and issubclass(kind, StageOptions)}


def keywords(stage: type[StageOptions]) -> list[tuple[str, str, Option]]:
    """List the options of a class and of the stages nested in it: section (empty for its own), keyword, option."""
    top = [("", choice.name, choice) for choice in options_in(stage)]
    nested = [
        (section, choice.keyword, choice) for section, kind in sections(stage).items() for choice in options_in(kind)
    ]
    return nested + top


def _flag(name: str, flag: str | None) -> str:
    return f"--{name.replace('_', '-')}" if flag is None else flag


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a sentence that names the nearest of the known names, empty where none is near.

    Examples
    --------
    >>> did_you_mean("drwas", ["draws", "seed"])
    " Did you mean 'draws'?"
    """
    near = get_close_matches(name, choices, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


# --- Types: what was given → the type of the field ---------------------------------------------------------------


def convert(value: Any, kind: Any, *, typed: bool = False) -> Any:
    """Convert a value to a type of an option; a ValueError where it cannot be.

    Parameters
    ----------
    value
        What was given.
    kind
        The type: a number, text, a Literal, a tuple of these, or a union.
    typed
        Whether a text is what somebody typed, so that "80,20" is two numbers.

    Examples
    --------
    >>> convert("80,20", tuple[float, ...], typed=True), convert(["care"], tuple[str, ...]), convert("3", int | str)
    ((80.0, 20.0), ('care',), '3')
    """
    if get_origin(kind) in (Union, UnionType):
        return _convert_to_one_of(value, get_args(kind), typed=typed)
    if get_origin(kind) is Literal:
        return _checked(value, value in get_args(kind))
    if get_origin(kind) is tuple:
        return _convert_to_tuple(value, get_args(kind), typed=typed)
    if get_origin(kind) in (Mapping, dict):
        return _checked(value, isinstance(value, Mapping))
    return _convert_to_scalar(value, kind, typed=typed)


def _convert_to_one_of(value: Any, kinds: Sequence[Any], *, typed: bool) -> Any:
    for kind in kinds:
        try:
            return convert(value, kind, typed=typed)
        except ValueError:
            continue
    raise ValueError(value)


def _convert_to_tuple(value: Any, kinds: tuple[Any, ...], *, typed: bool) -> tuple[Any, ...]:
    if isinstance(value, str):
        # Nothing typed is a list without names.
        value = ([part.strip() for part in value.split(",")] if value.strip() else []) if typed else [value]
        _checked(value, all(value))
    _checked(value, isinstance(value, Iterable) and not isinstance(value, Mapping))
    values = tuple(value)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(values)
    _checked(values, len(values) == len(kinds))
    return tuple(convert(choice, kind, typed=typed) for choice, kind in zip(values, kinds, strict=True))


def _convert_to_scalar(value: Any, kind: Any, *, typed: bool) -> Any:
    if kind is NoneType:
        return _checked(value, value is None)
    if kind in (Any, object):
        return value
    if kind is bool:
        return _checked(value, isinstance(value, bool))
    if kind is int:
        return int(value) if typed and isinstance(value, str) else _as_index(value)
    if kind is float:
        return float(_checked(value, isinstance(value, Real) or (typed and isinstance(value, str))))
    # Names of columns and labels may be numbers in a dataframe.
    return str(_checked(value, isinstance(value, str | Path | Real)))


def _as_index(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(value) from None


def _checked(value: Any, is_right: bool) -> Any:
    if not is_right:
        raise ValueError(value)
    return value


def how_to_write(kind: Any) -> str:
    """Say how a value of a type is written.

    Examples
    --------
    >>> how_to_write(Literal["off", "gold"] | float)
    'choose one of off, gold, or write a number'
    """
    if get_origin(kind) in (Union, UnionType):
        return ", or ".join(dict.fromkeys(how_to_write(choice) for choice in get_args(kind) if choice is not NoneType))
    if get_origin(kind) is Literal:
        return f"choose one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        of, *lengths = get_args(kind)
        if of is not float:
            return "write names separated by single commas, as care,fairness"
        return "write numbers separated by commas, as 80,20" if lengths == [...] else "write two numbers, as 1.8,1.2"
    return {int: "write a whole number", float: "write a number", bool: "write true or false"}.get(kind, "write a name")


def metavar_of(choice: Option) -> str:
    """Return what the value of an option is called in help texts: its choices, "N", "X", "A,B,…".

    Examples
    --------
    >>> metavar_of(Option("seed", int, 0, "Seed.", "--seed", "", "", False, None))
    'N'
    """
    return choice.metavar or "|".join(dict.fromkeys(_metavars(choice.kind)))


def _metavars(kind: Any) -> list[str]:
    if get_origin(kind) in (Union, UnionType):
        return [name for choice in get_args(kind) if choice is not NoneType for name in _metavars(choice)]
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    if get_origin(kind) is tuple:
        return ["A,B,…" if get_args(kind)[0] is not float else "X,Y,…" if get_args(kind)[1] is ... else "X,Y"]
    return [{int: "N", float: "X", bool: ""}.get(kind, "NAME")]


# --- Keywords: options as arguments of a public function ----------------------------------------------------------


def lists_options(stage: type[StageOptions]) -> Callable[[Function], Function]:
    """Show the options of a stage in the signature and the docstring of a function that takes them as `**changes`.

    The function itself stays as it is. The paragraph on `**changes` in its docstring becomes one per option.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Sizes(StageOptions):
    ...     items: int = option(9, "How many items.")
    >>> @lists_options(Sizes)
    ... def make(options: Sizes | None = None, **changes: Any) -> int:
    ...     return (options or Sizes()).changed(changes, "make").items
    >>> list(inspect.signature(make).parameters), make(items=3)
    (['options', 'items'], 3)
    """

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        plain = [choice for choice in signature.parameters.values() if choice.kind is not inspect.Parameter.VAR_KEYWORD]
        arguments = {choice.name for choice in plain}
        options = {keyword: choice for _, keyword, choice in keywords(stage) if keyword not in arguments}
        listed = [_parameter(keyword, choice) for keyword, choice in options.items()]
        function.__signature__ = signature.replace(parameters=[*plain, *listed])  # type: ignore[attr-defined]
        if function.__doc__:
            function.__doc__ = _with_parameters(function.__doc__, options)
        return function

    return show


def _parameter(keyword: str, choice: Option) -> inspect.Parameter:
    return inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY, default=choice.default, annotation=choice.kind)


def _with_parameters(text: str, options: Mapping[str, Option]) -> str:
    """Replace the paragraph on `**changes` of a docstring by the help texts."""
    paragraphs = "".join(
        f"{keyword}\n{fill(choice.help, 110, initial_indent=TAB, subsequent_indent=TAB, break_on_hyphens=False)}\n"
        for keyword, choice in options.items()
    )
    return re.sub(r"^\*\*changes\n(    .*\n)+", lambda _: paragraphs, inspect.cleandoc(text) + "\n", flags=re.MULTILINE)


# --- Plain values: options as JSON and TOML have them -------------------------------------------------------------


def as_plain(options: StageOptions) -> dict[str, Any]:
    """Return options as values that JSON has; those of other stages as objects within it.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Names(StageOptions):
    ...     names: tuple[str, ...] = option((), "Some names.")
    >>> as_plain(Names(names=("care", "harm")))
    {'names': ['care', 'harm']}
    """
    stage = type(options)
    nested = {name: as_plain(getattr(options, name)) for name in sections(stage)}
    return nested | {choice.name: _plain(getattr(options, choice.name)) for choice in options_in(stage)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(choice) for name, choice in value.items()}
    if isinstance(value, tuple):
        return [_plain(choice) for choice in value]
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
    choices, nested = {choice.name: choice for choice in options_in(stage)}, sections(stage)
    by_flag = {choice.keyword: choice.name for choice in choices.values() if choice.flag}
    values_by_name: dict[str, Any] = {}
    for typed_name, value in values.items():
        name = typed_name.replace("-", "_")
        name = name if name in choices else by_flag.get(name, name)
        if name in nested and isinstance(value, Mapping):
            values_by_name[name] = from_plain(nested[name], value, f"{where} [{name}]")
        elif name in choices:
            values_by_name[name] = _from_plain(value, choices[name], where)
        else:
            near = did_you_mean(typed_name, [*choices, *nested])
            names = ", ".join([*nested, *choices])
            msg = f"{where} has {typed_name!r}, which is no option there.{near} Options: {names}."
            raise UsageError(msg)
    return stage(**values_by_name)


def _from_plain(value: Any, choice: Option, where: str) -> Any:
    try:
        return convert(value, choice.kind, typed=True)
    except ValueError:
        msg = f"{where}: {choice.name} is {value!r}; {how_to_write(choice.kind)}."
        raise UsageError(msg) from None
