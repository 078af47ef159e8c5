"""Modules that SciPy loads and no command uses are loaded when they are used: a tenth of a second in every command.

SciPy goes through all of NumPy when it is imported, and so loads NumPy's interface to Fortran and its help for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

UNUSED = ("numpy.f2py", "numpy.testing")


class _Finder(MetaPathFinder):
    """Finds the unused modules, and has each of them loaded at the first use of something in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(fullname, path, target) if fullname in UNUSED else None
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def load_unused_later() -> None:
    """Have the unused modules loaded when they are used, in this process, and not when they are imported."""
    sys.meta_path.insert(0, _Finder())
