"""ARCHITECTURE.md is true: what it names exists, an audit takes the walk it draws, and its rooms are the layers."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
from test_docs import votes_csv

from moral_entropy.cli.main import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
WALK = PAGE.split("## The walk")[1].split("## The rooms")[0]
CODE = "\n".join(
    [*re.findall(r"^```\n(.*?)^```$", WALK, flags=re.MULTILINE | re.DOTALL), *re.findall(r"`(.*?)`", PAGE)]
)
ROOMS = {path.stem for path in (ROOT / "src" / "moral_entropy").iterdir() if not path.stem.startswith("__")}
NAME = re.compile(r"(?<![\w/.-])([a-z_]+(?:/[a-z_]+)*)\.((?!csv|py\b|parquet|md\b)\w+(?:\.\w+)*)")


def names_in(text):
    """Return names such as runs/run.read_run; those of a single word only if a file of that name is in the package."""
    return sorted({f"{file}.{name}" for file, name in NAME.findall(text) if "/" in file or file in ROOMS})


def find(name):
    file, _, path = name.partition(".")
    return reduce(getattr, path.split("."), import_module(f"moral_entropy.{file.replace('/', '.')}"))


@pytest.mark.parametrize("name", names_in(CODE))
def test_what_the_page_names_exists(name):
    assert find(name) is not None


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?<![\w/])(?:src|docs|tests|studies)/[\w./-]+", CODE))))
def test_files_that_the_page_names_exist(path):
    assert (ROOT / path).exists()


def test_an_audit_takes_the_walk(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(votes_csv())
    monkeypatch.chdir(tmp_path)
    # Once without looking on: a profile of compiling kernels would take a minute.
    main(["audit", "votes.csv", "-o", "compiled", "--draws", "20", "--quiet"])
    called = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        assert main(["audit", "votes.csv", "-o", "run", "--draws", "20"]) == 0
    finally:
        sys.setprofile(None)
    lines = [line.lstrip("│├└ ") for line in re.findall(r"^```\n(.*?)^```$", WALK, flags=re.M | re.S)[0].splitlines()]
    functions = {name: find(name) for line in lines if not line.startswith("or ") for name in names_in(line)}
    walked = [name for name, one in functions.items() if inspect.isfunction(one)]
    assert len(walked) > 30
    assert [name for name in walked if inspect.unwrap(functions[name]).__code__ not in called] == []


def test_the_rooms_of_the_page_are_the_layers():
    table = PAGE.split("## The rooms")[1].split("## Where to add")[0]
    rooms = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)]
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [layers] = [contract["layers"] for contract in linter["contracts"] if contract["type"] == "layers"]
    assert rooms == [re.split(r" [|:] ", layer) for layer in layers]
    assert {room for some in rooms for room in some} == ROOMS - {"py"}
