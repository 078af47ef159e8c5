"""The notebooks run from beginning to end, and what is shown of them is what they are."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = ("moral-corpus", "llm-panel")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("notebooks_tool", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name, tool):
    notebook = json.loads((ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    printed = tool.run_cells(cells)
    for cell, out in zip(notebook["cells"], printed, strict=True):
        assert bool(out) == bool(cell.get("outputs")), "".join(cell["source"])
        assert len({cell["id"] for cell in notebook["cells"]}) == len(cells)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_and_page_are_those_of_the_tool(name, tool):
    assert tuple(tool.NOTEBOOKS) == NAMES
    cells = tool.cells_of(tool.NOTEBOOKS[name])
    notebook = json.loads((ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]] == cells, "run make golden"
    printed = ["".join(line for out in cell.get("outputs", []) for line in out["text"]) for cell in notebook["cells"]]
    page = (ROOT / "docs" / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
    assert tool.as_page(name, cells, printed) == page, "run make golden"
