"""Bundles of flags: dataclasses whose fields typer shows as options.

A command takes whole bundles (`votes: VoteFlags`) and `spread` lays their fields out for typer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command that takes bundles of flags into one that takes the flags themselves.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Flags:
    ...     seed: int = 0
    >>> @spread
    ... def show(source: str, flags: Flags) -> None:
    ...     print(source, flags.seed)
    >>> show(source="votes.csv", seed=7)
    votes.csv 7
    """
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    bundles: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(command)
    def flat(**given: Any) -> None:
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        command(**given)

    parameters = _flat_parameters(command, hints, bundles)
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _flat_parameters(
    command: Callable[..., None], hints: dict[str, Any], bundles: dict[str, Any]
) -> list[inspect.Parameter]:
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in bundles:
            parameters.append(_parameter(name, hints[name], parameter.default))
            continue
        kinds = get_type_hints(bundles[name], include_extras=True)
        parameters += [_parameter(field.name, kinds[field.name], field.default) for field in fields(bundles[name])]
    return parameters


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
