"""Write the chart specifications that the package ships: python tools/make_charts.py [FOLDER].

The charts of the report are drawn from Vega-Lite specifications in `src/moral_entropy/report/charts`, one JSON file
per chart. This script makes them with Altair, which the package itself does not need. A specification names its tables
and holds none of their rows. Where names and colours depend on the run, it holds a placeholder that
`moral_entropy.report.chart_specs` replaces; `usermeta.columns` is the number of columns for charts of several panels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import altair as alt

from moral_entropy.report.chart_specs import (
    FOLDER,
    QUESTION_COLOURS,
    QUESTION_SHAPES,
    QUESTIONS,
    SUFFIX,
    TARGET_COLOURS,
    TARGET_SHAPES,
    TARGETS,
)
from moral_entropy.report.figures import NOT_SPLIT
from moral_entropy.report.sections import SEEN
from moral_entropy.report.words import NO_ROLE, RATES, ROLES

PARTS = {
    "ambiguity": "#CC79A7",
    "votes": "#56B4E9",
    "annotators": "#D55E00",
    "between groups": "#009E73",
    NOT_SPLIT: "#999999",
}
WIDTH = 640

WHOLE_VOTES = alt.ExprRef(
    "sequence(ceil(domain('x')[0]), floor(domain('x')[1]) + 1, max(1, ceil((domain('x')[1] - domain('x')[0]) / 12)))"
)
"""Ticks of an axis of votes: whole numbers, thirteen at most."""

Spec = dict[str, Any]


def main(folder: str | Path = FOLDER) -> int:
    """Write every specification to a folder."""
    for name, text in chart_files().items():
        (Path(folder) / name).write_text(text, encoding="utf-8")
    return 0


def chart_files() -> dict[str, str]:
    """Return the text of every specification by file name."""
    charts = {
        "rules": _rates("rules", "rule", "Error rates of every consensus rule by question"),
        "by_domain": _rates("by_domain", "domain", "Error rates of one rule by domain and question"),
        "heat": _heat("target", facet=False),
        "heat_by_domain": _heat("domain", facet=True),
        "explorer": _explorer(),
        "entropy": _entropy(),
        "by_votes": _by_votes(),
        "reliability": _reliability(),
        "annotators": _annotators(),
        "annotators_many": _annotators_many(),
        "panels": _panels(),
    }
    return {f"{name}{SUFFIX}": json.dumps(_spec(chart), indent=2, ensure_ascii=False) + "\n"
            for name, chart in charts.items()}  # fmt: skip


def _spec(chart: Any) -> Spec:
    # Rows of the chart's own, as those of a diagonal, stay where they are: `datasets` is replaced by the run's tables.
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: Spec = chart.to_dict()
    del spec["config"]
    return spec


def _tooltip(*fields: str) -> list[alt.Tooltip]:
    numbers = {"value": ".1%", "low": ".1%", "high": ".1%", "n": ",", "nats": ".4f", "total": ".4f", "votes": ",",
               "p": ".3f", "gold": ".3f", "sensitivity": ".3f", "specificity": ".3f", "n_votes": ",",
               "share": ".1%", "cost": "~g"}  # fmt: skip
    return [
        alt.Tooltip(f"{name}:Q", format=numbers[name]) if name in numbers else alt.Tooltip(f"{name}:N")
        for name in fields
    ]


def _rates(table: str, down: str, description: str) -> Any:
    """Draw rates with intervals: one panel per metric, `down` on the left, one dot per question."""
    base = alt.Chart().encode(
        y=alt.Y(f"{down}:N", title=None, sort=None),
        yOffset=alt.YOffset("target:N", sort=[TARGETS]),
        color=_target_colour(),
        tooltip=_tooltip("rule", "domain", "target", "metric", "value", "low", "high", "n"),
    )
    lines = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q")
    rate = alt.X("value:Q", title=None, axis=alt.Axis(format="%", tickCount=5, labelFlush=False))
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(x=rate, shape=_target_shape())
    return (
        alt.layer(lines, dots, data=alt.NamedData(table))
        .properties(width=WIDTH // 2, height=alt.Step(20))
        .facet(facet=alt.Facet("metric:N", title=None, sort=[rate.title for rate in RATES.values()]), columns=2)
        .properties(usermeta={"columns": 2}, spacing=40, description=description)
    )


def _heat(across: str, *, facet: bool) -> Any:
    """Draw one metric of every rule: rules down, domains across in one panel per question, or all questions across."""
    base = alt.Chart().encode(
        x=alt.X(f"{across}:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("rule:N", title=None, sort=None),
        tooltip=_tooltip("rule", "domain", "target", "metric", "value", "low", "high", "n"),
    )
    colour = alt.Color(
        "value:Q",
        title=None,
        scale=alt.Scale(scheme="blues", domain=[0, 1]),
        legend=alt.Legend(format="%", orient="top", gradientLength=180),
    )
    cells = base.mark_rect().encode(color=colour)
    dark = alt.datum["value"] > 0.55
    numbers = base.mark_text(fontSize=9).encode(
        text=alt.Text("value:Q", format=".0%"),
        color=alt.condition(dark, alt.value("#ffffff"), alt.value("#111111")),
    )
    panel = alt.layer(cells, numbers, data=alt.NamedData("heat")).properties(height=alt.Step(18))
    if not facet:
        return panel.properties(width=WIDTH, usermeta={"columns": 1}, description="One error rate by rule and question")
    return (
        panel.properties(width=WIDTH // 3)
        .facet(facet=alt.Facet("target:N", title=None, sort=None), columns=3)
        .resolve_axis(x="independent")
        .properties(usermeta={"columns": 3}, description="One error rate by rule, domain and question")
    )


def _explorer() -> Any:
    """Draw the rates of all thresholds, the chosen one marked."""
    names = [RATES[metric].name for metric in ("fpr", "fnr", "fdr")]
    scale = alt.Scale(domain=names, range=["#0072B2", "#D55E00", "#009E73"])
    base = alt.Chart(alt.NamedData("explorer")).encode(
        x=alt.X(
            "threshold:Q",
            title="threshold",
            scale=alt.Scale(zero=False, nice=False, padding=12),
            axis=alt.Axis(values=WHOLE_VOTES, format="d", grid=False),
        ),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("metric:N", title=None, scale=scale, legend=_legend()),
        strokeDash=alt.StrokeDash("metric:N", legend=None),
        tooltip=[alt.Tooltip("threshold:Q"), *_tooltip("metric", "value")],
    )
    chosen = alt.Chart(alt.NamedData("chosen")).mark_rule(strokeWidth=2, color="#999999").encode(x="threshold:Q")
    lines = base.mark_line(point=alt.OverlayMarkDef(filled=True, size=40))
    return (chosen + lines).properties(
        width=WIDTH, height=220, usermeta={"columns": 1}, description="Error rates by threshold on the votes"
    )


def _entropy() -> Any:
    """Draw the mean entropy by question and domain, split into its parts."""
    scale = alt.Scale(domain=list(PARTS), range=list(PARTS.values()))
    return (
        alt.Chart(alt.NamedData("entropy"))
        .mark_bar()
        .encode(
            x=alt.X("nats:Q", title="nats", axis=alt.Axis(tickCount=4)),
            y=alt.Y("domain:N", title=None, sort=None),
            color=alt.Color("part:N", title=None, scale=scale, legend=_legend()),
            order=alt.Order("at:Q"),
            tooltip=_tooltip("question", "domain", "part", "nats", "share", "n"),
        )
        .properties(width=WIDTH // 3, height=alt.Step(16))
        .facet(facet=alt.Facet("question:N", title=None, sort=None), columns=3)
        .resolve_axis(x="independent")
        .properties(usermeta={"columns": 3}, description="Mean entropy by question and domain, in its parts")
    )


def _by_votes() -> Any:
    """Draw the mean entropy by number of votes."""
    base = alt.Chart(alt.NamedData("by_votes")).encode(
        x=alt.X(
            "votes:Q",
            title="votes per item",
            scale=alt.Scale(zero=False, nice=False, padding=12),
            axis=alt.Axis(values=WHOLE_VOTES, format="d", grid=False),
        ),
        y=alt.Y("total:Q", title="mean entropy, nats"),
        color=alt.Color("question:N", title=None, scale=_scale(QUESTIONS, QUESTION_COLOURS), legend=_legend()),
        tooltip=_tooltip("question", "votes", "total", "n"),
    )
    dots = base.mark_point(filled=True, opacity=0.9).encode(
        shape=alt.Shape("question:N", title=None, scale=_scale(QUESTIONS, QUESTION_SHAPES), legend=_legend()),
        size=alt.Size("n:Q", title="items", scale=alt.Scale(type="sqrt", range=[20, 260]), legend=None),
    )
    return (base.mark_line(opacity=0.7) + dots).properties(
        width=WIDTH, height=260, usermeta={"columns": 1}, description="Mean entropy by number of votes"
    )


def _reliability() -> Any:
    """Draw the share of items that are positive in gold, by p; the dashed line is where p is right."""
    base = alt.Chart(alt.NamedData("reliability")).encode(
        x=alt.X("p:Q", title="p of the consensus", scale=alt.Scale(domain=[0, 1]), axis=_few_ticks()),
        y=alt.Y("gold:Q", title="share of yes in gold", scale=alt.Scale(domain=[0, 1]), axis=_few_ticks()),
        color=_target_colour(),
        tooltip=_tooltip("target", "p", "gold", "n"),
    )
    bars = base.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q"), y2="high:Q")
    dots = base.mark_point(filled=True).encode(
        shape=_target_shape(),
        size=alt.Size("n:Q", scale=alt.Scale(type="sqrt", range=[20, 240]), legend=None),
    )
    return (_diagonal() + bars + base.mark_line(opacity=0.4) + dots).properties(
        width=WIDTH // 2, height=WIDTH // 2, usermeta={"columns": 2}, description="Reliability of p against gold"
    )


def _annotators() -> Any:
    """Draw sensitivity against 1 − specificity with ellipses; the dashed line is chance."""
    unit = alt.Scale(domain=[0, 1])
    role = alt.Color("role:N", title=None, scale=_roles(), legend=_legend())
    ellipses = (
        alt.Chart(alt.NamedData("ellipses"))
        .mark_line(strokeWidth=1, opacity=0.45)
        .encode(x="x:Q", y="y:Q", detail="annotator:N", order="at:Q", color=role)
    )
    dots = (
        alt.Chart(alt.NamedData("people"), name="dots")
        .mark_point(filled=True, opacity=0.95, cursor="pointer")
        .encode(
            x=alt.X("false_positive:Q", title="calls a no yes (1 − specificity)", scale=unit, axis=_few_ticks()),
            y=alt.Y("sensitivity:Q", title="sees a yes (sensitivity)", scale=unit, axis=_few_ticks()),
            color=role,
            size=alt.Size("n_votes:Q", scale=alt.Scale(type="sqrt", range=[20, 140]), legend=None),
            tooltip=_tooltip("annotator", "role", "n_votes", "sensitivity", "specificity"),
        )
    )
    return (_diagonal() + ellipses + dots).properties(
        width=WIDTH // 2, height=WIDTH // 2, usermeta={"columns": 2}, description="Annotators: sensitivity, specificity"
    )


def _annotators_many() -> Any:
    """Draw how often each annotator is right, the best first; for questions with more than two labels."""
    base = alt.Chart(alt.NamedData("people")).encode(
        x=alt.X("rank:Q", title="annotators, best first", axis=_few_ticks(format="d", grid=False, tickMinStep=1)),
        color=alt.Color("role:N", title=None, scale=_roles(), legend=_legend()),
        tooltip=_tooltip("annotator", "role", "n_votes", "sensitivity"),
    )
    lines = base.mark_rule(opacity=0.35).encode(y=alt.Y("sensitivity_low:Q"), y2="sensitivity_high:Q")
    dots = base.mark_point(filled=True, cursor="pointer").encode(
        y=alt.Y(
            "sensitivity:Q",
            title="gives the right label, mean over labels",
            scale=alt.Scale(domain=[0, 1]),
            axis=_few_ticks(),
        ),
        size=alt.Size("n_votes:Q", scale=alt.Scale(type="sqrt", range=[20, 140]), legend=None),
    )
    return (lines + dots).properties(
        width=WIDTH // 2, height=WIDTH // 2, usermeta={"columns": 2}, description="Annotators: how often right"
    )


def _panels() -> Any:
    """Draw how many labels the best panel for every price gets wrong: on the items it was chosen on, and on others."""
    looks = alt.Scale(domain=list(SEEN), range=[[1, 0], [5, 4]])
    base = alt.Chart(alt.NamedData("panels")).encode(
        x=alt.X("cost:Q", title="cost per item", scale=alt.Scale(zero=False, padding=12), axis=_few_ticks(grid=False)),
        y=alt.Y("value:Q", title="labels wrong", axis=alt.Axis(format="%", tickCount=5)),
        color=alt.Color("question:N", title=None, scale=_scale(QUESTIONS, QUESTION_COLOURS), legend=_legend()),
        tooltip=_tooltip("question", "judges", "cost", "on", "value"),
    )
    lines = base.mark_line(interpolate="step-after", opacity=0.8).encode(
        strokeDash=alt.StrokeDash("on:N", title=None, scale=looks, legend=alt.Legend(orient="top"))
    )
    shape = alt.Shape("question:N", title=None, scale=_scale(QUESTIONS, QUESTION_SHAPES), legend=_legend())
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(shape=shape)
    return (lines + dots).properties(
        width=WIDTH,
        height=220,
        usermeta={"columns": 1},
        description="Labels that the best panel for each price gets wrong",
    )


def _few_ticks(**more: Any) -> alt.Axis:
    return alt.Axis(tickCount=5, labelFlush=False, **more)


def _diagonal() -> Any:
    """Draw a dashed line from (0, 0) to (1, 1)."""
    ends = alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    return alt.Chart(ends).mark_line(color="#999999", strokeDash=[4, 4]).encode(x="x:Q", y="y:Q")


def _target_colour() -> alt.Color:
    return alt.Color("target:N", title=None, scale=_scale(TARGETS, TARGET_COLOURS), legend=_legend())


def _target_shape() -> alt.Shape:
    return alt.Shape("target:N", title=None, scale=_scale(TARGETS, TARGET_SHAPES), legend=_legend())


def _scale(names: str, looks: str) -> alt.Scale:
    return alt.Scale(domain=[names], range=[looks])


def _legend() -> alt.Legend:
    return alt.Legend(orient="top", symbolLimit=60, symbolOpacity=1)


def _roles() -> alt.Scale:
    colours = ["#0072B2", "#E69F00", "#56B4E9", "#CC79A7", "#F0A37A", "#D55E00", "#999999"]
    return alt.Scale(domain=[NO_ROLE, *ROLES], range=colours)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
