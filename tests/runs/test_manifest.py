"""The manifest is plain JSON in a fixed order."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import read_manifest, write_manifest


def test_facts_come_back(tmp_path):
    facts = {"seed": 0, "labels": ("no", "ja"), "note": "naïve – ok", "nested": {"b": 1, "a": [1.5, None]}}
    write_manifest(tmp_path, facts)
    assert read_manifest(tmp_path) == facts | {"labels": ["no", "ja"]}
    assert list(read_manifest(tmp_path)) == list(facts)


def test_numpy_values_and_figures_that_are_not_finite_become_plain(tmp_path):
    facts = {
        "a": np.float64(0.5),
        "b": np.array([1.0, np.nan]),
        "c": float("-inf"),
        "d": np.bool_(True),
        3: np.int16(4),
    }
    write_manifest(tmp_path, facts)
    assert read_manifest(tmp_path) == {"a": 0.5, "b": [1.0, None], "c": None, "d": True, "3": 4}


def test_it_is_json_for_any_program(tmp_path):
    write_manifest(tmp_path, {"x": float("nan")})
    facts = json.loads((tmp_path / "manifest.json").read_text(), parse_constant=pytest.fail)
    assert facts.pop("seal") == hashlib.sha256(b'{\n  "x": null\n}').hexdigest()
    assert facts == {"x": None}


@pytest.mark.parametrize("text", ["{", "[1, 2]", "\xff"])
def test_a_broken_manifest_is_named(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(RunFolderError, match=r"manifest\.json"):
        read_manifest(tmp_path)
