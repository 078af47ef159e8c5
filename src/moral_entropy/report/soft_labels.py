"""The table `soft_labels` of a run → who wins, in words: sentences by reference, and cells with scores.

`moral-entropy study` leaves the table in the run folder. The section "Do soft labels win?" of the report and the page
of the study itself are both made from what is here. Touches no files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from moral_entropy.names import MEAN
from moral_entropy.runs.run import Run

METRICS = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
    "auc": "AUC",
}
"""The metrics of the table, with the names that readers see."""

CONSTANT = "constant"
"""The model that has read nothing: it answers every text with the mean soft target of the training items."""

HELD_OUT = "held-out votes"
REFERENCES = {
    "consensus": "the Bayesian consensus: accuracy and AUC against z*, 1 where p is ½ or more, the rest against p",
    "majority": "the label of at least half of the votes",
    "gold": "labels known from elsewhere",
    "votes": "every vote cast on the tested items",
    HELD_OUT: "votes that were taken away before the targets were made",
}
"""What models are scored against, in the order of the tables."""

FAVOURED = {
    "consensus": "`soft` and `hard` are made from it, so a model trained on them is favoured by construction",
    "majority": "`majority` is the same rule on the training items, so it is favoured by construction",
    "gold": "no target is made from it; whether it is the thing the votes are about is for you to know",
    "votes": "no target is made from these votes, but `share` aims at the chance of a vote while `soft` aims at the "
    "label behind the votes: on log loss, Brier score and calibration `share` is favoured",
    HELD_OUT: "no target had any part in these votes; as with all votes, `share` aims at just what log loss, Brier "
    "score and calibration reward here",
}
"""Which targets each reference favours: none is neutral."""

MAX_ROWS = 400
"""Rows of the table in the report; all are in soft_labels.parquet."""


def soft_labels(run: Run) -> dict[str, Any] | None:
    """Return what the section of the report shows; None where the run has no study."""
    table = run.table("soft_labels")
    if table.is_empty():
        return None
    rows = overall(table)
    against = [
        {
            "reference": name,
            "meaning": REFERENCES[name],
            "favours": FAVOURED[name].replace("`", ""),
            "sentences": said,
            "rows": _rows(rows.filter(reference=name)),
        }
        for name, said in sentences(table).items()
    ]
    return {"metrics": list(METRICS.values()), "seeds": max(table["seeds"].to_list()), "against": against}


def _rows(own: pl.DataFrame) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return model, target and (score, difference) per metric."""
    found = []
    for model, target in own.select("model", "target").unique(maintain_order=True).head(MAX_ROWS).iter_rows():
        by_metric = {row["metric"]: row for row in own.filter(model=model, target=target).iter_rows(named=True)}
        cells = [(show(metric, by_metric[metric]["value"]), show_difference(by_metric[metric])) for metric in METRICS]
        found.append((str(model), "–" if model == CONSTANT else str(target), cells))
    return found


def overall(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows over all splits and questions."""
    return one_split(table).filter(question=MEAN)


def one_split(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the only split, or the mean over several."""
    splits = table["split"].unique().to_list()
    return table.filter(split=splits[0] if len(splits) == 1 else MEAN)


def sentences(table: pl.DataFrame) -> dict[str, list[str]]:
    """Say by reference whom the base target beats; models with the same outcome share a sentence, metrics likewise."""
    rows = overall(table).filter(pl.col("better").is_not_null())
    base = _base(table)
    said: dict[str, dict[str, list[str]]] = {}
    for model in rows["model"].unique(maintain_order=True):
        for reference in REFERENCES:
            own = rows.filter(model=model, reference=reference)
            if own.height:
                said.setdefault(reference, {}).setdefault(_all_metrics(own, base), []).append(model)
    return {
        reference: [f"{in_a_sentence(models)}: {words}" for words, models in by_words.items()]
        for reference, by_words in said.items()
    }


def _base(table: pl.DataFrame) -> str:
    """Name the target that the others were compared with: it has scores and no differences."""
    alone = table.filter(pl.col("better").is_null(), pl.col("model") != CONSTANT)
    return str(alone["target"][0])


def _all_metrics(own: pl.DataFrame, base: str) -> str:
    by_words: dict[str, list[str]] = {}
    for metric, name in METRICS.items():
        rows = own.filter(metric=metric)
        if rows.height:
            words = outcome(dict(zip(rows["target"], rows["better"], strict=True)), base)
            by_words.setdefault(words, []).append(name)
    parts = [f"{words} on {in_a_sentence(metrics)}" for words, metrics in by_words.items()]
    return f"{base} " + ". It ".join(parts) + "."


def outcome(better: Mapping[str, str], base: str) -> str:
    """Say whom the base beats, from who is better: the base, the other target or "neither".

    Examples
    --------
    >>> outcome({"any": "soft", "share": "neither", "majority": "neither"}, "soft")
    'beats any; is level with share and majority'
    """
    verbs = {"beats": (base,), "is level with": ("neither",), "loses to": tuple(better)}
    parts = []
    for verb, winners in verbs.items():
        others = [target for target, winner in better.items() if winner in winners]
        if others:
            parts.append(f"{verb} {'every other' if len(others) == len(better) > 1 else in_a_sentence(others)}")
    return "; ".join(parts)


def in_a_sentence(names: Sequence[str]) -> str:
    """Write names as a sentence does.

    Examples
    --------
    >>> in_a_sentence(["any", "share", "majority"])
    'any, share and majority'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def show(metric: str, value: float | None) -> str:
    """Write a score: accuracy in per cent, the rest with three digits or four.

    Examples
    --------
    >>> show("accuracy", 0.9123), show("log_loss", 0.25), show("auc", None)
    ('91.2%', '0.2500', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:z.1f}%" if metric == "accuracy" else f"{value:z.{3 if metric == 'auc' else 4}f}"


def show_difference(row: Mapping[str, Any]) -> str:
    """Write the difference of a row with its sign and interval, of accuracies in percentage points; "" if none.

    Examples
    --------
    >>> show_difference({"metric": "accuracy", "difference": -0.012, "difference_low": -0.02, "difference_high": 0})
    '−1.2 pp (−2.0 to 0.0)'
    """
    metric, value, low, high = (row[name] for name in ("metric", "difference", "difference_low", "difference_high"))
    if value is None:
        return ""
    digits = 1 if metric == "accuracy" else 3 if metric == "auc" else 4
    scale, unit = (100, " pp") if metric == "accuracy" else (1, "")

    def signed(number: float) -> str:
        text = f"{scale * number:+.{digits}f}"
        return text.replace("-", "−") if float(text) else text[1:]

    ends = "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"
    return f"{signed(value)}{unit}{ends}"
