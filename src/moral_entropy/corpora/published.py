"""The paper's figures, as printed there (`data/published.toml`), and ours beside them.

Also defines how a figure is written. Does not depend on votes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from moral_entropy.names import ALL, MEAN

if TYPE_CHECKING:
    import polars as pl

LARGEST = "(largest)"
ANY_FOUNDATION = "any foundation"

CORPORA = {"mftc": "MFTC", "mfrc": "MFRC", "emfd": "eMFD"}
"""Short names of the corpora, and how the paper writes them."""

SECTIONS = {
    "corpora": "Corpora",
    "audit": "Rules, by corpus and across corpora",
    "domains": "Rules, by domain",
    "entropy": "Entropy: aleatoric and epistemic, in nats",
    "entropy shares": "Entropy: the epistemic share",
    "soft labels": "Soft labels",
    "annotators": "Annotators",
}
"""Sections of the comparison, in order, with their titles."""

READINGS = {
    "any foundation": 'the question "does the text carry any foundation at all", fitted on its own',
    "pooled": "every pair of text and foundation counts once, domains pooled",
    "mean": "the mean of the five foundations' figures, domains pooled",
    "cells": "the mean over domain × foundation, every cell counting once",
}
"""Possible meanings of a figure in the running text, where the paper does not say which."""

COUNTS = {"texts", "annotations", "annotators", "domains_fpr_above_fnr", "equal_fnr_cells"}
DIGITS = {"annotations_per_text": 2, "auc": 3, "aleatoric": 4, "epistemic": 4, "total": 4}

Bound = Literal["", "at most", "at least"]

PLACE = ("corpus", "domain", "foundation", "rule", "reference", "metric")
"""Columns under which a published figure and ours meet."""


@dataclass(frozen=True)
class Published:
    """One figure of the paper, in one reading of it.

    Parameters
    ----------
    section
        One of `SECTIONS`.
    corpus, domain, foundation
        What it is about; "(all)" pools, "(mean)" averages, "(largest)" is the largest.
    rule, reference
        The consensus rule and what it is graded against; empty where there is none.
    metric, value
        The figure; shares as fractions.
    printed
        The figure as printed in the paper.
    tolerance
        Largest difference at which ours still counts as the same.
    bound
        Whether `value` is only a bound.
    reading
        One of `READINGS`, where the paper leaves it open.
    note
        A remark for the reader.
    """

    section: str
    corpus: str
    metric: str
    value: float
    tolerance: float = 0.0
    printed: str = ""
    domain: str = ALL
    foundation: str = ALL
    rule: str = ""
    reference: str = ""
    bound: Bound = ""
    reading: str = ""
    note: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """The key under which our figure is found: its values of `PLACE`."""
        return tuple(getattr(self, name) for name in PLACE)

    def holds(self, ours: float) -> bool:
        """Return whether our figure is the same, within the tolerance.

        Examples
        --------
        >>> Published("audit", "mftc", "fpr", 0.199, tolerance=0.005).holds(0.2037)
        True
        >>> Published("audit", "mfrc", "fpr", 0.01, bound="at most").holds(0.012)
        False
        """
        # Printed figures have few digits: their binary rounding must not decide.
        gap, slack = ours - self.value, self.tolerance + 1e-12
        if self.bound:
            return gap <= slack if self.bound == "at most" else -gap <= slack
        return abs(gap) <= slack


def spell_gap(metric: str, gap: float) -> str:
    """Write a difference with its sign; shares in percentage points.

    Examples
    --------
    >>> spell_gap("fpr", -0.012), spell_gap("texts", 0.0), spell_gap("aleatoric", 0.00001)
    ('−1.2 pp', '0', '0.0000')
    """
    text = spell(metric, abs(gap)).replace("%", " pp")
    sign = "−" if gap < 0 else "+"
    return sign + text if any(digit in text for digit in "123456789") else text


def spell(metric: str, value: float) -> str:
    """Write a figure as the paper does: shares in per cent, entropies with four digits, counts whole.

    Examples
    --------
    >>> spell("fpr", 0.306), spell("aleatoric", 0.067), spell("texts", 5366)
    ('30.6%', '0.0670', '5,366')
    """
    if metric in COUNTS:
        return f"{value:,.0f}"
    if metric in DIGITS:
        return f"{value:.{DIGITS[metric]}f}"
    return f"{100 * value:.1f}%"


@cache
def read_published() -> tuple[Published, ...]:
    """Return every figure of the paper; those with several readings once per reading.

    Examples
    --------
    >>> sum(figure.section == "entropy" for figure in read_published())
    150
    """
    source = files("moral_entropy.corpora") / "data" / "published.toml"
    tables: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    figures = [*_corpora(tables), *_text(tables), *_entropy(tables), *_soft_labels(tables)]
    figures.sort(key=lambda figure: list(SECTIONS).index(figure.section))
    return tuple(replace(figure, printed=figure.printed or spell(figure.metric, figure.value)) for figure in figures)


def foundations() -> tuple[str, ...]:
    """Return the five foundations, in the order of the paper's tables."""
    return tuple(dict.fromkeys(figure.foundation for figure in read_published() if figure.metric == "aleatoric"))


def _corpora(tables: Mapping[str, Any]) -> Iterator[Published]:
    allowed = tables["tolerance"]
    for corpus, domains in tables["corpora"].items():
        for domain, row in domains.items():
            yield from _by_foundation(tables, "corpora", corpus, domain, "flagged", row["flagged"], rule="any")
            for metric in ("annotations_per_text", "texts"):
                yield Published("corpora", corpus, metric, row[metric], allowed[metric], domain=domain)
    for corpus, texts in tables["totals"].items():
        yield Published("corpora", corpus, "texts", texts, allowed["texts"])


def _entropy(tables: Mapping[str, Any]) -> Iterator[Published]:
    for corpus, domains in tables["entropy"].items():
        for domain, row in domains.items():
            for metric in ("aleatoric", "epistemic"):
                yield from _by_foundation(tables, "entropy", corpus, domain, metric, row[metric])


def _soft_labels(tables: Mapping[str, Any]) -> Iterator[Published]:
    for corpus, row in tables["soft_labels"].items():
        yield from _by_foundation(tables, "soft labels", corpus, ALL, "auc", row["auc"])


def _by_foundation(
    tables: Mapping[str, Any],
    section: str,
    corpus: str,
    domain: str,
    metric: str,
    values: Sequence[float],
    rule: str = "",
) -> Iterator[Published]:
    allowed = tables["tolerance"][metric]
    for foundation, value in zip(tables["foundations"], values, strict=True):
        yield Published(section, corpus, metric, value, allowed, domain=domain, foundation=foundation, rule=rule)


def _text(tables: Mapping[str, Any]) -> Iterator[Published]:
    for table in tables["text"]:
        facts = {"tolerance": tables["tolerance"]["rate"], **table}
        readings = facts.pop("readings", [])
        bounds: dict[str, Bound] = {"at_most": "at most", "at_least": "at least"}
        for flag, bound in bounds.items():
            if facts.pop(flag, False):
                facts |= {"bound": bound, "tolerance": 0.0}
        figure = Published(**facts)
        yield from (_read_as(figure, reading) for reading in readings) if readings else [figure]


def _read_as(figure: Published, reading: str) -> Published:
    foundation = {"any foundation": ANY_FOUNDATION, "pooled": ALL}.get(reading, MEAN)
    domain = MEAN if reading == "cells" else figure.domain
    return replace(figure, reading=reading, foundation=foundation, domain=domain)


def compare_figures(
    published: Sequence[Published], ours: pl.DataFrame, corpora: Sequence[str], *, twins: bool = False
) -> pl.DataFrame:
    """Return one row per published figure, with ours next to it.

    Parameters
    ----------
    published
        The paper's figures.
    ours
        Our figures, from `figures`.
    corpora
        Short names of the corpora that ours were computed from.
    twins
        Whether they are simulated, so that their truth is known.

    Returns
    -------
    pl.DataFrame
        section, corpus, domain, foundation, rule, reference, metric, reading, printed, published; ours, low, high,
        distance (ours less the published), within (whether that is within the tolerance); expected (our rate with items
        weighted by p instead of thresholded), truth (our rate against the truth of twins); bound, tolerance, note.

    Examples
    --------
    >>> import polars as pl
    >>> figure = Published("audit", "mftc", "fpr", 0.2, 0.005, rule="any", reference="consensus")
    >>> ours = pl.DataFrame([dict(zip(PLACE, figure.place), value=0.25, low=None, high=None)])
    >>> compare_figures((figure,), ours, ("mftc",))["distance"].round(3)[0]
    0.05
    """
    import polars as pl

    by_place = {tuple(row[name] for name in PLACE): row for row in ours.iter_rows(named=True)}
    rows = []
    for figure in published:
        row = by_place.get(figure.place, {})
        *place, reference, metric = figure.place
        value, at_consensus = row.get("value"), reference == "consensus"
        expected = by_place.get((*place, reference, f"expected_{metric}"), {}).get("value") if at_consensus else None
        truth = by_place.get((*place, "gold", metric), {}).get("value") if at_consensus and twins else None
        rows.append({
            **{name: getattr(figure, name) for name in ("section", *PLACE, "reading", "printed")},
            "published": figure.value, "ours": value, "low": row.get("low"), "high": row.get("high"),
            "distance": None if value is None else value - figure.value,
            "within": None if value is None else figure.holds(value),
            "expected": expected, "truth": truth, "bound": figure.bound, "tolerance": figure.tolerance,
            "note": "; ".join(part for part in (_absent(figure, value, corpora), figure.note) if part),
        })  # fmt: skip
    numbers = ("published", "ours", "low", "high", "distance", "expected", "truth", "tolerance")
    return pl.DataFrame(rows, schema_overrides={**dict.fromkeys(numbers, pl.Float64()), "within": pl.Boolean()})


def _absent(figure: Published, value: float | None, corpora: Sequence[str]) -> str:
    """Say why there is no figure of ours, or that it is of fewer corpora."""
    if figure.corpus != ALL and figure.corpus not in corpora:
        return f"{CORPORA[figure.corpus]} was not given"
    if value is None:
        missing = {"gold": "no gold labels", "": "no such figure in these votes"}
        return "no classifier was trained" if figure.section == "soft labels" else missing.get(figure.reference, "")
    partial = figure.corpus == ALL and len(corpora) < len(CORPORA)
    return f"of {' and '.join(CORPORA[name] for name in corpora)} alone" if partial else ""
