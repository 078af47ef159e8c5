from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes text or bytes to a file, line ends untouched, and gives its path."""

    def write_file(content, name):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
