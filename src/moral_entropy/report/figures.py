"""Run folder → figures for papers: the report's charts with the run's data in them, as PNG, SVG or PDF."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.files import whole_file
from moral_entropy.markup import json_rows
from moral_entropy.names import ALL
from moral_entropy.report.chart_specs import Rows, chart_specs, with_rows
from moral_entropy.report.item_sums import entropy_by_votes
from moral_entropy.report.sections import judges_section
from moral_entropy.report.tables import (
    audit_rates,
    drawn_charts,
    entropy_rows,
    palettes,
    reliability_rows,
    shown_domains,
)
from moral_entropy.report.words import NO_ROLE, RATES
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS

FORMATS = ("png", "svg", "pdf")
SOFT = ("share", "smoothed-share")

MOST_ELLIPSES = 80
"""Annotators whose intervals are drawn; of more, only the dots can be seen. The page does the same."""

NOT_SPLIT = "not split"
"""Name of an entropy whose parts are unknown, as there are no draws."""


def write_figures(run: Run | str | Path, folder: str | Path, *, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write the charts of a run's report as files and return their paths.

    Parameters
    ----------
    run
        The run, or its folder.
    folder
        Where the figures go; made when it is missing, figures of the same name are replaced.
    formats
        Of "png", "svg", "pdf".
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        msg = f"there is no format {unknown[0] if unknown else ''!r}. Formats: {', '.join(FORMATS)}."
        raise UsageError(msg)
    run, target = as_run(run), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, spec in figure_specs(run):
        for kind in formats:
            file = target / f"{name}.{kind}"
            with whole_file(file) as partial:
                partial.write_bytes(_drawn(spec, kind))
            written.append(file)
    return written


def figure_specs(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every figure by name, as a Vega-Lite specification that holds its data; none is a single dot."""
    domains = shown_domains(run)
    specs, drawn = chart_specs(*palettes(run), domains=bool(domains)), drawn_charts(run)
    titles = {metric: rate.title for metric, rate in RATES.items()}
    rates = _hard_rates(run, domains).with_columns(pl.col("metric").replace(titles))
    both = pl.col("metric").is_in([titles["fpr"], titles["fnr"]])
    pooled = pl.col("domain") == ALL
    if drawn["rules"]:
        yield "rules", _filled(specs["rules"], rules=rates.filter(both, pooled).to_dicts())
    if drawn["by_domain"]:
        for (rule,), rows in rates.filter(both, ~pooled).group_by("rule", maintain_order=True):
            yield f"rule-{slug(str(rule))}", _filled(specs["by_domain"], by_domain=rows.to_dicts())
    for metric in ("fpr", "fnr", "fdr") if drawn["heat"] else ():
        rows = rates.filter(~pooled if domains else pooled, metric=titles[metric])
        yield f"heat-{metric}", _filled(specs["heat"], heat=rows.to_dicts())
    yield "entropy", _filled(specs["entropy"], entropy=_entropy_parts(run, entropy_rows(run, domains)))
    if drawn["by_votes"]:
        by_votes = entropy_by_votes(run).filter(pl.col("votes") > 0)
        yield "entropy-by-votes", _filled(specs["by_votes"], by_votes=by_votes.to_dicts())
    if drawn["reliability"]:
        yield "reliability", _filled(specs["reliability"], reliability=reliability_rows(run).to_dicts())
    if drawn["annotators"]:
        yield from _annotator_specs(run, specs)
    judges = judges_section(run)
    if judges is not None and judges["panels"]:
        yield "panels", _filled(specs["panels"], panels=judges["panels"])


def slug(name: str) -> str:
    """Make a name fit for a file.

    Examples
    --------
    >>> slug("quorum-2/3"), slug("../Care")
    ('quorum-2-3', 'care')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"


def _filled(spec: dict[str, Any], **tables: Rows) -> dict[str, Any]:
    return with_rows(spec, {name: json_rows(rows) for name, rows in tables.items()})


def _hard_rates(run: Run, domains: Sequence[str]) -> pl.DataFrame:
    targets, _ = palettes(run)
    rows = audit_rates(run, domains).filter(reference="consensus").drop_nulls("value")
    return rows.filter(~pl.col("rule").is_in(SOFT), pl.col("target").is_in(list(targets)))


def _entropy_parts(run: Run, rows: pl.DataFrame) -> Rows:
    parts, shown = [], run.parts
    for row in rows.iter_rows(named=True):
        # Without draws all that is known is the total.
        known = row["doubt_votes"] is not None
        values = {name: row[part] for part, name in shown.items()} if known else {NOT_SPLIT: row["total"]}
        parts += [
            {"question": row["question"], "domain": row["domain"], "part": part, "at": at, "nats": nats,
             "share": nats / row["total"] if row["total"] else None, "n": row["n_items"]}
            for at, (part, nats) in enumerate(values.items())
        ]  # fmt: skip
    return parts


def _annotator_specs(run: Run, specs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    summary = run.table("annotator_summary").drop_nulls("sensitivity").with_columns(
        pl.col("annotator").cast(pl.String),
        false_positive=1 - pl.col("specificity"),
        role=pl.col("role").replace("", NO_ROLE),
    )  # fmt: skip
    for (question,), rows in summary.group_by("question", maintain_order=True):
        if rows.height < 2:
            continue
        two = rows["specificity"].is_not_null().any()
        chart = "annotators" if two else "annotators_many"
        people = rows.to_dicts() if two else _best_first(rows)
        round_ones = people if two and len(people) <= MOST_ELLIPSES else []
        ellipses = [point for row in round_ones for point in _ellipse(row)]
        yield f"annotators-{slug(str(question))}", _filled(specs[chart], people=people, ellipses=ellipses)


def _best_first(rows: pl.DataFrame) -> Rows:
    best = rows.sort(pl.col("sensitivity").round(DECIMALS), descending=True, maintain_order=True)
    return best.with_columns(rank=pl.int_range(1, pl.len() + 1)).to_dicts()


def _ellipse(row: dict[str, Any]) -> Rows:
    """Return points around an annotator; half axes are half the intervals."""
    if row["specificity_low"] is None or row["sensitivity_low"] is None:
        return []
    half_x = (row["specificity_high"] - row["specificity_low"]) / 2
    half_y = (row["sensitivity_high"] - row["sensitivity_low"]) / 2
    x = 1 - (row["specificity_high"] + row["specificity_low"]) / 2
    y = (row["sensitivity_high"] + row["sensitivity_low"]) / 2
    angles = [at * math.pi / 16 for at in range(33)]
    return [
        {"annotator": row["annotator"], "role": row["role"], "at": at,
         "x": x + half_x * math.cos(angle), "y": y + half_y * math.sin(angle)}
        for at, angle in enumerate(angles)
    ]  # fmt: skip


def _drawn(spec: dict[str, Any], kind: str) -> bytes:
    import vl_convert

    config = {"background": "white", "font": "DejaVu Sans, Arial, sans-serif", "legend": {"columns": 5}}
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2, config=config))
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, config=config))
    return str(vl_convert.vegalite_to_svg(spec, config=config)).encode()
