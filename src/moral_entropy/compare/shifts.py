"""Shared items of two runs → how prevalence and entropy changed, and how well labels and p agree.

Every figure by question and domain, and pooled over questions, with an interval over resampled items. It says how much
the figure depends on which items were sampled; how sure each fit is of its items is another matter (`p_low`, `p_high`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.compare.pair import KEY, QuestionPair
from moral_entropy.compare.resample import Columns, Sums, resampled_sums
from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.rules.intervals import central_interval
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.votes.table import Floats, Ints

ENTROPIES = ("entropy", *PARTS, BETWEEN)

SHIFTS = pl.Schema(
    {
        **dict.fromkeys(("question", "domain", "label", "metric"), pl.String()),
        **dict.fromkeys(("a", "b", "change", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
    }
)
AGREEMENT = pl.Schema(
    {
        **dict.fromkeys(("question", "domain", "metric"), pl.String()),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
    }
)


@dataclass(frozen=True, eq=False)
class Figures:
    """A figure and its interval. Axis: **d** domain, all of them together last."""

    value_d: Floats
    low_d: Floats
    high_d: Floats

    @classmethod
    def over(cls, value_ds: Floats, mass: float) -> Figures:
        """Take the figure from the first column and its interval from the others, one column per replicate."""
        return cls(value_ds[:, 0], *central_interval(value_ds[:, 1:], mass))

    def at(self, d: int, name: str = "value") -> dict[str, float]:
        """Return the figure of one domain under a name, and its interval."""
        return {name: float(self.value_d[d]), "low": float(self.low_d[d]), "high": float(self.high_d[d])}


def shifts_and_agreement(
    pairs: Sequence[QuestionPair], *, replicates: int, seed: int, mass: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compute the tables of changes and of agreement.

    Parameters
    ----------
    pairs
        The shared items.
    replicates, seed
        Of the resampling.
    mass
        Of the intervals.
    """
    domains = _domains(pairs)
    items = pl.concat([pair.frame.select(KEY, "count_a") for pair in pairs]).unique(KEY, keep="first").sort(KEY)
    columns = [_columns(pair, items[KEY], domains) for pair in pairs]
    sums_q = resampled_sums(
        columns, items["count_a"].to_numpy(), n_domains=len(domains), replicates=replicates, seed=seed
    )
    names = [*domains, ALL]
    groups = [(pair.question, pair.labels, sums) for pair, sums in zip(pairs, sums_q, strict=True)]
    if len(pairs) > 1:
        groups.append((ALL, (ALL, ALL), _pooled(pairs, sums_q)))
    shifts = [row for group in groups for row in _shift_rows(*group, names, mass)]
    agreement = [row for group in groups for row in _agreement_rows(*group, names, mass)]
    return _frame(shifts, SHIFTS), _frame(agreement, AGREEMENT)


def _frame(rows: Sequence[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, strict=False).with_columns(pl.col(pl.Float64).fill_nan(None))


def _domains(pairs: Sequence[QuestionPair]) -> list[str]:
    """Return the domains of run a, sorted; items without one are in the last."""
    found = pl.concat([pair.frame["domain_a"] for pair in pairs]).unique()
    return list(dict.fromkeys([*found.drop_nulls().sort().to_list(), *([NO_DOMAIN] if found.null_count() else [])]))


def _columns(pair: QuestionPair, keys: pl.Series, domains: Sequence[str]) -> Columns:
    """Collect the columns to add up, every row as often as it counts."""
    frame, made = pair.frame, {"count": np.ones(pair.frame.height)}
    for k in _targets(pair.labels):
        made |= _two_sided(f"p:{k}", pair.a_ik[:, k], pair.b_ik[:, k])
    for part in (one for one in ENTROPIES if f"{one}_a" in frame.columns):
        made |= _two_sided(part, *(frame[f"{part}_{side}"].fill_null(np.nan).to_numpy() for side in "ab"))
    said_ai, said_bi = (_codes(frame[f"label_{side}"], pair.labels) for side in "ab")
    made["same"] = (said_ai == said_bi).astype(float)
    for k in range(len(pair.labels)):
        made |= {f"said_a:{k}": (said_ai == k).astype(float), f"said_b:{k}": (said_bi == k).astype(float)}
    made |= _moments(pair)
    value_im = np.column_stack(list(made.values())) * frame["count_a"].to_numpy()[:, None]
    item_i = _codes(frame[KEY], keys)
    return Columns(tuple(made), value_im, item_i, _codes(frame["domain_a"].fill_null(NO_DOMAIN), domains))


def _targets(labels: Sequence[str]) -> list[int]:
    """Return the labels whose prevalence is shown, as indices: the positive one of two, all of more."""
    return [1] if len(labels) == 2 else list(range(len(labels)))


def _two_sided(name: str, a_i: Floats, b_i: Floats) -> dict[str, Floats]:
    # The difference is taken item by item, so that equal runs differ by exactly 0.
    return {f"a:{name}": a_i, f"b:{name}": b_i, f"change:{name}": b_i - a_i}


def _codes(names: pl.Series, known: Sequence[str] | pl.Series) -> Ints:
    """Return the index of each name among those known, which are all different."""
    places = pl.DataFrame({"name": known}, schema={"name": pl.String}).with_row_index("place")
    found = names.alias("name").to_frame().join(places, on="name", how="left", maintain_order="left")
    return np.asarray(found["place"].cast(pl.Int64).to_numpy())


def _moments(pair: QuestionPair) -> dict[str, Floats]:
    """Return what a correlation needs, with p centred, and how far each item's distribution moved."""
    targets, middle = _targets(pair.labels), 1.0 / len(pair.labels)
    a_ik, b_ik = pair.a_ik[:, targets] - middle, pair.b_ik[:, targets] - middle
    products = {"a": a_ik, "b": b_ik, "aa": a_ik * a_ik, "bb": b_ik * b_ik, "ab": a_ik * b_ik}
    return {
        "moved": moved(pair),
        "entries": np.full(len(a_ik), float(len(targets))),
        **{f"moment_{name}": value_ik.sum(axis=1) for name, value_ik in products.items()},
    }


def moved(pair: QuestionPair) -> Floats:
    """Compute the total variation between each item's distributions; with two labels the absolute change of p."""
    return np.asarray(np.abs(pair.b_ik - pair.a_ik).sum(axis=1) / 2.0)


def _pooled(pairs: Sequence[QuestionPair], sums_q: Sequence[Sums]) -> Sums:
    """Add up the questions; figures of single labels only where all questions have two."""
    alike = all(len(pair.labels) == 2 for pair in pairs)
    names = [name for name in sums_q[0] if alike or ":" not in name or name.partition(":")[2] in ENTROPIES]
    return {name: np.sum([sums[name] for sums in sums_q], axis=0) for name in names}


def _ratio(over: Floats, under: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(under > 0, over / under, np.nan))


def _shift_rows(
    question: str, labels: Sequence[str], sums: Sums, domains: Sequence[str], mass: float
) -> Iterator[dict[str, Any]]:
    shown = [(f"p:{k}", "prevalence", labels[k]) for k in _targets(labels)] + [(part, part, ALL) for part in ENTROPIES]
    shown = [one for one in shown if f"a:{one[0]}" in sums]
    n_ds = sums["count"]
    sides = {name: [_ratio(sums[f"{side}:{name}"], n_ds)[:, 0] for side in "ab"] for name, _, _ in shown}
    changes = {name: Figures.over(_ratio(sums[f"change:{name}"], n_ds), mass) for name, _, _ in shown}
    for d, domain in _filled(sums, domains):
        for name, metric, label in shown:
            a, b = (float(value_d[d]) for value_d in sides[name])
            row = {"question": question, "domain": domain, "label": label, "metric": metric, "a": a, "b": b}
            yield {**row, **changes[name].at(d, "change"), "n": round(n_ds[d, 0])}


def _agreement_rows(
    question: str, labels: Sequence[str], sums: Sums, domains: Sequence[str], mass: float
) -> Iterator[dict[str, Any]]:
    n_ds = sums["count"]
    values = {
        "agreement": _ratio(sums["same"], n_ds),
        "kappa": _kappa(sums, len(labels)),
        "correlation": _correlation(sums),
        "moved": _ratio(sums["moved"], n_ds),
    }
    figures = {metric: Figures.over(value_ds, mass) for metric, value_ds in values.items()}
    for d, domain in _filled(sums, domains):
        for metric, figure in figures.items():
            row = {"question": question, "domain": domain, "metric": metric}
            yield {**row, **figure.at(d), "n": round(n_ds[d, 0])}


def _filled(sums: Sums, domains: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Return the domains that have items, all together first; only all together where no item has a domain."""
    last = len(domains) - 1
    yield last, ALL
    if list(domains) != [NO_DOMAIN, ALL]:
        yield from ((d, name) for d, name in enumerate(domains[:-1]) if sums["count"][d, 0] > 0)


def _kappa(sums: Sums, n_labels: int) -> Floats:
    """Compute Cohen's kappa of the labels; none where chance alone would always agree."""
    if "said_a:0" not in sums:
        return np.full_like(sums["count"], np.nan)
    n_ds = sums["count"]
    chance_ds = sum(
        (_ratio(sums[f"said_a:{k}"], n_ds) * _ratio(sums[f"said_b:{k}"], n_ds) for k in range(n_labels)),
        start=np.zeros_like(n_ds),
    )
    return _ratio(_ratio(sums["same"], n_ds) - chance_ds, 1.0 - chance_ds)


def _correlation(sums: Sums) -> Floats:
    """Compute Pearson's correlation of p, with more than two labels over all of them; none where p does not vary."""
    n_ds = sums["entries"]
    mean = {name: _ratio(sums[f"moment_{name}"], n_ds) for name in ("a", "b", "aa", "bb", "ab")}
    spread = {x + y: mean[x + y] - mean[x] * mean[y] for x, y in ("aa", "bb", "ab")}
    # Below this a variance is rounding.
    varies_ds = np.minimum(spread["aa"], spread["bb"]) > 1e-15
    with np.errstate(invalid="ignore", divide="ignore"):
        value_ds = spread["ab"] / np.sqrt(spread["aa"] * spread["bb"])
    return np.where(varies_ds, np.clip(value_ds, -1.0, 1.0), np.nan)
