"""The specifications shipped with the package: what the script makes, valid, and filled with a run's names."""

from __future__ import annotations

import json
import re

import pytest
import vl_convert
from support import load_script

from moral_entropy.report.chart_specs import CHARTS, FOLDER, SUFFIX, Palette, chart_specs

SHIPPED = sorted(path.name for path in FOLDER.iterdir())

# Names that look like everything else in a specification, too.
NAMES = ["care", "false positive rate", "[targets]", "target:N", "", 'é"</script>']


def palette(n, *, first=0):
    names = [NAMES[(first + i) % len(NAMES)] + "'" * ((first + i) // len(NAMES)) for i in range(n)]
    return Palette(names, [f"#0000{i:02x}" for i in range(n)])


def test_the_files_shipped_are_those_the_script_makes():
    pytest.importorskip("altair", reason="Altair is not installed: pip install altair")
    made = load_script("tools/make_charts.py").chart_files()
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in SHIPPED} == made


@pytest.mark.parametrize("name", SHIPPED)
def test_every_file_is_a_valid_specification(name):
    spec = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert vl_convert.vegalite_to_vega(spec)["marks"]


def test_every_file_is_a_chart():
    charts = {name.removesuffix(SUFFIX) for name in SHIPPED}
    assert charts == {*CHARTS, "heat_by_domain"}


def encodings(spec):
    """All encodings of a specification, however deep."""
    if isinstance(spec, dict):
        yield from [spec["encoding"]] if "encoding" in spec else []
    for part in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else []:
        yield from encodings(part)


def scales_of(spec, field):
    return [one["color"]["scale"] for one in encodings(spec) if one.get("color", {}).get("field") == field]


@pytest.mark.parametrize(("n_targets", "n_questions", "domains"), [(1, 1, False), (9, 2, True), (2, 6, True)])
def test_names_and_colours_are_filled_in(n_targets, n_questions, domains):
    targets, questions = palette(n_targets, first=2), palette(n_questions)
    specs = chart_specs(targets, questions, domains=domains)
    assert tuple(specs) == CHARTS
    for chart, field, wanted in (
        ("rules", "target", targets),
        ("by_domain", "target", targets),
        ("reliability", "target", targets),
        ("by_votes", "question", questions),
    ):
        scales = scales_of(specs[chart], field)
        assert scales and all(one == {"domain": wanted.names, "range": wanted.colours} for one in scales), chart
    orders = [one["yOffset"]["sort"] for one in encodings(specs["rules"])]
    assert orders and all(order == targets.names for order in orders)
    assert ("facet" in specs["heat"]) == domains


@pytest.mark.parametrize(("n", "step"), [(1, 20), (2, 10), (9, 7)])
def test_dots_of_many_targets_stand_closer_together(n, step):
    specs = chart_specs(palette(n), palette(1), domains=True)
    assert {specs[name]["spec"]["height"]["step"] for name in ("rules", "by_domain")} == {step}


def test_no_placeholder_is_left():
    filled = json.dumps(chart_specs(palette(1), palette(1), domains=True))
    assert not re.findall(r"\[[a-z ]+\]", filled)
