"""Which named rule comes closest to the consensus or gold, what it still loses, and how often rules are right.

Takes the grading, its audit frame and the user's costs. Costs are expected ones under p: a wrong yes costs (1 - p)
times its price. With the sums of gold labels it is the rule that comes closest to gold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.names import ALL, MEAN, MULTICLASS
from moral_entropy.rules.grade import RATES
from moral_entropy.rules.grading import Grading
from moral_entropy.rules.rules import PLURALITY, RULES, rule_in_words
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import Floats

ADVISED = ("majority", "strict-majority", "any", "two-vote", "quorum-2/3", "unanimous")
"""Rules that are recommended; of equally cheap ones the first. A threshold fitted to the votes would be noise."""

ACCURACY = "accuracy"

AGAINST = {"consensus": "against the consensus", "gold": "against gold", "p": "expected by p"}
"""What a rule was held against, in words."""

NO_VOTES = "No item has a vote, so there is nothing to advise."

CAVEAT = ("In brackets: every label of the consensus taken for right, as in the paper. On public sets with gold the "
          "rates before them were off by 5 points on average, majority's missed yes by 12.")  # fmt: skip
"""What must be known of expected rates, beside which the thresholded ones stand in brackets."""

Row = dict[str, Any]


def with_leading_rates(frame: pl.DataFrame, *, expected: bool) -> pl.DataFrame:
    """Let the expected rates against the consensus go by the plain names, and those by its labels be "thresholded_…".

    A p that contains the vote share has its threshold where the vote has it: held against its labels, majority misses
    3% of the yes of MFTC's twin where it misses 47%. The expected rate says 34%. Under the paper's model its own
    definition, by labels, leads.

    Parameters
    ----------
    frame
        The audit's frame.
    expected
        Whether expected rates lead: not under the paper's model.
    """
    if not expected:
        return frame
    names = {name: f"thresholded_{name}" for name in RATES} | {f"expected_{name}": name for name in RATES}
    against_p = pl.col("reference") == "consensus"
    return frame.with_columns(metric=pl.when(against_p).then(pl.col("metric").replace(names)).otherwise("metric"))


class Advice(NamedTuple):
    """The best rule of each question against the consensus, and the best simple rule for all.

    Parameters
    ----------
    frame
        question, label, rule, cost (expected, per item), cost_of_p, excess (of the rule over p), cost_of_majority, n.
        Question "(all)" is one rule for all.
    best
        The best simple rule for all, against gold where there is any, as plain values: see `best_rule`. None where no
        item has a vote.
    text
        The best simple rule in two sentences.
    """

    frame: pl.DataFrame
    best: dict[str, Any] | None
    text: str


def advise(graded: Grading, cost_of_p_c: Floats, costs: tuple[float, float]) -> pl.DataFrame:
    """Find the rule of least expected cost among `ADVISED`, for each question and for all: the frame of `Advice`.

    Parameters
    ----------
    graded
        The cells, their sums and their names; items without votes are left out.
    cost_of_p_c
        Cost of deciding by p itself: see `cells.rule_sums`.
    costs
        Costs of a wrong yes and a wrong no.
    """
    cells, (items_c, p_c) = graded.cells, graded.sum_tcs[[0, 2], :, 0]
    pair_cp = np.column_stack([cells.rest_c, cells.chosen_c])
    yes_rc = np.array([RULES[name].scores(pair_cp, 1) == 1.0 for name in ADVISED])
    cost_rc = np.where(yes_rc, costs[0] * (items_c - p_c), costs[1] * p_c)
    rows = []
    voted_c = np.flatnonzero((cells.votes_c > 0) & (items_c > 0))
    key_cx = np.column_stack([cells.question_c, cells.label_c])[voted_c]
    groups = [
        (graded.questions[q], graded.labels[q][k], voted_c[(key_cx == (q, k)).all(axis=1)])
        for q, k in np.unique(key_cx, axis=0).tolist()
    ]
    for question, label, cell_c in [*groups, (ALL, ALL, voted_c)] if groups else []:
        n, cost_r = items_c[cell_c].sum(), cost_rc[:, cell_c].sum(axis=1)
        best = int(np.argmax(cost_r <= cost_r.min() + TIE * n * max(costs)))
        of_rule, of_p, of_majority = cost_r[best] / n, cost_of_p_c[cell_c].sum() / n, cost_r[0] / n
        # No rule is cheaper than p itself; rounding can leave about -1e-17.
        rows.append((question, label, ADVISED[best], of_rule, of_p, max(of_rule - of_p, 0.0), of_majority, round(n)))
    return pl.DataFrame(rows, schema=SCHEMAS["audit_advice"], orient="row")


def best_rule(
    frame: pl.DataFrame,
    advised: Mapping[str, pl.DataFrame],
    costs: tuple[float, float],
    yes: str = "yes",
    *,
    expected: bool = False,
) -> dict[str, Any] | None:
    """Choose the best simple rule: against gold where there is any, else against the consensus.

    Parameters
    ----------
    frame
        The audit's frame.
    advised
        By reference, the frame of `Advice`.
    costs
        Costs of a wrong yes and a missed yes.
    yes
        What a positive vote is called.
    expected
        Whether expected rates lead: see `with_leading_rates`.

    Returns
    -------
    dict
        rule and words; against: "consensus" or "gold"; cost per item, the share of wrong labels unless these have costs
        of their own; the same of majority (with more than two labels None) and, against gold, of the labels of the
        consensus; n, the items it rests on; costs; and all of it as text.
    """
    against = "gold" if "gold" in advised else "consensus"
    wrong = {(row["rule"], row["reference"]): row for row in
             wrong_labels(with_leading_rates(frame, expected=expected)).iter_rows(named=True)
             if row["question"] == ALL and row["domain"] == ALL and row["value"] is not None}  # fmt: skip
    consensus_row = wrong.get(("consensus", "gold"))
    best: dict[str, Any] = {
        "against": against,
        "expected": expected and against == "consensus",
        "consensus": consensus_row["value"] if consensus_row and against == "gold" else None,
    }
    if questions_with_many_labels(frame):
        if (row := wrong.get((PLURALITY.name, against))) is None:
            return None
        best |= {"rule": row["rule"], "cost": row["value"], "majority": None, "n": row["n"], "costs": [1.0, 1.0]}
    else:
        pooled = advised[against].filter(question=ALL)
        if pooled.is_empty():
            return None
        names = {"rule": "rule", "cost": "cost", "majority": "cost_of_majority", "n": "n"}
        best |= pooled.select(**names).row(0, named=True) | {"costs": list(costs)}
    best["words"] = rule_in_words(best["rule"], yes)
    return best | {"text": best_rule_text(best)}


def best_rule_text(best: Mapping[str, Any]) -> str:
    """Say which rule is best and what it gets wrong.

    Examples
    --------
    >>> best = {"rule": "quorum-2/3", "words": "at least 2/3 yes", "against": "consensus", "cost": 0.04,
    ...         "majority": 0.0612, "consensus": None, "costs": [1.0, 1.0]}
    >>> print(best_rule_text(best))
    Best simple rule: at least 2/3 yes. About 4 wrong labels in 100 against the consensus (majority: 6).
    """
    against = AGAINST["p" if best.get("expected") else best["against"]]
    lead, majority = f"Best simple rule: {best['words']}.", best["majority"]
    if list(best["costs"]) != [1.0, 1.0]:
        prices = f"a wrong yes costs {best['costs'][0]:g}, a missed yes {best['costs'][1]:g}"
        majority_text = "" if majority is None else f"; majority {majority:.2f}"
        return f"{lead} Cost per item {against}: {best['cost']:.2f} ({prices}{majority_text})."
    beside_it = {"majority": None if best["rule"] == "majority" else majority}
    if best["against"] == "gold":
        beside_it["the consensus"] = best["consensus"]
    parts = [f"{name}: {_in_100(share)}" for name, share in beside_it.items() if share is not None]
    beside = f" ({', '.join(parts)})" if parts else ""
    return f"{lead} {wrong_in_100(best['cost'])} {against}{beside}."


def wrong_in_100(share: float) -> str:
    """Say how many labels of a hundred are wrong.

    Examples
    --------
    >>> wrong_in_100(0.0403), wrong_in_100(0.011), wrong_in_100(0.002), wrong_in_100(0.0)
    ('About 4 wrong labels in 100', 'About 1 wrong label in 100', 'Fewer than 1 wrong label in 100', 'No wrong label')
    """
    if tie_key(share) <= 0:
        return "No wrong label"
    number = _in_100(share)
    if number == "fewer than 1":
        return "Fewer than 1 wrong label in 100"
    return f"About {number} wrong label{'s' * (number != '1')} in 100"


def _in_100(share: float) -> str:
    number = round(tie_key(100.0 * share))
    return "fewer than 1" if number == 0 and tie_key(share) > 0 else f"{number}"


def accuracy_rows(frame: pl.DataFrame) -> list[Row]:
    """Return the accuracy of every rule against every reference: by question and domain, and pooled over questions.

    Pooled over questions of which some have more than two labels, it has no interval.

    Examples
    --------
    >>> import polars as pl
    >>> row = {"question": "care", "domain": "(all)", "label": "yes", "rule": "any", "reference": "gold"}
    >>> frame = pl.DataFrame([{**row, "metric": "disagreement", "value": 0.25, "low": 0.2, "high": 0.3, "n": 40}])
    >>> [one] = accuracy_rows(frame)
    >>> one["metric"], one["value"], one["low"]
    ('accuracy', 0.75, 0.7)
    """
    right = {name: 1.0 - pl.col(column) for name, column in (("value", "value"), ("low", "high"), ("high", "low"))}
    return wrong_labels(frame).with_columns(metric=pl.lit(ACCURACY), **right).to_dicts()


def wrong_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the share of items that every rule labels otherwise than the reference: what accuracy leaves.

    The disagreement is about the labels of each question, not about one of many against the rest, and pooled.
    """
    rows, multi = frame.filter(metric="disagreement"), questions_with_many_labels(frame)
    of_label = (pl.col("label") == MULTICLASS) == pl.col("question").is_in(list(multi))
    single = rows.filter(~pl.col("question").is_in([ALL, MEAN]), of_label)
    pooled = rows.filter(question=ALL, label=ALL)
    if multi:
        # Of one question it is that question's, with its interval.
        mean = (pl.col("value") * pl.col("n")).sum() / pl.col("n").sum()
        ends = {end: pl.when(pl.len() == 1).then(pl.col(end).first()) for end in ("low", "high")}
        groups = single.drop_nulls("value").group_by("domain", "rule", "reference", "metric", maintain_order=True)
        pooled = groups.agg(value=mean, **ends, n=pl.col("n").sum(), question=pl.lit(ALL), label=pl.lit(ALL))
    return pl.concat([single, pooled.select(single.columns)]).with_columns(label=pl.lit(ALL))


def questions_with_many_labels(frame: pl.DataFrame) -> set[str]:
    """Return the questions of a frame that have more than two labels."""
    pooled = frame.filter((pl.col("label") == ALL) & ~pl.col("question").is_in([ALL, MEAN]))
    return set(pooled["question"].unique())
