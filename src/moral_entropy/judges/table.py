"""Run → its judges, worst first: how right they are, whom they copy, what each adds, who may replace whom.

Against known answers where there are any; against the consensus of the others, which takes the side of judges who err
together, where there are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from moral_entropy.errors import VotesError
from moral_entropy.findings import listed, many
from moral_entropy.judges.estimates import Estimate, corrected_mean, gold_alone
from moral_entropy.judges.findings import FAILS, as_note, constant, failing, most_vote_on_all, one_judge, one_label
from moral_entropy.judges.known import questions_asked
from moral_entropy.judges.panel import ADDED, ENOUGH, MOST_JUDGES, PANELS, Panel, added_by_each, best_panels, read_panel
from moral_entropy.judges.replace import REPLACE, may_replace
from moral_entropy.judges.roles import LLM, Role, roles_of
from moral_entropy.judges.values import Quantity, quantities
from moral_entropy.option_fields import did_you_mean
from moral_entropy.options import JudgeOptions
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import UNKNOWN, Floats

MOST_ITEMS_VOTED = 0.5
"""Share of the items that judges must vote on, in the median, for panels of them to be compared."""

_BOUNDS = ("", "_low", "_high")
JUDGES = pl.Schema(
    {
        **dict.fromkeys(("question", "judge", "role", "model", "prompt", "order"), pl.String()),
        "n_votes": pl.Int64(),
        "missing": pl.Float64(),
        "n_known": pl.Int64(),
        **{f"{name}{bound}": pl.Float64() for name in ("right", "right_all", "sensitivity", "specificity", "agrees")
           for bound in _BOUNDS},
        "favourite": pl.String(),
        "favourite_share": pl.Float64(),
        "counted_with": pl.String(),
        **ADDED,
        "cost": pl.Float64(),
    }
)  # fmt: skip
BY_LABEL = pl.Schema(
    {
        **dict.fromkeys(("question", "judge", "label"), pl.String()),
        "n": pl.Int64(),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    }
)
REPEATS = pl.Schema(
    {
        **dict.fromkeys(("question", "judge", "other", "kind"), pl.String()),
        "n": pl.Int64(),
        **dict.fromkeys(("same", "same_low", "same_high", "bias", "bias_low", "bias_high"), pl.Float64()),
    }
)

TABLES = ("by_label", "panels", "repeats", "replace")
"""Tables of `Judges` besides that of the judges themselves."""


@dataclass(frozen=True, eq=False)
class Judges:
    """What is known of the judges of a run.

    Parameters
    ----------
    frame
        One row per question and judge, worst first: `JUDGES`. `right` is the share of known answers that the judge
        gave, `right_all` the share of all its votes that are right, `agrees` how often it says what the others let one
        expect, `nats` and `saved` what it adds to them. Judges are ranked by `right_all`, without enough known answers
        by `agrees`.
    by_label
        Of the items with each known answer, the share on which the judge said so: `BY_LABEL`.
    panels
        The best panel for every price: `PANELS`.
    repeats
        Judges asked again, or with the answers swapped: `REPEATS`.
    replace
        Whether a language model may replace the people: `REPLACE`.
    notes
        What a reader must know, in sentences.
    """

    frame: pl.DataFrame
    by_label: pl.DataFrame
    panels: pl.DataFrame
    repeats: pl.DataFrame
    replace: pl.DataFrame
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        tables = {name: getattr(self, name).to_dicts() for name in TABLES}
        return {"judges": self.frame.to_dicts(), **tables, "notes": list(self.notes)}


def describe_judges(run: Run | str | Path, options: JudgeOptions | None = None) -> Judges:
    """Describe the judges of a run.

    Parameters
    ----------
    run
        The run, or its folder.
    options
        Who they are, what they cost, and how the test of replacement is made.
    """
    run, options = as_run(run), options or JudgeOptions()
    parts = [_of_question(run, question.name, options) for question in questions_asked(run, options.question)]
    joined = {name: pl.concat([getattr(part, name) for part in parts]) for name in ("frame", *TABLES)}
    return Judges(**joined, notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)))


def _of_question(run: Run, name: str, options: JudgeOptions) -> Judges:
    [question] = questions_asked(run, name)
    panel = read_panel(run, question)
    roles, said = roles_of(run, panel.judges, options.roles)
    cost_j = read_costs(panel.judges, options.costs)
    quantity = quantities(question, options.value_of())[0]
    small = 1 < len(panel.judges) <= MOST_JUDGES
    frame = _frame(run, panel, roles, added_by_each(panel) if small else None, cost_j)
    frame = frame if options.costs is not None else frame.with_columns(cost=pl.lit(None, pl.Float64()))
    # A crowd whose members vote on few items each is no panel to choose from.
    whole = small and float(np.median((panel.vote_ji != UNKNOWN).mean(axis=1))) >= MOST_ITEMS_VOTED
    repeats = pl.DataFrame(list(_repeats(run, panel, roles, quantity)), schema=REPEATS, orient="row")
    return Judges(
        frame,
        pl.DataFrame(list(_by_label(run, panel)), schema=BY_LABEL, orient="row"),
        best_panels(panel, cost_j) if whole else PANELS.to_frame(),
        repeats,
        may_replace(panel, roles, quantity, options.epsilon) if small else pl.DataFrame(schema=REPLACE),
        (said, *_notes(panel, roles, frame, repeats)),
    )


def read_costs(judges: Sequence[str], costs: Any) -> Floats:
    """Return what one vote of each judge costs; 1 where nothing is told."""
    if costs is None:
        return np.ones(len(judges))
    source = open_source(costs)
    for name in ("judge", "cost"):
        if name not in source.columns:
            msg = f"{source.name} has no column {name!r}. Found: {', '.join(source.columns)}. It needs judge and cost."
            raise VotesError(msg)
    cost_of = dict(zip(source.column("judge").cast(pl.String).to_list(),
                       source.column("cost").cast(pl.Float64, strict=False).to_list(), strict=True))  # fmt: skip
    missing = [name for name in judges if cost_of.get(name) is None or not 0 <= cost_of[name] < float("inf")]
    if missing:
        near = did_you_mean(missing[0], [name for name in cost_of if name not in judges])
        msg = f"{source.name} has no cost of {len(missing):,} of {len(judges):,} judges. First: {missing[0]!r}.{near}"
        raise VotesError(msg)
    return np.array([cost_of[name] for name in judges], dtype=np.float64)


def _frame(run: Run, panel: Panel, roles: Sequence[Role], added: pl.DataFrame | None, cost_j: Floats) -> pl.DataFrame:
    summary = run.table("annotator_summary").filter(question=panel.question.name)
    counts = summary.select(pl.col("annotator").cast(pl.String), "n_votes").group_by("annotator").sum()
    votes_j = dict(counts.iter_rows())
    rows = []
    for j, role in enumerate(roles):
        gains = {} if added is None else added.row(j, named=True)
        rows.append(_row(run, panel, j, role) | gains | {"cost": float(cost_j[j])})
        rows[-1]["n_votes"] = votes_j.get(role.judge, rows[-1]["n_votes"])
    frame = pl.DataFrame([{name: row.get(name) for name in JUDGES} for row in rows], schema=JUDGES)
    order = "right_all" if panel.n_gold >= ENOUGH else "agrees"
    return frame.with_columns(pl.col("graded_by").fill_null("")).sort(
        pl.col(order).round(DECIMALS), "judge", nulls_last=True
    )


def _row(run: Run, panel: Panel, j: int, role: Role) -> dict[str, Any]:
    vote_i, mass, question = panel.vote_ji[j], run.interval, panel.question
    voted = vote_i != UNKNOWN
    known = voted & (panel.gold_i != UNKNOWN)
    counts_k = np.bincount(vote_i[voted], minlength=len(question.labels))
    expected_v = _expected(panel, j)
    right = gold_alone((vote_i == panel.gold_i)[known].astype(float), panel.weight_i[known], mass)
    figures: dict[str, Estimate | None] = {"right": right, "right_all": right}
    if expected_v is not None:
        figures["right_all"] = _right_all(panel, j, expected_v, mass)
        figures["agrees"] = gold_alone(expected_v, panel.weight_i[voted], mass)
    if question.positive is not None:
        at = question.labels.index(question.positive)
        figures |= {"sensitivity": _recall(panel, j, at, mass), "specificity": _recall(panel, j, 1 - at, mass)}
    together = [panel.judges[other] for other in np.flatnonzero(panel.group_j == panel.group_j[j]) if other != j]
    cells = {f"{name}{bound}": value for name, estimate in figures.items() if estimate is not None and estimate.n_gold
             for bound, value in zip(_BOUNDS, (estimate.value, estimate.low, estimate.high), strict=True)}  # fmt: skip
    return cells | {
        "question": question.name, "judge": role.judge, "role": role.role, "model": role.model, "prompt": role.prompt,
        "order": role.order, "n_votes": int(voted.sum()), "missing": float(1.0 - voted.mean()),
        "n_known": int(known.sum()), "favourite": question.labels[int(counts_k.argmax())],
        "favourite_share": float(counts_k.max() / max(counts_k.sum(), 1)), "counted_with": ", ".join(together),
    }  # fmt: skip


def _recall(panel: Panel, j: int, label: int, mass: float) -> Estimate:
    """Return the share of the items with one known answer on which a judge said so."""
    here = (panel.vote_ji[j] != UNKNOWN) & (panel.gold_i == label)
    return gold_alone((panel.vote_ji[j][here] == label).astype(float), panel.weight_i[here], mass)


def _by_label(run: Run, panel: Panel) -> Iterator[tuple[Any, ...]]:
    for j, judge in enumerate(panel.judges):
        for k, label in enumerate(panel.question.labels):
            recall = _recall(panel, j, k, run.interval)
            if recall.n_gold:
                yield panel.question.name, judge, label, recall.n_gold, recall.value, recall.low, recall.high


def _right_all(panel: Panel, j: int, expected_v: Floats, mass: float) -> Estimate:
    """Return the share of a judge's votes that are right: what the others let one expect, corrected by known answers.

    The score of the judge, so to speak: more exact than the share of known answers that it gave, as all of its votes
    count.
    """
    own = panel.take(panel.voted(j))
    right_i = np.where(own.gold_i != UNKNOWN, own.vote_ji[j] == own.gold_i, UNKNOWN)
    p_ik = np.stack([1.0 - expected_v, expected_v], axis=1)
    return corrected_mean(right_i, p_ik, np.array([0.0, 1.0]), own.weight_i, mass)


def _expected(panel: Panel, j: int) -> Floats | None:
    """Return how probable each vote of a judge is to be right, by those who are not counted with it."""
    at_v = panel.voted(j)
    if not panel.others(j) or len(panel.judges) > MOST_JUDGES or not len(at_v):
        return None
    p_vk = panel.labels(panel.log_without(j, at_v))
    return np.asarray(p_vk[np.arange(len(at_v)), panel.vote_ji[j, at_v]])


def _repeats(run: Run, panel: Panel, roles: Sequence[Role], quantity: Quantity) -> Iterator[tuple[Any, ...]]:
    """Yield judges who are one judge asked again, with the answers swapped, or who voted twice on items.

    Of a judge whose answers were swapped, the bias is how much more the first answer gets when it is shown first: 0 for
    a judge who does not mind, 1 for one who always takes what comes first.
    """
    question, mass = panel.question.name, run.interval
    for a, b, kind in _repeated(roles) if len(roles) <= MOST_JUDGES else ():
        both = (panel.vote_ji[a] != UNKNOWN) & (panel.vote_ji[b] != UNKNOWN)
        vote_i, other_i = panel.vote_ji[a][both], panel.vote_ji[b][both]
        if not len(vote_i):
            continue
        same = gold_alone((vote_i == other_i).astype(float), panel.weight_i[both], mass)
        bias: tuple[float | None, ...] = (None, None, None)
        if kind == "order" and len(vote_i) > 1:
            apart_i = quantity.value_k[vote_i] - quantity.value_k[other_i]
            mean, se = float(apart_i.mean()), float(apart_i.std(ddof=1)) / math.sqrt(len(apart_i))
            half = float(stdtrit(len(apart_i) - 1, (1.0 + mass) / 2)) * se
            bias = (mean, mean - half, mean + half)
        names = panel.judges[a], panel.judges[b]
        yield question, *names, kind, len(vote_i), same.value, same.low, same.high, *bias
    votes = run.table("votes", where=pl.col("question") == question).drop_nulls("annotator")
    twice = votes.group_by("annotator", "item", maintain_order=True).agg(
        n=pl.len(), same=pl.col("label").first() == pl.col("label").last()
    )
    twice = twice.filter(pl.col("n") > 1).with_columns(pl.col("annotator").cast(pl.String)).sort("annotator")
    for (who,), mine in twice.group_by("annotator", maintain_order=True):
        same = gold_alone(mine["same"].to_numpy().astype(float), mass=mass)
        yield question, who, who, "again", mine.height, same.value, same.low, same.high, None, None, None


def _repeated(roles: Sequence[Role]) -> Iterator[tuple[int, int, str]]:
    models = [(j, role) for j, role in enumerate(roles) if role.role == LLM and role.model]
    for (a, first), (b, second) in combinations(models, 2):
        if (first.model, first.prompt) != (second.model, second.prompt):
            continue
        if first.order == second.order and (first.repeat or second.repeat):
            yield a, b, "repeat"
        elif first.swapped != second.swapped and first.repeat == second.repeat:
            yield (b, a, "order") if first.swapped else (a, b, "order")


def _notes(panel: Panel, roles: Sequence[Role], frame: pl.DataFrame, repeats: pl.DataFrame) -> Iterator[str]:
    """Yield what must be known of the judges of one question."""
    name, labels = panel.question.name, panel.question.labels
    if len(panel.judges) == 1:
        yield as_note(one_judge(panel.judges[0], panel.n_all, question=name))
    if len(panel.judges) > MOST_JUDGES:
        n = len(panel.judges)
        yield f"{name}: {n:,} judges are a crowd; what each adds is not computed for more than {MOST_JUDGES}."
    if panel.n_gold < ENOUGH:
        yield (
            f"{name}: {many(panel.n_gold, 'known answer')}; judges are ranked by how well they agree with the others, "
            f"so that an error that most share counts as right. {ENOUGH} random known answers or more rank them fairly."
        )
    yield from map(as_note, one_label(labels, panel.gold_i, question=name))
    yield from _missing(name, roles, frame)
    votes = ([(vote_i == k).sum() for k in range(len(labels))] for vote_i in panel.vote_ji)
    counts_jv = np.array(list(votes), dtype=np.float64).reshape(-1, len(labels))
    yield from map(as_note, constant(panel.judges, labels, counts_jv, question=name))
    for row in frame.filter(pl.col("sensitivity_high") + pl.col("specificity_high") < 1.0).iter_rows(named=True):
        yield f"{name}: {row['judge']} is wrong more often than a coin on known answers: are its labels swapped?"
    for row in repeats.filter((pl.col("bias_low") > 0) | (pl.col("bias_high") < 0)).iter_rows(named=True):
        first = "first" if row["bias"] > 0 else "last"
        yield (
            f"{name}: {row['judge']} and {row['other']} favour what is shown {first}: by {abs(row['bias']):.0%} "
            f"({row['bias_low']:z.2f} to {row['bias_high']:z.2f}). Ask in both orders, and count ties."
        )
    by_name = repeats.filter(kind="again")["judge"].to_list()
    if by_name:
        yield (
            f"{name}: {listed(by_name)} voted twice on some items, and each vote counts in full. An answer repeated is "
            "no new evidence: audit with --on-repeat first."
        )
    group_of = dict(zip(panel.judges, panel.group_j.tolist(), strict=True))
    pairs = repeats.filter(kind="repeat").select("judge", "other").rows()
    if again := [(a, b) for a, b in pairs if group_of[a] != group_of[b]]:
        yield (
            f"{name}: {listed([f'{a} and {b}' for a, b in again])}: one judge asked again, counted as two. An answer "
            f"repeated is no new evidence: audit with --merge '{again[0][0]}+{again[0][1]}'."
        )


def _missing(name: str, roles: Sequence[Role], frame: pl.DataFrame) -> Iterator[str]:
    """Say which models fail, and which people left items out."""
    if not most_vote_on_all(frame["missing"].to_numpy()):
        return
    models = {role.judge for role in roles if role.role == LLM}
    yield from map(as_note, failing(frame["judge"].to_list(), models, frame["missing"].to_numpy(), question=name))
    rows = frame.filter(pl.col("missing") >= FAILS, ~pl.col("judge").is_in(models))
    if not rows.is_empty():
        rows = rows.sort("missing", descending=True, maintain_order=True)
        shares = [f"{row['judge']} {row['missing']:.0%}" for row in rows.iter_rows(named=True)]
        yield (
            f"{name}: items without a vote: {listed(shares)}. If these are the hard ones, whoever skipped them looks "
            "better than they are."
        )
