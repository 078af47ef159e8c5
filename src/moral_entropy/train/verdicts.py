"""Who wins, in words: the table of a study → plain sentences, each with the reference it holds against.

Takes the joined table (`joined_table`, or `soft_labels` of a run folder). Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from moral_entropy.schemas import SOFT_LABELS
from moral_entropy.train.references import REFERENCES
from moral_entropy.train.scores import METRICS
from moral_entropy.train.study_tables import CONSTANT, MEAN

SHOWN = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
    "auc": "AUC",
}
"""How metrics are called where people read."""

PLACE = ("split", "model", "target", "reference", "question", "metric")


@dataclass(frozen=True)
class Verdict:
    """How one kind of target fares against the others, on one metric, for one model and reference.

    Parameters
    ----------
    model, reference, metric
        Where.
    base
        The kind of target in question.
    wins, level, losses
        The others it is better than, indistinguishable from, and worse than, by 90% intervals or whichever were asked.
    """

    model: str
    reference: str
    metric: str
    base: str
    wins: tuple[str, ...]
    level: tuple[str, ...]
    losses: tuple[str, ...]

    @property
    def words(self) -> str:
        """Say it in a few words.

        Examples
        --------
        >>> Verdict("tfidf", "gold", "auc", "soft", ("any",), ("share", "majority"), ()).words
        'beats any; is level with share and majority'
        """
        said = (("beats", self.wins), ("is level with", self.level), ("loses to", self.losses))
        n_others = sum(len(names) for _, names in said)
        return "; ".join(
            f"{verb} {'every other' if len(names) == n_others > 1 else listed(names)}" for verb, names in said if names
        )


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence does.

    Examples
    --------
    >>> listed(["any", "share", "majority"])
    'any, share and majority'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def joined_table(scores: pl.DataFrame, differences: pl.DataFrame) -> pl.DataFrame:
    """Lay scores and differences side by side: the table `soft_labels` of a run folder."""
    gaps = differences.drop("n", "seeds").rename({"low": "difference_low", "high": "difference_high"})
    both = scores.join(gaps, on=PLACE, how="left", maintain_order="left")
    return both.select(SOFT_LABELS.names()).match_to_schema(SOFT_LABELS)


def overall(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows over all splits and questions."""
    splits = table["split"].unique().to_list()
    split = splits[0] if len(splits) == 1 else MEAN
    return table.filter(split=split, question=MEAN)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    """Tell for every model, reference and metric whom the base beats, over all questions and splits."""
    rows = overall(table).filter(pl.col("better").is_not_null())
    found = []
    for model in rows["model"].unique(maintain_order=True):
        for reference in REFERENCES:
            for metric in METRICS:
                own = rows.filter(model=model, reference=reference, metric=metric)
                if own.height:
                    found.append(_verdict(own, base_of(table), model, reference, metric))
    return found


def base_of(table: pl.DataFrame) -> str:
    """Name the kind of target the others were compared with: it has scores and no differences."""
    without = table.filter(pl.col("better").is_null(), pl.col("model") != CONSTANT)["target"].unique(
        maintain_order=True
    )
    return str(without[0])


def _verdict(own: pl.DataFrame, base: str, model: str, reference: str, metric: str) -> Verdict:
    sides = {
        side: tuple(row["target"] for row in own.iter_rows(named=True) if _side(row["better"], base) == side)
        for side in ("wins", "level", "losses")
    }
    return Verdict(model, reference, metric, base, **sides)


def _side(better: str, base: str) -> str:
    return "wins" if better == base else "level" if better == "neither" else "losses"


def answers(found: Sequence[Verdict]) -> dict[str, list[str]]:
    """Say by reference how the base fares: models that fare alike in one sentence, metrics likewise.

    Examples
    --------
    >>> one = Verdict("tfidf", "gold", "auc", "soft", ("any",), (), ())
    >>> answers([one, Verdict("minilm", "gold", "auc", "soft", ("any",), (), ())])
    {'gold': ['tfidf and minilm: soft beats any on AUC.']}
    """
    said: dict[str, dict[str, list[str]]] = {}
    for model, reference in dict.fromkeys((one.model, one.reference) for one in found):
        own = [one for one in found if (one.model, one.reference) == (model, reference)]
        said.setdefault(reference, {}).setdefault(_fares(own), []).append(model)
    return {
        reference: [f"{listed(models)}: {words}" for words, models in by_words.items()]
        for reference, by_words in said.items()
    }


def _fares(own: Sequence[Verdict]) -> str:
    by_words: dict[str, list[str]] = {}
    for one in own:
        by_words.setdefault(one.words, []).append(SHOWN[one.metric])
    parts = [f"{words} on {listed(metrics)}" for words, metrics in by_words.items()]
    return f"{own[0].base} " + ". It ".join(parts) + "."


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


def show_gap(metric: str, value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Write a difference with its sign and interval; of accuracies in percentage points.

    Examples
    --------
    >>> show_gap("accuracy", -0.012, -0.02, -0.004)
    '−1.2 pp (−2.0 to −0.4)'
    """
    if value is None:
        return "–"
    digits = 1 if metric == "accuracy" else 3 if metric == "auc" else 4
    scale, unit = (100, " pp") if metric == "accuracy" else (1, "")

    def signed(number: float) -> str:
        text = f"{scale * number:+.{digits}f}"
        return text.replace("-", "−") if float(text) else text[1:]

    ends = "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"
    return f"{signed(value)}{unit}{ends}"


def score_rows(table: pl.DataFrame, model: str, reference: str) -> Iterator[tuple[str, dict[str, dict[str, object]]]]:
    """Give each target's rows by metric, over all questions and splits: the base first, the constant last."""
    own = overall(table).filter(pl.col("model").is_in([model, CONSTANT]), reference=reference)
    for kind, target in own.select("model", "target").unique(maintain_order=True).iter_rows():
        rows = own.filter(model=kind, target=target).to_dicts()
        yield (CONSTANT if kind == CONSTANT else str(target)), {row["metric"]: row for row in rows}
