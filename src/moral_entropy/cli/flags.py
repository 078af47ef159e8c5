"""Flags of a command, made from the options that its function takes.

A command is a function. Where a parameter is annotated with the options of a stage (`options: AuditOptions`), the
command line shows one flag per option, with its help text, and `with_flags` puts the options together again.
"""

from __future__ import annotations

import inspect
import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from moral_entropy.errors import MoralEntropyError, UsageError
from moral_entropy.option_fields import (
    Option,
    StageOptions,
    convert,
    did_you_mean,
    from_plain,
    how_to_write,
    keywords,
    metavar_of,
    naming_flags,
)

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is already there.")]
SettingsFile = Annotated[str | None, typer.Option(metavar="FILE", help="Options from a TOML file or a manifest.json.")]


def command_line(context: typer.Context) -> str:
    """Return what the user typed, as the manifest keeps it."""
    return shlex.join(["moral-entropy", *(context.obj or [])])


def read_flag(flag: str, text: str, kind: Any) -> Any:
    """Convert what was typed after a flag to its type, or say how to write it."""
    try:
        return convert(text, kind, typed=True)
    except ValueError:
        msg = f"{flag} is {text!r}; {how_to_write(kind)}."
        raise UsageError(msg) from None


def stages_of(command: Callable[..., None]) -> dict[str, type[StageOptions]]:
    """Return the parameters of a command that are options of a stage."""
    hints = get_type_hints(command)
    return {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, StageOptions)}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command that takes options into one that takes their flags.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from moral_entropy.option_fields import option
    >>> @dataclass(frozen=True)
    ... class Sizes(StageOptions):
    ...     items: int = option("How many items.", 9)
    >>> def show(source: str, sizes: Sizes) -> None:
    ...     print(source, sizes.items)
    >>> with_flags(show)(source="votes.csv", items="7")
    votes.csv 7
    """
    hints, stages = get_type_hints(command, include_extras=True), stages_of(command)
    parameters = list(_flat_parameters(command, hints, stages))

    @wraps(command)
    def flat(**typed: Any) -> None:
        file, values = typed.pop("settings", None), _set_values(stages.values(), typed.pop("set_options", None) or ())
        for name, stage in stages.items():
            typed[name] = _options(stage, typed | values, file)
        command(**{name: value for name, value in typed.items() if name in hints})

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _flat_parameters(
    command: Callable[..., None], hints: Mapping[str, Any], stages: Mapping[str, type[StageOptions]]
) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command as typer shows them, options as flags."""
    options = {keyword: option for stage in stages.values() for keyword, option in keywords(stage).items()}
    shortened, rare = any(option.everyday for option in options.values()), rare_flags(command)
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in stages:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            continue
        for keyword, option in keywords(stages[name]).items():
            if option.flag and not option.rare:
                hidden = shortened and not option.everyday
                yield _flag_parameter(keyword, option, hidden=hidden, paired="settings" in hints)
    if shortened:
        about: dict[str, Any] = {"help": "Show every option, and exit.", "callback": _show_all, "is_eager": True}
        yield _parameter("help_all", bool, "--help-all", default=False, **about)
    if rare:
        names = [flag.removeprefix("--") for flag in rare]
        help = (
            f"Any option, also those without a flag: {', '.join(names)}. May be repeated. Example: --set {names[0]}=…"
        )
        yield _parameter("set_options", list[str] | None, "--set", help=help, metavar="NAME=VALUE", hidden=shortened)


def rare_flags(command: Callable[..., None]) -> dict[str, Option]:
    """Return the options of a command that `--set` alone sets, by the flag that they had in 0.2."""
    options = [option for stage in stages_of(command).values() for option in keywords(stage).values()]
    return {option.flag: option for option in options if option.rare}


def _flag_parameter(keyword: str, option: Option, *, hidden: bool, paired: bool) -> inspect.Parameter:
    """Return the parameter of an option; a switch that settings may turn on is paired with its opposite."""
    default = f" Default: {option.shown_default}." if option.shown_default else ""
    about: dict[str, Any] = {"panel": option.panel, "hidden": hidden, "help": option.help + default}
    if option.kind is bool:
        flag = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if paired else option.flag
        return _parameter(keyword, bool | None, flag, **about)
    kind = list[str] | None if get_origin(option.kind) is Sequence else str | None
    short = [option.short] if option.short else []
    return _parameter(keyword, kind, option.flag, *short, metavar=metavar_of(option), **about)


def _parameter(
    name: str, kind: Any, *flags: str, default: Any = None, panel: str = "", **about: Any
) -> inspect.Parameter:
    flag_option = typer.Option(*flags, show_default=False, rich_help_panel=panel or None, **about)
    by_keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, by_keyword, annotation=Annotated[kind, flag_option], default=default)


def _show_all(context: typer.Context, is_set: bool) -> None:
    if is_set:
        for parameter in context.command.params:
            vars(parameter)["hidden"] = False
        typer.echo(context.get_help())
        raise typer.Exit


def _options(stage: type[StageOptions], typed: Mapping[str, Any], file: str | None) -> StageOptions:
    """Make options of a settings file and of the flags, which decide where both say something."""
    settings = read_settings(Path(file)) if file else {}
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
    for keyword, option in keywords(stage).items():
        place = values.setdefault(option.section, {}) if option.section else values
        # A section that is no table is refused below.
        if typed.get(keyword) is not None and isinstance(place, dict):
            place[option.name] = read_flag(option.typed(), typed[keyword], option.kind)
    try:
        with naming_flags():
            return from_plain(stage, values, file or "the command line")
    except MoralEntropyError as error:
        # Options that cannot be are misuse, whichever stage they belong to.
        raise UsageError(str(error)) from error


def _set_values(stages: Iterable[type[StageOptions]], texts: Sequence[str]) -> dict[str, str]:
    """Read what was typed after `--set`: values by keyword."""
    options, values = [keyword for stage in stages for keyword in keywords(stage)], {}
    for text in texts:
        name, equals, value = text.partition("=")
        keyword = name.strip().replace("-", "_")
        if not equals or keyword not in options:
            problem = f"there is no option {name!r}.{did_you_mean(keyword, options)}" if equals else "write NAME=VALUE."
            msg = f"--set {text}: {problem}"
            raise UsageError(msg)
        values[keyword] = value
    return values


def with_old_flags(typed: Sequence[str], command: Callable[..., None]) -> list[str]:
    """Write flags that `--set` has replaced as it wants them; until version 0.4.

    Examples
    --------
    >>> from moral_entropy.options import FitOptions
    >>> def fit(options: FitOptions) -> None: ...
    >>> with_old_flags(["--threads", "1", "--draws", "0"], fit)
    ['--set', 'threads=1', '--draws', '0']
    """
    rare, words, line = rare_flags(command), list(typed), list[str]()
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if flag not in rare:
            line.append(flag + equals + value)
            continue
        if not equals:
            value = "true" if rare[flag].kind is bool else words.pop(0) if words else ""
        line += ["--set", f"{flag.removeprefix('--')}={value}"]
    return line


def read_settings(path: Path) -> Mapping[str, Any]:
    """Return the options that a settings file, or that of a run folder, names, by stage.

    Paths in it are meant as on the command line: from the folder one is in.
    """
    if path.is_dir():
        path /= "manifest.json"
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else {"options": tomllib.loads(text)}
    except OSError as error:
        msg = f"the settings cannot be read from {path}: {error.strerror}. Name a TOML file or a manifest.json."
        raise UsageError(msg) from error
    except ValueError as error:
        msg = f"{path} is neither TOML nor a manifest: {error}."
        raise UsageError(msg) from error
    options = values.get("options") if isinstance(values, dict) else None
    if not isinstance(options, dict):
        msg = f"{path} holds no options: an earlier version wrote it. Audit again, or write a TOML file."
        raise UsageError(msg)
    return options
