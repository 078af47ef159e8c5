"""A settings file → plain values: TOML, the manifest of an earlier run, or its run folder."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moral_entropy.errors import UsageError


def read_settings(file: str | None) -> Mapping[str, Any]:
    """Return the options that a settings file names, by stage; none where there is no file.

    Paths in it are meant as on the command line: from the folder one is in.
    """
    if file is None:
        return {}
    path = Path(file)
    if path.is_dir():
        path /= "manifest.json"
    try:
        text = path.read_text(encoding="utf-8")
        return _of_manifest(json.loads(text), path) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        msg = f"the settings cannot be read from {path}: {error.strerror}. Name a TOML file or a manifest.json."
        raise UsageError(msg) from error
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        msg = f"{path} is neither TOML nor a manifest: {error}."
        raise UsageError(msg) from error


def _of_manifest(manifest: Any, path: Path) -> Mapping[str, Any]:
    options = manifest.get("options") if isinstance(manifest, dict) else None
    if not isinstance(options, dict):
        msg = f"{path} holds no options: an earlier version wrote it. Audit again, or write a TOML file."
        raise UsageError(msg)
    return options
