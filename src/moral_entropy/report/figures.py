"""Run → figures for papers, with the run's data in them, as PNG, SVG or PDF: Vega-Lite, drawn without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.files import whole_file
from moral_entropy.names import ALL
from moral_entropy.report.page import reliability_rows
from moral_entropy.report.paper import rate_frame
from moral_entropy.report.words import RATES
from moral_entropy.runs.folder import plain_facts
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS

MAX_NAMES = 60
"""Annotators in a figure, those worth a look first; rules are drawn for as many questions and labels."""

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C", "#7A3FB0", "#7A4A12", "#94C11F")
"""The colours of Okabe and Ito, which people with colour blindness can tell apart, and a few more."""

PARTS = ("#CC79A7", "#56B4E9", "#D55E00", "#009E73")
"""The parts of the entropy, as in the report."""

FOUNDATIONS = {
    "#6A4C93": {"authority", "subversion"},
    "#00B4A6": {"care", "harm"},
    "#3498DB": {"fairness", "cheating", "equality", "proportionality"},
    "#E74C3C": {"loyalty", "betrayal", "ingroup"},
    "#F39C12": {"sanctity", "purity", "degradation"},
}
"""The moral foundations in the colours of the paper's figures, and what questions about them are called."""

INVISIBLE = "\u2060"
RESERVED = ("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString",
            "valueOf", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
            "__proto__")  # fmt: skip
"""Names that every object of JavaScript has: Vega takes a value of such a name for something it has seen before."""

Spec = dict[str, Any]
CONFIG = {"background": "white", "font": "DejaVu Sans, Arial, sans-serif"}


def write_figures(run: Run | str | Path, folder: str | Path, *, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write the figures of a run as files and return their paths.

    Parameters
    ----------
    run
        The run, or its folder.
    folder
        Where the figures go; made when it is missing, figures of the same name are replaced.
    formats
        Of "png", "svg", "pdf".
    """
    target, files = Path(folder), []
    target.mkdir(parents=True, exist_ok=True)
    for name, spec in figure_specs(as_run(run)):
        for kind in formats:
            files.append(target / f"{name}.{kind}")
            with whole_file(files[-1]) as partial:
                partial.write_bytes(draw(spec, kind))
    return files


def figure_specs(run: Run) -> Iterator[tuple[str, Spec]]:
    """Return every figure by name, as a Vega-Lite specification that holds its data."""
    rates, reference = rate_frame(run), "gold" if "gold" in run.table("audit")["reference"] else "consensus"
    rates = rates.filter(reference=reference) if rates.height else rates
    targets = [target for question in run.questions for target, _ in question.targets][:MAX_NAMES]
    rows = [
        {"rule": row["rule"], "target": row["question"], "value": row[name],
         "rate": f"{RATES[name].name} ({RATES[name].formal})",
         "low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}
        for row in rates.iter_rows(named=True) if row["question"] in targets
        for name in ("fpr", "fnr") if row.get(name) is not None
    ]  # fmt: skip
    if rows:
        yield "rules", _dots("rule", "target", rows, colours_of(targets), row="rate", title="share")
    entropy = run.table("entropy").filter(domain=ALL)
    parts = [
        {"question": row["question"], "part": name, "nats": row[part], "at": at}
        for row in entropy.iter_rows(named=True) for at, (part, name) in enumerate(run.parts.items())
        if row[part] is not None
    ] or [{"question": name, "part": "not split", "nats": total, "at": 0}
          for name, total in entropy.select("question", "total").iter_rows()]  # fmt: skip
    x = {"field": "nats", "type": "quantitative", "title": "mean entropy per item, nats"}
    colour = _colour("part", list(dict.fromkeys(row["part"] for row in parts)), PARTS)
    encoding = {"y": _axis("question"), "x": x, "color": colour, "order": {"field": "at"}}
    yield "entropy", {"data": {"values": _rows(parts)}, "width": 480, "mark": "bar", "encoding": encoding}
    bins = [dot | {"target": line["target"]} for line in reliability_rows(run) for dot in line["dots"]]
    if len(bins) > 1:
        yield "reliability", _reliability(bins)
    if not run.manifest["anonymous"]:
        yield from _annotators(run)


def colours_of(names: Sequence[str]) -> list[str]:
    """Return a colour per name: the paper's for moral foundations, others from the palette.

    Examples
    --------
    >>> colours_of(["Care/Harm", "toxic"])
    ['#00B4A6', '#0072B2']
    """
    words = [set(re.split(r"[^a-z]+", name.lower())) - {""} for name in names]
    about = [next((colour for colour, names in FOUNDATIONS.items() if parts and parts <= names), "") for parts in words]
    free = (PALETTE[at % len(PALETTE)] for at in range(len(names)))
    return [colour if colour and colour not in about[:at] else next(free) for at, colour in enumerate(about)]


def slug(name: str) -> str:
    """Make a name fit for a file.

    Examples
    --------
    >>> slug("quorum-2/3"), slug("../Care")
    ('quorum-2-3', 'care')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"


def _safe(value: Any) -> Any:
    return INVISIBLE + value if value in RESERVED else value


def _rows(rows: Sequence[dict[str, Any]]) -> Any:
    return plain_facts([{name: _safe(value) for name, value in row.items()} for row in rows])


def _axis(field: str, **options: Any) -> Spec:
    return {"field": field, "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 300}, **options}


def _colour(field: str, names: Sequence[str], colours: Sequence[str]) -> Spec:
    scale = {"domain": [_safe(name) for name in names], "range": list(colours)}
    return {"field": field, "type": "nominal", "title": None, "scale": scale,
            "legend": {"orient": "bottom", "columns": 4} if len(names) > 1 else None}  # fmt: skip


def _dots(
    field: str, by: str, rows: Sequence[dict[str, Any]], colours: Sequence[str], *, title: str, row: str = ""
) -> Spec:
    """Draw dots with intervals, one line per name, and beside each other those of the same name."""
    names = list(dict.fromkeys(cells[by] for cells in rows))
    values = {"x": {"type": "quantitative", "axis": {"format": "%"}, "title": title}, "y": _axis(field),
              "yOffset": {"field": by}, "color": _colour(by, names, colours)}  # fmt: skip
    interval = {**values, "x": {**values["x"], "field": "low"}, "x2": {"field": "high"}}
    dot = {**values, "x": {**values["x"], "field": "value"}}
    mark = {"type": "point", "filled": True, "size": 40}
    layers = [{"mark": "rule", "encoding": interval}, {"mark": mark, "encoding": dot}]
    spec: Spec = {"width": 360, "height": {"step": max(7, 20 // len(names))}, "layer": layers}
    facet = {"facet": {"column": {"field": row, "title": None, "sort": None}}, "spec": spec} if row else spec
    return {"data": {"values": _rows(rows)}, **facet}


def _reliability(bins: Sequence[dict[str, Any]]) -> Spec:
    """Draw the share of yes in gold by p, one panel per question or label."""
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    x, y = {**axis, "field": "p", "title": "p"}, {**axis, "title": "share of yes in gold"}
    ends = [{"p": end, "gold": end} for end in (0, 1)]
    gold = {"x": x, "y": {**y, "field": "gold"}}
    layers = [
        {"data": {"values": ends}, "mark": {"type": "line", "strokeDash": [4, 4], "color": "gray"}, "encoding": gold},
        {"mark": "rule", "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True}, "encoding": gold},
    ]
    facet = {"field": "target", "title": None, "sort": None}
    return {"data": {"values": _rows(bins)}, "facet": facet, "columns": 4,
            "spec": {"width": 160, "height": 160, "layer": layers}}  # fmt: skip


def _annotators(run: Run) -> Iterator[tuple[str, Spec]]:
    """Draw how often each annotator is right, by name, the worst first."""
    summary = run.table("annotator_summary").drop_nulls("sensitivity").with_columns(pl.col("annotator").cast(pl.String))
    for (question,), people in summary.group_by("question", maintain_order=True):
        worst = people.sort(pl.col("youden").round(DECIMALS), maintain_order=True).head(MAX_NAMES)
        has_no = worst["specificity"].is_not_null().any()
        names = {"sensitivity": "sees a yes", "specificity": "sees a no"} if has_no else {"sensitivity": "right label"}
        rows = [
            {"annotator": row["annotator"], "figure": name, "value": row[column], "low": row[f"{column}_low"],
             "high": row[f"{column}_high"]}
            for row in worst.iter_rows(named=True) for column, name in names.items()
        ]  # fmt: skip
        if worst.height > 1:
            yield f"annotators-{slug(str(question))}", _dots("annotator", "figure", rows, PALETTE, title="share")


def draw(spec: Spec, kind: str) -> bytes:
    """Return a figure as PNG, SVG or PDF."""
    # Late: only figures need it.
    import vl_convert

    scale = {"scale": 2} if kind == "png" else {}
    picture = getattr(vl_convert, f"vegalite_to_{kind}")(spec, config=CONFIG, **scale)
    return picture.encode() if isinstance(picture, str) else bytes(picture)
