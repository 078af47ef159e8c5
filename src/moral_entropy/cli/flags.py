"""Flags of a command, made from the options that its function takes.

A command is a function. Where a parameter is annotated with the options of a stage (`options: AuditOptions`), the
command line shows one flag per option, with its help text, and `with_flags` puts the options together again.
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
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


def read_flag(flag: str, text: str, kind: Any) -> Any:
    """Convert what was typed after a flag to its type, or say how to write it."""
    try:
        return convert(text, kind, typed=True)
    except ValueError:
        msg = f"{flag} is {text!r}; {how_to_write(kind)}."
        raise UsageError(msg) from None


def options_by_stage(command: Callable[..., None]) -> dict[str, dict[str, Option]]:
    """Return the options of a command by the parameter that takes those of a stage, and by keyword."""
    hints = get_type_hints(command)
    stages = {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, StageOptions)}
    return {name: keywords(stage) for name, stage in stages.items()}


def with_flags(command: Callable[..., None], line: Sequence[str] = ()) -> tuple[Callable[..., None], list[str]]:
    """Turn a command that takes options into one that takes their flags; rewrite flags of 0.2 on the line it reads.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from moral_entropy.option_fields import option
    >>> @dataclass(frozen=True)
    ... class Sizes(StageOptions):
    ...     rare = ("users",)
    ...     items: int = option("How many items.", 9)
    ...     users: int = option("How many users.", 3)
    >>> def show(source: str, sizes: Sizes) -> None:
    ...     print(source, sizes.items)
    >>> flat, line = with_flags(show, ["votes.csv", "--users", "2"])
    >>> flat(source="votes.csv", items="7")
    votes.csv 7
    >>> line
    ['votes.csv', '--set', 'users=2']
    """
    hints, stages = get_type_hints(command, include_extras=True), options_by_stage(command)
    options = {keyword: option for stage in stages.values() for keyword, option in stage.items()}
    rare = {option.flag: option for option in options.values() if option.rare}
    parameters = list(_flat_parameters(command, hints, stages, list(rare)))

    @wraps(command)
    def flat(**typed: Any) -> None:
        file, texts = typed.pop("settings", None), typed.pop("set_options", None)
        values = typed | (_set_values(list(options), texts) if texts else {})
        typed |= {name: _options(hints[name], stage, values, file) for name, stage in stages.items()}
        command(**{name: value for name, value in typed.items() if name in hints})

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    is_old = not rare.keys().isdisjoint(word.partition("=")[0] for word in line)
    return flat, _with_set(line, rare) if is_old else list(line)


def _flat_parameters(
    command: Callable[..., None], hints: Mapping[str, Any], stages: Mapping[str, Mapping[str, Option]],
    rare: Sequence[str]
) -> Iterator[inspect.Parameter]:  # fmt: skip
    """Yield the parameters of a command as typer shows them, options as flags."""
    shortened = any(option.everyday for options in stages.values() for option in options.values())
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in stages:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            continue
        for keyword, option in stages[name].items():
            if not option.flag or option.rare:
                continue
            kind: Any = list[str] | None if get_origin(option.kind) is Sequence else str | None
            flags = (option.flag, option.short) if option.short else (option.flag,)
            if option.kind is bool:
                # A switch that settings may turn on is paired with its opposite.
                kind, paired = bool | None, "settings" in hints
                flags = (f"{option.flag}/--no-{option.flag.removeprefix('--')}",) if paired else (option.flag,)
            metavar, hidden = None if option.kind is bool else metavar_of(option), shortened and not option.everyday
            about: dict[str, Any] = {"help": option.help_text, "metavar": metavar, "hidden": hidden}
            yield _parameter(keyword, kind, *flags, panel=option.panel, **about)
    if shortened:
        about = {"help": "Show every option, and exit.", "callback": _show_all, "is_eager": True}
        yield _parameter("help_all", bool, "--help-all", default=False, **about)
    if rare:
        names = [flag.removeprefix("--") for flag in rare]
        help = (
            f"Any option, also those without a flag: {', '.join(names)}. May be repeated. Example: --set {names[0]}=…"
        )
        yield _parameter("set_options", list[str] | None, "--set", help=help, metavar="NAME=VALUE", hidden=shortened)


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


def _options(
    stage: type[StageOptions], options: Mapping[str, Option], typed: Mapping[str, Any], file: str | None
) -> StageOptions:
    """Make options of a settings file and of the flags, which decide where both say something."""
    settings = read_settings(Path(file)) if file else {}
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
    for keyword, option in options.items():
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


def _set_values(options: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Read what was typed after `--set`: values by keyword."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        keyword = name.strip().replace("-", "_")
        if not equals or keyword not in options:
            problem = f"there is no option {name!r}.{did_you_mean(keyword, options)}" if equals else "write NAME=VALUE."
            msg = f"--set {text}: {problem}"
            raise UsageError(msg)
        values[keyword] = value
    return values


def _with_set(typed: Sequence[str], rare: Mapping[str, Option]) -> list[str]:
    """Write flags that `--set` has replaced as it wants them; until version 0.4."""
    words, line = list(typed), list[str]()
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
