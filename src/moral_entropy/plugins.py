"""Plugins: formats and rules that other packages offer, by entry points.

A package that has an entry point in one of the groups below is found by its name, and loaded only when somebody asks
for that name: what is merely installed runs no code and costs no time. See `docs/how-to/plugins.md`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from moral_entropy.errors import PluginError

FORMATS, RULES = "moral_entropy.formats", "moral_entropy.rules"
"""Groups of entry points: functions that read a file of votes, and consensus rules."""


def plugin_names(group: str) -> list[str]:
    """List the names that installed packages offer in a group, each once.

    Examples
    --------
    >>> plugin_names("moral_entropy.nothing")
    []
    """
    return sorted({entry.name for entry in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:
    """Load what a package offers under a name; None where no package does.

    Raises
    ------
    PluginError
        Several packages offer the name, or loading it fails: one sentence with the name of the package.
    """
    entries = list(entry_points(group=group, name=name))
    if not entries:
        return None
    if len(entries) > 1:
        packages = ", ".join(sorted(_package(entry) for entry in entries))
        msg = f"{len(entries)} packages offer {name!r} in {group}: {packages}. Uninstall all but one."
        raise PluginError(msg)
    try:
        return entries[0].load()
    except Exception as error:
        msg = f"the plugin {name!r} of {_package(entries[0])} cannot be loaded: {told(error)}. Update or uninstall it."
        raise PluginError(msg) from error


def failed(name: str, doing: str, error: Exception) -> PluginError:
    """Return the error of a plugin that failed at its work, in one sentence."""
    return PluginError(f"the plugin {name!r} failed {doing}: {told(error)}. Tell its authors.")


def told(error: Exception) -> str:
    """Return the kind of an error and its first line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}".rstrip(": .")


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "a package without a name"
