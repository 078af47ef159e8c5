"""Charts from the cache folder are the charts Altair makes."""

from __future__ import annotations

import json

import pytest

from moral_entropy.report import charts
from moral_entropy.report.foundations import Palette
from moral_entropy.report.kept_charts import kept_chart_specs

# Names that look like everything else in a specification, too.
NAMES = ["care", "false positive rate", "[target 1]", "target:N", "", 'é"</script>']


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def palette(n, *, first=0):
    names = [NAMES[(first + i) % len(NAMES)] + "'" * ((first + i) // len(NAMES)) for i in range(n)]
    return Palette(names, [f"#0000{i:02x}" for i in range(n)])


@pytest.mark.parametrize(("n_targets", "n_questions", "domains"), [(1, 1, False), (9, 2, True), (2, 6, True)])
def test_kept_charts_are_those_altair_makes(cache, n_targets, n_questions, domains):
    for first in (0, 2):
        targets, questions = palette(n_targets, first=first), palette(n_questions, first=first + 1)
        made = charts.chart_specs(targets, questions, domains=domains)
        # In the order of their keys too: reports are compared byte by byte.
        assert json.dumps(kept_chart_specs(targets, questions, domains=domains)) == json.dumps(made)


def test_the_second_time_altair_is_not_asked(cache, monkeypatch):
    first = kept_chart_specs(palette(2), palette(2), domains=True)
    monkeypatch.delattr(charts, "chart_specs")
    assert kept_chart_specs(palette(2), palette(2), domains=True) == first
    with pytest.raises(ImportError):
        kept_chart_specs(palette(3), palette(2), domains=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"made_by": "an older Altair", "specs": {}}'])
def test_what_is_broken_or_old_is_made_again(cache, text):
    first = kept_chart_specs(palette(1), palette(1), domains=False)
    [file] = cache.glob("charts-*.json")
    whole = file.read_text()
    file.write_text(text)
    assert kept_chart_specs(palette(1), palette(1), domains=False) == first
    assert file.read_text() == whole


def test_charts_are_made_where_nothing_can_be_kept(cache):
    cache.write_text("a file where the folder should be")
    made = charts.chart_specs(palette(1), palette(1), domains=False)
    assert kept_chart_specs(palette(1), palette(1), domains=False) == made
    assert cache.is_file()
