"""Words that readers stumbled over do not come back: in docs, help texts, findings, errors and the report's page."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
THING = "(vote|item|text|annotator|question|label|domain|row)"

STUMBLED = {
    r"yardstick": "can the consensus be trusted?",
    rf"\ba (row|column|line|file|matrix) an? {THING}\b": "one row per vote",
    rf"\bnats an? {THING}\b": "nats per text",
    rf"\bvotes an? {THING} (has|have)\b": "votes per item",
    r"\b(over|under)-?flagger": "says yes too often, too rarely",
    r"\b(half )?of its most\b": "above half its maximum",
    r"priors?'s? say\b": "how much depends on assumptions",
    r"falls short:|FALLS SHORT": "FAILED: x is 0.23, limit 0.1",
    r"votes? (are |is )?overruled": "the model chose a label that no annotator gave",
    r"so-manieth": "every n-th",
    r"as much the prior's as the votes'": "too few votes to decide: the default assumption decides",
    r"best with each item's likelihood": "every vote counts as 0.63 of one",
    r"Annotator votes in; a Bayesian": "Check annotations",
}
"""What readers stumbled over, and what to write instead."""

JARGON = r"Pareto|likelihood|Gaussian|posterior sd|per item, \d+% more|\D-0(\.0+)?(%| |$)|\b(fpr|fnr|fdr)\b"
"""What the last screen of an audit never says: from the verdict on."""


def texts():
    """Whatever users read: pages, the modules with their help texts, errors and findings, the report's template."""
    places = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    return [*places, *(ROOT / "src").rglob("*.html")]


@pytest.mark.parametrize("word", STUMBLED)
def test_nobody_stumbles_again(word):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(word, line)
    ]
    assert found == [], f"write rather: {STUMBLED[word]}"


@pytest.mark.parametrize(
    "sample",
    ["the yardstick is bent", "a row a vote", "2.1 nats a text", "the votes an item has", "an over-flagger",
     "entropy above half of its most", "FALLS SHORT: x <= 0.1", "votes overruled",
     "predicted best with each item's likelihood to the power .63"],
)  # fmt: skip
def test_the_words_would_be_found(sample):
    assert any(re.search(word, sample) for word in STUMBLED)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "golden").glob("audit*.txt")), ids=lambda path: path.stem)
def test_the_first_screen_has_no_jargon(path):
    assert re.findall(JARGON, path.read_text(encoding="utf-8")) == []


def test_rates_are_explained_on_every_screen_that_has_them():
    for path in (ROOT / "tests" / "golden").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^rule .*\bfpr\b", text, flags=re.MULTILINE):
            assert "wrong yes" in text and "missed yes" in text and "share of yes labels that are wrong" in text, path


def test_sentences_are_short_and_words_plain():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    prose = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prose)
    assert list(prose.problems()) == []
