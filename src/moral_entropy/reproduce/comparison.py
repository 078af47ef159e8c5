"""The paper's figures next to ours, with the difference and a verdict for each.

Takes both, returns a table. Touches no files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moral_entropy.names import ALL
from moral_entropy.reproduce.published import CORPORA, Published

if TYPE_CHECKING:
    import polars as pl

SAME, DIFFERS, NOT_COMPARABLE = "same", "differs", "not comparable"
VERDICTS = (SAME, DIFFERS, NOT_COMPARABLE)

COPIED = ("texts", "annotations", "annotations_per_text", "annotators")
"""Metrics in which a twin of full size equals its corpus by construction."""


@dataclass(frozen=True)
class Basis:
    """The data that our figures were computed from.

    Parameters
    ----------
    corpora
        Short names of the corpora.
    twins
        Whether they are simulated.
    scale
        Size of the twins.
    """

    corpora: tuple[str, ...]
    twins: bool = False
    scale: float = 1.0


def compare_figures(published: tuple[Published, ...], ours: pl.DataFrame, basis: Basis) -> pl.DataFrame:
    """Return one row per published figure, with ours next to it.

    Parameters
    ----------
    published
        The paper's figures.
    ours
        Our figures, from `grading` and `figures`.
    basis
        The data behind ours, which decides what can be compared.

    Returns
    -------
    pl.DataFrame
        section, corpus, domain, foundation, rule, metric, published, ours, low, high, difference, verdict; then
        reference, reading, printed, bound, tolerance, within (whether ours is within it, comparable or not), note.

    Examples
    --------
    >>> import polars as pl
    >>> figure = Published("audit", "mftc", "fpr", 0.2, 0.005, rule="any", reference="consensus")
    >>> place = dict(zip(("corpus", "domain", "foundation", "rule", "reference", "metric"), figure.place))
    >>> ours = pl.DataFrame([{**place, "value": 0.25, "low": 0.24, "high": 0.26}])
    >>> compare_figures((figure,), ours, Basis(("mftc",)))["verdict"][0]
    'differs'
    """
    import polars as pl

    keys = ("corpus", "domain", "foundation", "rule", "reference", "metric")
    found = {tuple(row[key] for key in keys): row for row in ours.iter_rows(named=True)}
    rows = [_row(figure, found.get(figure.place), basis) for figure in published]
    numbers = dict.fromkeys(("published", "ours", "low", "high", "difference", "tolerance"), pl.Float64())
    return pl.DataFrame(rows, schema_overrides={**numbers, "within": pl.Boolean()})


def _row(figure: Published, found: dict[str, Any] | None, basis: Basis) -> dict[str, Any]:
    value, low, high = (found or {}).get("value"), (found or {}).get("low"), (found or {}).get("high")
    within = None if value is None else figure.holds(value)
    why = _why_not(figure, value, basis)
    return {
        "section": figure.section,
        "corpus": figure.corpus,
        "domain": figure.domain,
        "foundation": figure.foundation,
        "rule": figure.rule,
        "metric": figure.metric,
        "published": figure.value,
        "ours": value,
        "low": low,
        "high": high,
        "difference": None if value is None else value - figure.value,
        "verdict": NOT_COMPARABLE if why else SAME if within else DIFFERS,
        "reference": figure.reference,
        "reading": figure.reading,
        "printed": figure.printed,
        "bound": figure.bound,
        "tolerance": figure.tolerance,
        "within": within,
        "note": "; ".join(part for part in (why, figure.note) if part),
    }


def _why_not(figure: Published, value: float | None, basis: Basis) -> str:
    """Return why a figure cannot be compared; an empty text if it can."""
    if figure.section == "soft labels" and value is None:
        return "no classifier was trained"
    if figure.corpus != ALL and figure.corpus not in basis.corpora:
        return f"{CORPORA[figure.corpus]} was not given"
    if value is None:
        return "no gold labels" if figure.reference == "gold" else "no such figure in these votes"
    if figure.corpus == ALL and len(basis.corpora) < len(CORPORA):
        return f"of {' and '.join(CORPORA[name] for name in basis.corpora)} alone"
    if basis.twins and (figure.metric not in COPIED or basis.scale != 1):
        return "simulated votes"
    return ""
