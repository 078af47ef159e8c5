"""The specifications shipped with the package: what the script makes, valid, and filled with a run's names."""

from __future__ import annotations

import json
import re

import pytest
import vl_convert
from support import load_script

from moral_entropy.report.chart_specs import (
    CHARTS,
    FOLDER,
    JAVASCRIPT_NAMES,
    SUFFIX,
    Look,
    chart_name,
    chart_specs,
    with_rows,
)

SHIPPED = sorted(path.name for path in FOLDER.iterdir())

# Names that look like everything else in a specification, too.
NAMES = ["care", "false positive rate", "[targets]", "target:N", "", 'é"</script>']


def palette(n, *, first=0):
    names = [NAMES[(first + i) % len(NAMES)] + "'" * ((first + i) // len(NAMES)) for i in range(n)]
    return {name: Look(f"#0000{i:02x}", f"M0,{i}") for i, name in enumerate(names)}


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


def scales_of(spec, channel, field):
    return [one[channel]["scale"] for one in encodings(spec) if one.get(channel, {}).get("field") == field]


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
        ("panels", "question", questions),
    ):
        for channel, fact in (("color", "colour"), ("shape", "shape")):
            looks = [getattr(look, fact) for look in wanted.values()]
            scales = scales_of(specs[chart], channel, field)
            assert scales and all(one == {"domain": list(wanted), "range": looks} for one in scales), chart
    orders = [one["yOffset"]["sort"] for one in encodings(specs["rules"])]
    assert orders and all(order == list(targets) for order in orders)
    assert ("facet" in specs["heat"]) == domains


@pytest.mark.parametrize(("n", "step"), [(1, 20), (2, 10), (9, 7)])
def test_dots_of_many_targets_stand_closer_together(n, step):
    specs = chart_specs(palette(n), palette(1), domains=True)
    assert {specs[name]["spec"]["height"]["step"] for name in ("rules", "by_domain")} == {step}


def test_no_placeholder_is_left():
    filled = json.dumps(chart_specs(palette(1), palette(1), domains=True))
    assert not re.findall(r"\[[a-z ]+\]", filled)


def legends(spec):
    return [one[channel]["legend"] for one in encodings(spec) for channel in ("color", "shape") if channel in one]


def rate_row(target):
    return {
        "target": target,
        "rule": "any",
        "domain": "(all)",
        "metric": "wrong yes (false positive rate)",
        "value": 0.2,
    }


@pytest.mark.parametrize(
    ("there", "named"), [([], None), (["care"], None), (["[targets]", "care"], ["care", "[targets]"])]
)
def test_a_legend_names_what_is_there_and_never_a_single_thing(there, named):
    spec = chart_specs(palette(4), palette(1), domains=False)["rules"]
    filled = with_rows(spec, {"rules": [rate_row(target) for target in there]})
    assert legends(filled)
    for legend in legends(filled):
        assert legend is None if named is None else legend["values"] == named
    # The specification itself stays as it was.
    assert all("values" not in legend for legend in legends(spec))


def drawn_rules(names, colours):
    looks = {name: Look(colour, "circle") for name, colour in zip(names, colours, strict=True)}
    spec = chart_specs(looks, looks, domains=False)["rules"]
    return vl_convert.vegalite_to_svg(with_rows(spec, {"rules": [rate_row(name) for name in names]}))


def test_names_that_javascript_knows_are_drawn_as_any_other(monkeypatch):
    names = sorted(JAVASCRIPT_NAMES)
    colours = [f"#00{i:02x}ff" for i in range(len(names))]
    svg = drawn_rules(names, colours)
    assert [colour for colour in colours if f'fill="{colour}"' not in svg] == []
    assert [name for name in names if chart_name(name) not in svg] == []
    # Without that Vega fails; when it no longer does, the care can go.
    monkeypatch.setattr("moral_entropy.report.chart_specs.JAVASCRIPT_NAMES", frozenset())
    with pytest.raises(ValueError, match="conversion failed"):
        drawn_rules(names, colours)


def votes_ticks(chart, table, field, values):
    spec = chart_specs(palette(1), palette(1), domains=False)[chart]
    rows = [
        {field: value, "question": "care", "metric": "wrong yes", "total": 0.1, "value": 0.2, "n": 5}
        for value in values
    ]
    svg = vl_convert.vegalite_to_svg(with_rows(spec, {table: rows, "chosen": [{"threshold": values[0]}]}))
    axis = re.search(r'aria-label="X-axis.*?role-axis-label.*?>(.*?)</g>', svg, re.DOTALL)
    return re.findall(r">([^<>]+)</text>", axis.group(1))


@pytest.mark.parametrize(("chart", "field"), [("by_votes", "votes"), ("explorer", "threshold")])
@pytest.mark.parametrize("values", [[3, 4], [1, 2, 3], [2, 40]])
def test_votes_are_whole_numbers_on_their_axis(chart, field, values):
    ticks = votes_ticks(chart, chart, field, values)
    assert 2 <= len(ticks) <= 13
    assert all(tick.isdigit() and values[0] <= int(tick) <= values[-1] for tick in ticks), ticks
