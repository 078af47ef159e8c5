"""The manifest: what went into a run and how it went, as one JSON file.

Takes plain values, writes them in a fixed order, and reads them back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import MANIFEST
from moral_entropy.runs.tables import checked_folder


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts about a run; figures that are not finite become null, since JSON has no others."""
    text = json.dumps(_plain(facts), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a run folder back.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     write_manifest(Path(run), {"seed": 0, "gradient_norm": float("nan")})
    ...     read_manifest(run)
    {'seed': 0, 'gradient_norm': None}
    """
    file = checked_folder(path) / MANIFEST
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        msg = f"{file} cannot be read: {error}. Run the audit again."
        raise RunFolderError(msg) from error
    if not isinstance(facts, dict):
        msg = f"{file} holds no manifest but a JSON {type(facts).__name__}. Run the audit again."
        raise RunFolderError(msg)
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
