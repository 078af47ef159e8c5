"""What a release needs beside the code: versions that agree, metadata, shell completion, lowest versions, workflows."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import moral_entropy as me
from moral_entropy.report.methods import YEAR

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == me.__version__ and cited["license"] == PROJECT["license"] == "MIT"
    assert cited["date-released"] == datetime.date.fromisoformat(str(cited["date-released"]))
    assert cited["date-released"].year == YEAR


def test_the_lowest_versions_are_those_of_the_project():
    lowest = dict(
        line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if "==" in line
    )
    for wanted in PROJECT["dependencies"]:
        name, least = re.split(r">=", wanted)
        assert lowest[name] == least or lowest[name].startswith(f"{least}."), wanted
    assert len(lowest) == len(PROJECT["dependencies"])


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE", "CITATION.cff"])
def test_pages_that_others_look_for_are_there(page):
    assert len((ROOT / page).read_text(encoding="utf-8")) > 400


def complete(words, at):
    """Return what the shell would offer."""
    asked = {"_MORAL_ENTROPY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from moral_entropy.cli.main import main; sys.exit(main([]))"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_shell_completes_commands_flags_and_choices():
    assert complete("moral-entropy ve", 1) == ["verify"]
    assert complete("moral-entropy check --ma", 2) == ["--max"]
    assert {"hf", "csv"} <= set(complete("moral-entropy export run --to ", 4))
