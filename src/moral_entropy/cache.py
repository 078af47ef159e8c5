"""The cache folder, for what can be made again: encoded texts.

Returns its path and touches no file. What is in it may be deleted at any time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE = "MORAL_ENTROPY_CACHE"
"""Environment variable that moves the folder."""


def cache_folder() -> Path:
    """Return the user's cache folder: `$MORAL_ENTROPY_CACHE`, else `moral-entropy` where the system keeps caches.

    That is `$XDG_CACHE_HOME` or `~/.cache`; on macOS `~/Library/Caches`, on Windows `%LOCALAPPDATA%`.

    Raises
    ------
    OSError
        The user has no home folder; callers then continue without a cache.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, {"MORAL_ENTROPY_CACHE": "fast-disk"}):
    ...     cache_folder().name
    'fast-disk'
    """
    if folder := os.environ.get(CACHE):
        return Path(folder)
    if home := os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else ""):
        return Path(home) / "moral-entropy"
    try:
        home_folder = Path.home()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return home_folder / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "moral-entropy"
