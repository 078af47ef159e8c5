"""Files that appear whole or not at all.

Hands out a path beside the wanted one and renames it at the end; knows nothing of what is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moral_entropy.errors import VotesError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a path to write to, and rename it to `path` once the block ends well.

    When the block fails, what it wrote is removed and a file already at `path` stays as it was.

    Parameters
    ----------
    path
        Where the file shall be in the end; its folder must exist.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> with whole_file(target) as aside:
    ...     written = aside.write_text("item,annotator,label")
    ...     target.exists()
    False
    >>> target.exists(), aside.exists()
    (True, False)
    """
    path = Path(path)
    if not path.parent.is_dir():
        msg = f"cannot write {path}: there is no folder {path.parent}. Make it first, or write elsewhere."
        raise VotesError(msg)
    if path.is_dir():
        msg = f"cannot write {path}: it is a folder. Name a file in it, such as {path / 'votes.parquet'}."
        raise VotesError(msg)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        aside.replace(path)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}. Write elsewhere."
        raise VotesError(msg) from error
    finally:
        aside.unlink(missing_ok=True)
