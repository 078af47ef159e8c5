"""The budget of code lines says by how much it is exceeded, and where."""

from __future__ import annotations

import ast
from collections import Counter

from support import load_script

house = load_script("tools/house.py")

CEILING = 483


def test_growth_is_told_with_its_folder_and_shrinking_is_free():
    budget = {kind: {"all": 100, "votes": 60, "runs": 40} for kind in house.KINDS}
    now = {kind: Counter(votes=50, runs=45) for kind in house.KINDS}
    assert house.over_budget(now, budget) == []
    now["code"] = Counter(votes=60, runs=45, new=2)
    [line] = house.over_budget(now, budget)
    assert line == "code: 107, 7 above the budget of 100. runs +5, new +2"


def test_a_plain_audit_runs_no_more_functions_than_it_did():
    """A ceiling that is lowered with every cut, at most 500."""
    result = house.walk(house.HERE)
    assert 0 < result["functions"] <= CEILING and result["files"] <= 80


def test_only_code_counts():
    text = '"""Docstring."""\n\n# A comment.\nx = (\n    1,\n)\n'
    assert house.code_lines(text, ast.parse(text)) == 3
