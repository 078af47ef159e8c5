"""A newcomer adds a rule and a format by the recipes of CONTRIBUTING.md, at the places that they list and no others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AUDIT = "import sys; from moral_entropy.cli.main import main; sys.exit(main(sys.argv[1:]))"


def recipe(title):
    """Return the files that a recipe lists under src, and its block of Python."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"^## How to add {title}\n(.*?)(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    [block] = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^\d\. `(src/[\w/.]+)`", section, flags=re.MULTILINE), block


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package for both recipes, with what is compiled; an edited file is compiled again."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "src", folder / "src", ignore=leave_out)
    return folder


def leave_out(folder, names):
    compiled = (".nbi", ".nbc", ".pyc") if Path(folder).name == "__pycache__" else ()
    return [name for name in names if compiled and not name.endswith(compiled)]


def edit(path, pattern, replacement):
    text, n_edits = re.subn(pattern, lambda found: found[0] + replacement, path.read_text(encoding="utf-8"), count=1)
    assert n_edits == 1, pattern
    path.write_text(text, encoding="utf-8")


def audited(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-c", AUDIT, "audit", *arguments, "-o", "run", "--draws", "20", "--json", "--force"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tally():
    """Three annotators on sixty items, each of whom errs on every tenth."""
    names = ("ann", "bob", "cat")
    said = {f"t{i}": {who: (i % 3 == 0) != ((i + 3 * n) % 10 == 0) for n, who in enumerate(names)} for i in range(60)}
    return {item: {who: "yes" if yes else "no" for who, yes in votes.items()} for item, votes in said.items()}


def test_a_rule_that_is_added_as_the_recipe_says_is_graded_in_every_audit(package):
    [place], block = recipe("a rule")
    edit(package / place, r'_smoothed\("smoothed-share", 0\.5\),\n', block.split("rule = ")[1].strip() + ",\n")
    rows = [f"{item},{who},{label}" for item, votes in tally().items() for who, label in votes.items()]
    (package / "votes.csv").write_text("\n".join(["item,annotator,label", *rows]))
    graded = [name for rule in audited(package, "votes.csv")["rules"] for name in rule["names"]]
    assert {"majority", "all-but-one"} <= set(graded)


def test_a_format_that_is_added_as_the_recipe_says_is_recognised_and_read(package):
    (module, options), block = recipe("a format")
    edit(package / module, r"\Z", "\n\n" + block[block.index("@export_of") :])
    edit(package / options, r"\nFormat = Literal\[\n", '    "tally",\n')
    (package / "votes.json").write_text(json.dumps({"tally": tally()}))
    for arguments in (["votes.json"], ["votes.json", "--format", "tally"]):
        read = audited(package, *arguments)["read"]
        assert (read["items"], read["annotators"], read["votes"]) == (60, 3, 180)
        assert any("format: tally" in note for note in read["notes"])
