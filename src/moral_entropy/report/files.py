"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moral_entropy.errors import UsageError


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a file to write to that becomes `target` when the block ends well, and vanishes when it does not."""
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}-{secrets.token_hex(3)}")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def replace_text(target: Path, text: str) -> None:
    """Write a text file whole or not at all; line ends stay as they are."""
    with replacing(target) as partial:
        partial.write_bytes(text.encode())


def check_free(target: Path, *, force: bool) -> None:
    """Refuse to write over something unless told to."""
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty and not force:
        msg = f"{target} exists. Choose another name with -o, or replace it with --force."
        raise UsageError(msg)
