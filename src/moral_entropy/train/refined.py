"""What became of refining: a table of p with and without the text, grades against gold, and sentences.

Takes what `refine` found. Grades of recalibrated probabilities are cross-fitted: an item's own gold has no part in
them. Touches no files.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.recalibration import FEWEST, recalibrate
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.options import RefineOptions
from moral_entropy.train.refine import FLOOR, Refined, RefinedQuestion, refine
from moral_entropy.train.scores import Standard, score
from moral_entropy.train.tfidf import import_sklearn
from moral_entropy.votes.table import UNKNOWN, Floats, Votes

GRADES = ("log_loss", "accuracy", "auc")


@dataclass(frozen=True)
class Grade:
    """Scores of one question against gold: of the votes alone and of votes and text, by what was done to both.

    Parameters
    ----------
    question
        Which.
    n_gold
        Items with gold.
    recalibrated
        Whether both were recalibrated by the gold of other items.
    votes, refined
        Log loss (nats per item), accuracy and AUC.
    gain, gain_se
        Log loss that the text saves, and its standard error over items.
    """

    question: str
    n_gold: int
    recalibrated: bool
    votes: dict[str, float]
    refined: dict[str, float]
    gain: float
    gain_se: float


def grade_refined(refined: Refined, *, seed: int = 0) -> list[Grade]:
    """Grade votes alone, and votes and text, against gold; then the same, both recalibrated by other items' gold."""
    return [
        _grade(one, recalibrated, seed)
        for recalibrated in (False, True)
        for one in refined.questions
        if np.count_nonzero(one.gold_i != UNKNOWN) >= FEWEST
    ]


def _grade(one: RefinedQuestion, recalibrated: bool, seed: int) -> Grade:
    both: tuple[Floats, ...] = (one.p_ik, one.refined_ik)
    if recalibrated:
        both = tuple(recalibrate(p_ik, one.gold_i, seed=seed)[0] for p_ik in both)
    known_i = np.flatnonzero(one.gold_i != UNKNOWN)
    truth_ik = np.eye(one.p_ik.shape[1])[one.gold_i[known_i]]
    standard = Standard(truth_ik, truth_ik, np.ones(len(known_i)))
    votes, refined = (score(p_ik[known_i], standard) for p_ik in both)
    before_i, after_i = (-np.log(np.clip(p_ik[known_i, one.gold_i[known_i]], FLOOR, 1.0)) for p_ik in both)
    gain_i = before_i - after_i
    return Grade(
        question=one.question,
        n_gold=len(known_i),
        recalibrated=recalibrated,
        votes={name: float(votes[name][0]) for name in GRADES},
        refined={name: float(refined[name][0]) for name in GRADES},
        gain=float(gain_i.mean()),
        gain_se=float(gain_i.std(ddof=1)) / len(gain_i) ** 0.5,
    )


def refined_frame(refined: Refined, *, seed: int = 0) -> pl.DataFrame:
    """Return what was found as a table: item, question, label, p, p_text, p_refined, p_refined_calibrated.

    A question of two labels has one row per item, about its positive label; one of more has one row per label. The
    last column is recalibrated by the gold of other items, and null where there is too little gold.
    """
    parts = []
    for one in refined.questions:
        shown = slice(1, None) if len(one.labels) == 2 else slice(None)
        labels = one.labels[shown]
        calibrated_ik, learnt = recalibrate(one.refined_ik, one.gold_i, seed=seed)
        n_rows = len(refined.items) * len(labels)
        columns = {"p": one.p_ik, "p_text": one.text_ik, "p_refined": one.refined_ik}
        parts.append(
            pl.DataFrame(
                {
                    "item": refined.items.gather(np.repeat(np.arange(len(refined.items)), len(labels))),
                    "question": pl.repeat(one.question, n_rows, eager=True),
                    "label": pl.Series(list(labels) * len(refined.items), dtype=pl.String),
                    **{name: value_ik[:, shown].ravel() for name, value_ik in columns.items()},
                    "p_refined_calibrated": pl.Series(calibrated_ik[:, shown].ravel())
                    if learnt.used
                    else pl.repeat(None, n_rows, dtype=pl.Float64, eager=True),
                }
            )
        )
    return pl.concat(parts)


def refined_lines(refined: Refined, grades: list[Grade]) -> list[str]:
    """Say what came of it: the weights, and what gold says of the votes alone and of votes and text."""
    weights = ", ".join(f"{one.question} {one.weight:.2f}" for one in refined.questions)
    lines = [f"weight of the text: {weights} (0: it is not heard; 1: it counts as evidence in full)"]
    for recalibrated in (False, True):
        own = [grade for grade in grades if grade.recalibrated == recalibrated]
        if own:
            lines.append(_graded_line(own))
    if not grades:
        lines.append(
            "No gold, so nobody knows whether the text made p better. Votes that share a mistake teach it to it."
        )
    return lines


def _graded_line(own: list[Grade]) -> str:
    how = "both recalibrated by the gold of other items" if own[0].recalibrated else "as they are"
    gain = sum(one.gain for one in own) / len(own)
    # Questions are about the same items, so their errors may go together: the mean of the standard errors is safe.
    error = sum(one.gain_se for one in own) / len(own)
    verb = "better" if gain > 2 * error else "worse" if gain < -2 * error else "neither better nor worse"
    loss, accuracy, auc = (
        tuple(
            sum(scores[name] for scores in of) / len(of)
            for of in ([one.votes for one in own], [one.refined for one in own])
        )
        for name in GRADES
    )
    return (
        f"against gold, {how}: log loss {loss[0]:z.3f} by votes alone, {loss[1]:z.3f} with the text ({verb}); accuracy "
        f"{accuracy[0]:.1%} and {accuracy[1]:.1%}; AUC {auc[0]:z.3f} and {auc[1]:z.3f}"
    )


# --- Beside the other tables of a run --------------------------------------------------------------------------------


def check_refinable(votes: Votes) -> None:
    """Refuse votes without texts, and a machine without scikit-learn, before anything is fitted."""
    if votes.texts is None:
        msg = 'refine needs texts, and the votes have none. Name their column with text="COLUMN" (CLI: --text COLUMN).'
        raise TrainError(msg)
    import_sklearn()


def refine_for_run(
    consensus: Consensus, *, seed: int = 0, advance: Advance = ignore
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Refine a consensus with tfidf; return the table `refined` of the run, and facts for its manifest."""
    found = refine(consensus, RefineOptions(seed=seed), advance=advance)
    grades = grade_refined(found, seed=seed)
    facts = {
        "weights": {one.question: one.weight for one in found.questions},
        "grades": [_plain(grade) for grade in grades],
        "notes": list(found.notes),
        "sentences": refined_lines(found, grades),
    }
    return refined_frame(found, seed=seed), facts


def _plain(grade: Grade) -> dict[str, Any]:
    """Return a grade as values for a JSON file, which has no NaN."""
    sides = {
        side: {name: None if np.isnan(value) else value for name, value in getattr(grade, side).items()}
        for side in ("votes", "refined")
    }
    return {**asdict(grade), **sides}
