"""The templates of the page, compiled once: what Jinja makes of them is kept in the cache folder.

Compiling takes longer than filling them. Where nothing can be kept they are compiled each time.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from moral_entropy.cache import cache_folder


def page_templates(folder: Path) -> Environment:
    """Return the templates of a folder; everything that is put into them is escaped, and nothing may be missing."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        bytecode_cache=_KeptTemplates.in_cache_folder(),
    )


class _KeptTemplates(FileSystemBytecodeCache):
    """Jinja's own cache, which knows a template that was edited; a problem with files costs a compilation."""

    @classmethod
    def in_cache_folder(cls) -> _KeptTemplates | None:
        """Create the folder of this version of Jinja; None where there can be none."""
        with suppress(OSError):
            folder = cache_folder() / f"templates-{version('jinja2')}"
            folder.mkdir(parents=True, exist_ok=True)
            return cls(str(folder))
        return None

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load what was compiled, if it can be read."""
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled, if the disk allows it."""
        with suppress(OSError):
            super().dump_bytecode(bucket)
