"""Run → its judges, best first: how right they are, whom they copy, what each adds, whom to drop, who may replace whom.

Against known answers where there are any; against the consensus of the others, which takes the side of judges who err
together, where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.findings import many
from moral_entropy.judges.estimates import CLEAR, Answers, Estimate, corrected_means, known_mean
from moral_entropy.judges.findings import SIDE
from moral_entropy.judges.known import ENOUGH, MOST_JUDGES, KnownItems, known_items, questions_of, vote_matrix
from moral_entropy.judges.pairwise import POSITIONS, RANKING, is_pairwise, rank_pairs
from moral_entropy.judges.panel import ADDED, PANELS, Panel, added_by_each, best_panels, effective_judges, read_panel
from moral_entropy.judges.people import may_replace
from moral_entropy.judges.values import bounded, quantities, schema
from moral_entropy.options import JudgeOptions, values_by_label
from moral_entropy.runs.run import Question, Run, as_run
from moral_entropy.ties import DECIMALS, highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_ITEMS_VOTED = 0.5
"""Share of the items that judges must vote on, in the median, for panels of them to be compared."""

CLEARLY = (1.5, 4.0)
"""How many times more probable a label must be than that of the best judge to replace it: the first where this gets
clearly more known answers right. Chosen in simulated panels (seeds 5,200 to 5,399): where nothing betters the best
judge, labels were right 0.3 points less often than its own without this, and 0.01 with it."""

JUDGES = pl.Schema(
    schema("text question judge role", "int n_votes", "float missing", "int n_known",
           bounded("right", "right_all", "sensitivity", "specificity", "agrees"), "text counted_with")
    | ADDED | schema("text advice")
)  # fmt: skip
EFFECTIVE = schema("text question", "int judges", "float effective low high")
LABELS = schema("text question item label", "float p", "bool known")

TABLES = ("panels", "effective", "replace", "labels", "ranking", "positions")
"""Tables of `Judges` besides that of the judges themselves."""


@dataclass(frozen=True, eq=False)
class Judges:
    """What is known of the judges of a run.

    Parameters
    ----------
    frame
        One row per question and judge, best first: `JUDGES`. `right` is the share of known answers that the judge
        gave, `right_all` the share of all its votes that are right, `agrees` how often it says what the others let one
        expect, `nats` and `saved` what it adds to those kept above it, `advice` whether to keep it. Judges are ranked
        by `right_all`, without enough known answers by `agrees`.
    panels
        The best panel of every size: `PANELS`.
    effective
        How many independent judges the panel is worth, where answers are known: `EFFECTIVE`.
    replace
        Whether a language model may replace the people: `REPLACE`.
    labels
        Labels that weigh judges by known answers, where there are enough: `LABELS`.
    ranking, positions
        Of comparisons of two: systems or items by their strength, and judges by what they make of the order.
    notes
        What a reader must know, in sentences.
    """

    frame: pl.DataFrame
    panels: pl.DataFrame
    effective: pl.DataFrame
    replace: pl.DataFrame
    labels: pl.DataFrame
    ranking: pl.DataFrame
    positions: pl.DataFrame
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the labels as values that JSON has."""
        tables = {name: getattr(self, name).to_dicts() for name in TABLES if name != "labels"}
        return {"judges": self.frame.to_dicts(), **tables, "notes": list(self.notes)}


def describe_judges(run: Run | str | Path, options: JudgeOptions | None = None) -> Judges:
    """Describe the judges of a run.

    Parameters
    ----------
    run
        The run, or its folder.
    options
        Who they are, and how the test of replacement is made.
    """
    run, options = as_run(run), options or JudgeOptions()
    parts = [_of_question(run, question, options) for question in questions_of(run, options.question)]
    joined = {name: pl.concat([getattr(part, name) for part in parts]) for name in ("frame", *TABLES)}
    return Judges(**joined, notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)))


def _of_question(run: Run, question: Question, options: JudgeOptions) -> Judges:
    columns = {name: getattr(options, name) for name in ("cluster_column", "strata_column")}
    reference = known_items(run, question, roles=options.roles, **columns)
    panel, mass = read_panel(run, reference), run.interval if options.interval is None else options.interval
    graded = 1 < len(panel.judges) <= MOST_JUDGES and reference.n_known >= ENOUGH
    frame = _frame(panel, graded, mass)
    # A crowd whose members vote on few items each is no panel to choose from.
    complete = graded and float(np.median((panel.vote_ji != UNKNOWN).mean(axis=1))) >= MOST_ITEMS_VOTED
    effective = effective_judges(panel, mass) if complete else None
    labels, label_note = _labels(run, reference, frame)
    ranking, positions, pair_notes = RANKING.to_frame(), POSITIONS.to_frame(), list[str]()
    if is_pairwise(run, question):
        ranking, positions, pair_notes = rank_pairs(run, question, mass)
    panels = best_panels(panel) if complete else PANELS.to_frame()
    quantity = quantities(question, values_by_label(options.values, options.called("values")))[0]
    replace = may_replace(run, reference, quantity, options.epsilon)
    notes = (*reference.notes, *label_note, *pair_notes, *_notes(run, panel))
    worth_rows = [(question.name, len(panel.judges), *effective)] if effective else []
    worth = pl.DataFrame(worth_rows, EFFECTIVE, orient="row")
    return Judges(frame, panels, worth, replace, labels, ranking, positions, notes)


def _frame(panel: Panel, graded: bool, mass: float) -> pl.DataFrame:
    rows = [_row(panel, j, mass) for j in range(len(panel.judges))]
    by = "right_all" if panel.reference.n_known >= ENOUGH else "agrees"
    rank = sorted(range(len(rows)), key=lambda j: (-round(rows[j].get(by) or -1.0, DECIMALS), rows[j]["judge"]))
    added = added_by_each(panel, rank).to_dicts() if graded else []
    for place, j in enumerate(rank):
        rows[j] |= added[place] if graded else {}
        rows[j]["advice"] = _advice(panel, rows[j], [rows[i]["judge"] for i in rank[:place]])
    return pl.DataFrame([{name: rows[j].get(name) for name in JUDGES} for j in rank], schema=JUDGES)


def _row(panel: Panel, j: int, mass: float) -> dict[str, Any]:
    reference, question, voted = panel.reference, panel.reference.question, panel.vote_ji[j] != UNKNOWN
    vote_i, gold_i, at_i = panel.vote_ji[j][voted], panel.gold_i[voted], panel.at_i[voted]
    weight_i, cluster_i, known_i = panel.weight_i[voted], reference.cluster_i[at_i], gold_i != UNKNOWN
    right_i = (vote_i == gold_i).astype(float)
    others_ik = panel.counts_ik - (panel.vote_ji[panel.group_j[j]][:, None] == np.arange(len(question.labels)))
    most_ik = (others_ik == others_ik.max(axis=1, keepdims=True))[voted]

    def mean(value_i: Floats, rows: NDArray[np.bool_]) -> Estimate:
        return known_mean(value_i[rows], weight_i[rows], cluster_i[rows], mass)

    agrees_i = most_ik[np.arange(len(vote_i)), vote_i] / most_ik.sum(axis=1)
    figures = {"right": mean(right_i, known_i), "agrees": mean(agrees_i, others_ik[voted].any(axis=1))}
    figures["right_all"] = figures["right"]
    if known_i.sum() >= ENOUGH and not known_i.all():
        # The score of the judge, so to speak: more exact than the share of known answers, as all votes count.
        of_votes = (reference.likelihood_ik[at_i, vote_i], reference.guess_ik[at_i, vote_i])
        truth_ik, p_ik = (np.stack([1.0 - of_vote_i, of_vote_i], axis=1) for of_vote_i in of_votes)
        answers = Answers(np.zeros_like(vote_i), cluster_i, known_i, truth_ik, p_ik, weight_i)
        [figures["right_all"]], _ = corrected_means(answers, np.array([0.0, 1.0]), mass)
    if question.positive is not None:
        positive = question.labels.index(question.positive)
        for name, label in (("sensitivity", positive), ("specificity", 1 - positive)):
            figures[name] = mean(right_i, gold_i == label)
    together = [panel.judges[i] for i in np.flatnonzero(panel.group_j == panel.group_j[j]) if i != j]
    cells = {f"{name}{bound}": value for name, estimate in figures.items() if estimate.n_known
             for bound, value in zip(("", "_low", "_high"), estimate[:3], strict=True)}  # fmt: skip
    return cells | {
        "question": question.name, "judge": panel.judges[j], "role": reference.roles[panel.judges[j]],
        "n_votes": int(voted.sum()), "missing": float(1.0 - voted.mean()),
        "n_known": int(known_i.sum()), "counted_with": ", ".join(together),
    }  # fmt: skip


def _advice(panel: Panel, row: dict[str, Any], better: Sequence[str]) -> str:
    """Say in a sentence whether to keep a judge: known answers first, then copies, then what it adds."""
    by_answers = row["n_known"] >= ENOUGH
    bounds = [f"{row.get(name) or 0.0:.0%}" for name in ("right_all", "right_all_low", "right_all_high")]
    right = f"right in {bounds[0]} ({bounds[1]}–{bounds[2]})" if by_answers else ""
    if by_answers and row["right_high"] < 1.0 / len(panel.reference.question.labels):
        return f"drop: {right}, worse than guessing"
    original = next((name for name in better if name in row["counted_with"].split(", ")), None)
    if original is not None:
        return f"drop: a copy of {original}, which is as good"
    if not by_answers:
        agrees = f"; agrees with the others in {row['agrees']:.0%}" if "agrees" in row else ""
        return f"cannot be told without known answers{agrees}"
    if row.get("nats") is None:
        return f"keep: {right}"
    if row["nats"] + CLEAR * row["nats_se"] < 0 and row["saved"] <= 0:
        return f"drop: {right}, and the panel is better without it"
    if row["nats"] - CLEAR * row["nats_se"] <= 0:
        return f"spare: {right}, and what it adds to those kept cannot be told from luck"
    if row["saved"] <= 0:
        return f"keep: {right}; labels are surer with it, though no more often right"
    return f"keep: {right}; {100 * row['saved']:.1f} labels in 100 more are right with it"


def _labels(run: Run, reference: KnownItems, judges: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return labels that weigh judges by known answers, and a sentence about them; empty without enough.

    They are those of the judge who comes first, unless another is more probable by a factor of `CLEARLY`: the weights
    are learnt too.
    """
    if reference.n_known < ENOUGH or reference.evidence or reference.known_i.all():
        return LABELS.to_frame(), []
    question, known_i, guess_ik = reference.question, reference.known_i, reference.guess_ik
    chosen_i: Ints = highest(guess_ik)
    best = judges.filter(pl.col("n_known") >= ENOUGH)["judge"].head(int(judges.height <= MOST_JUDGES))
    votes = run.table("votes", where=pl.col("question") == question.name)
    for best_i in vote_matrix(votes, reference.items, best.to_list(), list(question.labels)):
        p_best_i = np.where(best_i == UNKNOWN, 0.0, guess_ik[np.arange(len(best_i)), best_i])
        for factor in CLEARLY:
            chosen_i = np.where(tie_key(factor * p_best_i) >= tie_key(guess_ik.max(axis=1)), best_i, highest(guess_ik))
            right_g, best_right_g = ((label_i == reference.gold_i)[known_i] for label_i in (chosen_i, best_i))
            if right_g.sum() - best_right_g.sum() > CLEAR * (right_g != best_right_g).sum() ** 0.5:
                break
    wrong, wrong_before = (
        float(np.average((label_i != reference.gold_i)[known_i], weights=reference.weight_i[known_i]))
        for label_i in (chosen_i, highest(reference.p_ik))
    )
    p_ik = np.where(known_i[:, None], reference.truth_ik, guess_ik)
    label_i = np.where(known_i, reference.gold_i, chosen_i)
    frame = reference.items.cast(pl.String).to_frame("item").select(
        pl.lit(question.name).alias("question"), "item",
        pl.Series("label", [question.labels[k] for k in label_i.tolist()]),
        pl.Series("p", p_ik[np.arange(len(label_i)), label_i]), pl.Series("known", known_i),
    )  # fmt: skip
    if wrong_before - wrong < 0.02:
        return frame, []
    return frame, [
        f"{question.name}: the published labels are wrong in {wrong_before:.0%} of the known answers, labels that "
        f"weigh judges by known answers in {wrong:.0%} (of items not learnt from): write them with --labels labels.csv."
    ]


def _notes(run: Run, panel: Panel) -> Iterator[str]:
    """Yield what must be known of the judges of one question."""
    name, n_judges = panel.reference.question.name, len(panel.judges)
    if n_judges > MOST_JUDGES:
        yield f"{name}: {n_judges:,} judges are a crowd; what each adds is not computed for more than {MOST_JUDGES}."
    if panel.reference.n_known < ENOUGH:
        yield (
            f"{name}: {many(panel.reference.n_known, 'known answer')}; judges are ranked by how often they agree with "
            "the majority of the others, so that an error that most share counts as right. "
            f"{ENOUGH} random known answers or more rank them fairly."
        )
    for row in run.findings.filter(check=SIDE, question=name).iter_rows(named=True):
        yield f"{name}: {row['text']} {row['meaning']} {row['remedy']}"
