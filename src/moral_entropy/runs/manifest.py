"""The manifest: what went into a run and how it went, as one JSON file.

Takes plain values, writes them in a fixed order, and reads them back. The file carries two kinds of digests, by which
`verify` sees that something was changed: `files` has one for every file of the run folder that a command wrote, `seal`
is that of the manifest itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moral_entropy.errors import RunFolderError
from moral_entropy.files import write_text
from moral_entropy.runs.folder import MANIFEST
from moral_entropy.runs.tables import checked_folder

FILES, SEAL = "files", "seal"


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts about a run; figures that are not finite become null, since JSON has no others."""
    plain = plain_facts({name: value for name, value in facts.items() if name != SEAL})
    _write(folder, plain | {SEAL: seal_of(plain)})


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a run folder back, without its seal.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     write_manifest(Path(run), {"seed": 0, "gradient_norm": float("nan")})
    ...     read_manifest(run)
    {'seed': 0, 'gradient_norm': None}
    """
    return _read_sealed(path)[0]


def _read_sealed(path: str | Path) -> tuple[dict[str, Any], bool]:
    """Read the facts of a run folder, and whether their seal is unbroken."""
    file = checked_folder(path) / MANIFEST
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        seal = facts.pop(SEAL, None)
    except (ValueError, OSError) as error:
        msg = f"{file} cannot be read: {error}. Run the audit again."
        raise RunFolderError(msg) from error
    except (AttributeError, TypeError) as error:
        msg = f"{file} holds no manifest but a JSON {type(facts).__name__}. Run the audit again."
        raise RunFolderError(msg) from error
    return facts, seal == seal_of(facts)


def change_manifest(folder: Path, **changes: Any) -> dict[str, Any]:
    """Change facts in the manifest of a run folder and return all of them.

    A seal that was broken stays broken: no later command shall make good what somebody changed by hand.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     write_manifest(Path(run), {"seed": 0})
    ...     change_manifest(Path(run), seconds={"fit": 1.5})
    {'seed': 0, 'seconds': {'fit': 1.5}}
    """
    facts, whole = _read_sealed(folder)
    plain: dict[str, Any] = plain_facts({**facts, **changes})
    _write(folder, plain | {SEAL: seal_of(plain) if whole else "broken"})
    return plain


def note_files(folder: Path, names: Iterable[str]) -> None:
    """Note the digests of files that were just written into a run folder."""
    known = read_manifest(folder).get(FILES, {})
    change_manifest(folder, **{FILES: {**known, **{name: digest_of(folder / name) for name in names}}})


def changed_files(path: str | Path) -> list[str]:
    """Name the files of a run folder that are gone, or no longer as a command wrote them."""
    folder, (facts, whole) = Path(path), _read_sealed(path)
    files = facts[FILES].items() if isinstance(facts.get(FILES), dict) else ()
    gone = [name for name, digest in files if not (folder / name).exists() or digest_of(folder / name) != digest]
    return gone + [MANIFEST] * (not whole)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; of a folder of part files, that of their names and digests."""
    if path.is_dir():
        parts = "".join(f"{part.name} {digest_of(part)}\n" for part in sorted(path.iterdir()))
        return hashlib.sha256(parts.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal_of(facts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain facts, in their order.

    Examples
    --------
    >>> seal_of({"seed": 0}) == seal_of({"seed": 1})
    False
    """
    return hashlib.sha256(_text(facts).encode()).hexdigest()


def _write(folder: Path, plain: Mapping[str, Any]) -> None:
    write_text(folder / MANIFEST, _text(plain) + "\n")


def _text(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)


def plain_facts(value: Any) -> Any:
    """Return facts as JSON has them: lists, names, numbers that are finite."""
    if isinstance(value, Mapping):
        return {str(key): plain_facts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_facts(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return plain_facts(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
