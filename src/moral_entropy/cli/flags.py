"""Flags of a command, made from the options that its function takes.

A command is a function. Where a parameter is annotated with the options of a stage (`options: AuditOptions`), the
command line shows one flag per option, with its help text, and `with_flags` puts the options together again.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from moral_entropy.cli.settings import read_settings
from moral_entropy.errors import MoralEntropyError, UsageError
from moral_entropy.options import Option, StageOptions, convert, from_plain, keywords, metavar_of, naming_flags, wanted

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")]
SettingsFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Options from a TOML file, or from the manifest.json of an earlier run."),
]


def command_line(context: typer.Context) -> str:
    """Return what the user typed, as the manifest keeps it."""
    return shlex.join(["moral-entropy", *(context.obj or [])])


def refuse_existing(out: Path, *, force: bool) -> None:
    """Refuse to write over a file, unless `--force` allows it."""
    if out.exists() and not force:
        msg = f"{out} exists. Choose another file with -o, or replace it with --force."
        raise UsageError(msg)


def names(flag: str, given: str | None) -> tuple[str, ...]:
    """Read names separated by commas.

    Examples
    --------
    >>> names("--annotators", "ann, bob")
    ('ann', 'bob')
    """
    return () if given is None else tuple(read_flag(flag, given, tuple[str, ...]))


def read_flag(flag: str, text: str, kind: Any) -> Any:
    """Convert what was typed after a flag to its type, or say how to write it."""
    try:
        return convert(text, kind, typed=True)
    except ValueError:
        msg = f"{flag} is {text!r}; {wanted(kind)}."
        raise UsageError(msg) from None


@dataclass(frozen=True)
class Flag:
    """An option as a parameter of a command.

    Parameters
    ----------
    option
        What the flag stands for.
    section
        Field that holds the stage of the option, among those of a whole run; empty where the option is in no stage.
    hidden
        Whether only `--help-all` shows it.
    undone
        Whether a flag that is on or off has an opposite, which a settings file makes necessary.
    """

    option: Option
    section: str = ""
    hidden: bool = False
    undone: bool = False

    @property
    def name(self) -> str:
        """Name of the parameter."""
        return self.option.flag.removeprefix("--").replace("-", "_")

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Return the parameters that typer shows as flags: one, or two for what is either on or off."""
        one = self.option
        about: dict[str, Any] = {"panel": one.panel, "hidden": self.hidden}
        default = f" Default: {one.shown_default}." if one.shown_default else ""
        if one.kind is bool:
            yield _parameter(self.name, bool, False, one.flag, help=one.help + default, **about)
            if self.undone:
                flag, help = f"--no-{one.flag.removeprefix('--')}", f"The opposite of {one.flag}."
                yield _parameter(f"no_{self.name}", bool, False, flag, help=help, **about)
        else:
            metavar, kind = metavar_of(one), cast("Any", str | None)
            yield _parameter(self.name, kind, None, one.flag, help=one.help + default, metavar=metavar, **about)

    def take(self, given: dict[str, Any]) -> Any:
        """Take what was typed for this flag out of what was given; None where nothing was."""
        if self.option.kind is bool:
            yes, no = given.pop(self.name), given.pop(f"no_{self.name}", False)
            return yes or (False if no else None)
        text = given.pop(self.name)
        return None if text is None else read_flag(self.option.flag, text, self.option.kind)


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command that takes options into one that takes their flags; add `--debug`, which `main` looks for.

    Examples
    --------
    >>> from moral_entropy.options import option
    >>> @dataclass(frozen=True)
    ... class Sizes(StageOptions):
    ...     items: int = option(9, "How many items.")
    >>> def show(source: str, sizes: Sizes) -> None:
    ...     print(source, sizes.items)
    >>> with_flags(show)(source="votes.csv", items="7", debug=False)
    votes.csv 7
    """
    hints = get_type_hints(command, include_extras=True)
    stages = {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, StageOptions)}
    flags = {name: flags_of(stage, undone="settings" in hints) for name, stage in stages.items()}

    @wraps(command)
    def flat(**given: Any) -> None:
        file = given.pop("settings", None)
        for name, stage in stages.items():
            given[name] = _options(stage, flags[name], given, file)
        command(**{name: value for name, value in given.items() if name in hints})

    parameters = _flat_parameters(command, hints, flags)
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in parameters}
    return flat


def flags_of(stage: type[StageOptions], *, undone: bool = False) -> list[Flag]:
    """Return the flags of a stage; of a whole run those of its stages first."""
    found = [(section, one) for section, _, one in keywords(stage) if one.flag]
    some_are_everyday = any(one.everyday for _, one in found)
    return [Flag(one, section, some_are_everyday and not one.everyday, undone) for section, one in found]


def _options(stage: type[StageOptions], flags: list[Flag], given: dict[str, Any], file: str | None) -> StageOptions:
    """Make options of a settings file and of the flags, which decide where both say something."""
    settings = read_settings(file)
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
    written = {key for value in (settings, *settings.values()) if isinstance(value, Mapping) for key in value}
    for flag in flags:
        place = values.setdefault(flag.section, {}) if flag.section else values
        # A section that is no table is refused below.
        if (value := flag.take(given)) is not None and isinstance(place, dict):
            place[flag.option.name] = value
            written.discard(flag.option.name)
    try:
        with naming_flags(written):
            return from_plain(stage, values, file or "the command line")
    except MoralEntropyError as error:
        # Options that cannot be are misuse, whichever stage they belong to.
        raise UsageError(str(error)) from error


def _flat_parameters(
    command: Callable[..., None], hints: Mapping[str, Any], flags: Mapping[str, list[Flag]]
) -> list[inspect.Parameter]:
    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        if name in flags:
            parameters += [one for flag in flags[name] for one in flag.parameters()]
        else:
            parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))
    if any(flag.hidden for several in flags.values() for flag in several):
        about: dict[str, Any] = {"help": "Show every option, and exit.", "callback": _show_all, "is_eager": True}
        parameters.append(_parameter("help_all", bool, False, "--help-all", **about))
    if "debug" not in hints:
        parameters.append(inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, annotation=Debug, default=False))
    return parameters


def _parameter(name: str, kind: Any, default: Any, flag: str, *, panel: str = "", **about: Any) -> inspect.Parameter:
    shown = typer.Option(flag, show_default=False, rich_help_panel=panel or None, **about)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, shown], default=default)


def _show_all(context: typer.Context, asked: bool) -> None:
    if asked:
        for one in context.command.params:
            vars(one)["hidden"] = False
        typer.echo(context.get_help())
        raise typer.Exit
