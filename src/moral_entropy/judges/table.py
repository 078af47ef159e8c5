"""Run → its judges, worst first: how right they are, whom they copy, what each adds, who may replace whom.

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

from moral_entropy.errors import VotesError
from moral_entropy.judges.cast import MOST_JUDGES
from moral_entropy.judges.estimates import Estimate, corrected_mean, gold_alone
from moral_entropy.judges.judge_notes import notes_on_judges
from moral_entropy.judges.known import known_items, questions_asked
from moral_entropy.judges.options import JudgeOptions
from moral_entropy.judges.panel import Panel, read_panel
from moral_entropy.judges.recount import Recount, notes_on_common_errors, recount
from moral_entropy.judges.repeats import repeats_by_name, repeats_of
from moral_entropy.judges.replace import REPLACE, may_replace
from moral_entropy.judges.roles import Role, roles_of
from moral_entropy.judges.standing import standings
from moral_entropy.judges.values import quantities
from moral_entropy.judges.worth import ADDED, ENOUGH, PANELS, added_by_each, best_panels
from moral_entropy.options import did_you_mean
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
        "standing": pl.Float64(),
    }
)  # fmt: skip
BY_LABEL = pl.Schema(
    {
        **dict.fromkeys(("question", "judge", "label"), pl.String()),
        "n": pl.Int64(),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    }
)
TOGETHER = pl.Schema(
    {
        **dict.fromkeys(("question", "judges"), pl.String()),
        "size": pl.Int64(),
        **dict.fromkeys(("n_known", "same_wrong", "expected"), pl.Float64()),
        "counted_as_one": pl.Boolean(),
    }
)

TABLES = ("by_label", "panels", "repeats", "replace", "effective_votes", "together")
"""Tables of `Judges` besides that of the judges themselves."""


@dataclass(frozen=True, eq=False)
class Judges:
    """What is known of the judges of a run.

    Parameters
    ----------
    frame
        One row per question and judge, worst first: `JUDGES`. `right` is the share of known answers that the judge
        gave, `right_all` the share of all its votes that are right, `agrees` how often it says what the others let one
        expect, `nats` and `saved` what it adds to them. Judges are ranked by `standing`: the share of votes that are
        right as consensus and known answers together have it (`standings`), without known answers `agrees`.
    by_label
        Of the items with each known answer, the share on which the judge said so: `BY_LABEL`.
    panels
        The best panel for every price: `PANELS`.
    repeats
        Judges asked again, or with the answers swapped: `REPEATS`.
    replace
        Whether a language model may replace the people: `REPLACE`.
    effective_votes
        By question, votes per item, and how many independent ones they are worth.
    together
        Judges who err together on known answers: `TOGETHER`. Of the `n_known` answers that two of them share, they give
        the same wrong answer on `same_wrong`, independent ones would on `expected`; means over pairs.
    notes
        What a reader must know, in sentences.
    """

    frame: pl.DataFrame
    by_label: pl.DataFrame
    panels: pl.DataFrame
    repeats: pl.DataFrame
    replace: pl.DataFrame
    effective_votes: pl.DataFrame
    together: pl.DataFrame
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
    found = [_of_question(run, name.name, options) for name in questions_asked(run, options.question)]
    joined = {name: pl.concat([getattr(one, name) for one in found]) for name in ("frame", *TABLES)}
    return Judges(**joined, notes=tuple(dict.fromkeys(note for one in found for note in one.notes)))


def _of_question(run: Run, name: str, options: JudgeOptions) -> Judges:
    [question] = questions_asked(run, name)
    known = recount(run, known_items(run, question))
    panel = read_panel(run, question, seed=options.seed, consensus=known.consensus)
    roles, said = roles_of(run, panel.judges, options.roles)
    cost_j = read_costs(panel.judges, options.costs)
    added = added_by_each(panel) if 1 < len(panel.judges) <= MOST_JUDGES else None
    frame = _frame(run, panel, roles, added, cost_j if options.costs is not None else None)
    quantity = quantities(question, options.value_of())[0]
    small = 1 < len(panel.judges) <= MOST_JUDGES
    # A crowd whose members vote on few items each is no panel to choose from.
    whole = small and float(np.median((panel.vote_ji != UNKNOWN).mean(axis=1))) >= MOST_ITEMS_VOTED
    panels = best_panels(panel, cost_j, seed=options.seed) if whole else PANELS.to_frame()
    repeats = repeats_by_name(run, name, run.interval)
    if len(roles) <= MOST_JUDGES:
        repeats = pl.concat([repeats_of(panel, roles, quantity, run.interval), repeats])
    replaced = may_replace(panel, roles, quantity, options.epsilon) if small else pl.DataFrame(schema=REPLACE)
    return Judges(
        frame,
        pl.DataFrame(list(_by_label(run, panel)), schema=BY_LABEL, orient="row"),
        panels,
        repeats,
        replaced,
        _worth(run, name) if (worth := known.worth()) is None else worth,
        pl.DataFrame(list(_together(known)), schema=TOGETHER, orient="row"),
        (said, *notes_on_common_errors(known), *notes_on_judges(panel, roles, frame, repeats)),
    )


def _together(found: Recount) -> Iterator[tuple[Any, ...]]:
    for group in found.groups:
        names = found.names(group)
        yield (found.question, ", ".join(names), len(names), group.n_known, group.same, group.expected,
               found.is_counted(group))  # fmt: skip


def _worth(run: Run, name: str) -> pl.DataFrame:
    weight = pl.col("count")
    return run.scan("items").filter(pl.col("question") == name).select(
        question=pl.lit(name),
        votes=(pl.col("n_votes") * weight).sum() / weight.sum(),
        effective=(pl.col("effective_votes") * weight).sum()
        / weight.filter(pl.col("effective_votes").is_not_null()).sum(),
    ).collect()  # fmt: skip


def read_costs(judges: Sequence[str], costs: Any) -> Floats:
    """Return what one vote of each judge costs; 1 where nothing is told."""
    if costs is None:
        return np.ones(len(judges))
    source = open_source(costs)
    for name in ("judge", "cost"):
        if name not in source.columns:
            msg = f"{source.name} has no column {name!r}. Found: {', '.join(source.columns)}. It needs judge and cost."
            raise VotesError(msg)
    told = dict(zip(source.column("judge").cast(pl.String).to_list(),
                    source.column("cost").cast(pl.Float64, strict=False).to_list(), strict=True))  # fmt: skip
    missing = [name for name in judges if told.get(name) is None or not 0 <= told[name] < float("inf")]
    if missing:
        near = did_you_mean(missing[0], [name for name in told if name not in judges])
        msg = f"{source.name} has no cost of {len(missing):,} of {len(judges):,} judges. First: {missing[0]!r}.{near}"
        raise VotesError(msg)
    return np.array([told[name] for name in judges], dtype=np.float64)


def _frame(
    run: Run, panel: Panel, roles: Sequence[Role], added: pl.DataFrame | None, cost_j: Floats | None
) -> pl.DataFrame:
    judge = pl.col("annotator").cast(pl.String).replace(run.manifest.get("unsure", {}))
    votes_j = dict(run.table("annotator_summary").filter(question=panel.question.name)
                   .group_by(judge).agg(pl.col("n_votes").sum()).iter_rows())  # fmt: skip
    rows = [_row(run, panel, j, role, added, cost_j, votes_j) for j, role in enumerate(roles)]
    frame = pl.DataFrame(rows, schema=JUDGES, orient="row")
    frame = frame.with_columns(standing=pl.Series(_standing(panel, frame), dtype=pl.Float64).fill_nan(None))
    return frame.sort(pl.col("standing").round(DECIMALS), "judge", nulls_last=True)


def _standing(panel: Panel, frame: pl.DataFrame) -> Floats:
    """Return what judges are ranked by; the rows are in the order of the panel."""
    if panel.n_gold < ENOUGH:
        return frame["agrees"].to_numpy()
    return standings(panel) if len(panel.judges) <= MOST_JUDGES else frame["right_all"].to_numpy()


def _row(
    run: Run,
    panel: Panel,
    j: int,
    role: Role,
    added: pl.DataFrame | None,
    cost_j: Floats | None,
    votes_j: dict[str, int],
) -> tuple[Any, ...]:
    vote_i, mass = panel.vote_ji[j], run.interval
    voted = vote_i != UNKNOWN
    known = voted & (panel.gold_i != UNKNOWN)
    counts_k = np.bincount(vote_i[voted], minlength=len(panel.question.labels))
    expected_v = _expected(panel, j)
    figures = (
        _right(panel, j, known, mass),
        _right_all(panel, j, expected_v, mass),
        *_two_labels(panel, j, known, mass),
        None if expected_v is None else gold_alone(expected_v, panel.weight_i[voted], mass),
    )
    together = [panel.judges[other] for other in range(len(panel.judges))
                if other != j and panel.group_j[other] == panel.group_j[j]]  # fmt: skip
    gains = (*(None,) * 4, "") if added is None else added.row(j)
    return (panel.question.name, role.judge, role.role, role.model, role.prompt, role.order,
            votes_j.get(role.judge, int(voted.sum())), float(1.0 - voted.mean()), int(known.sum()),
            *(value for found in figures for value in _shown(found)),
            panel.question.labels[int(counts_k.argmax())], float(counts_k.max() / max(counts_k.sum(), 1)),
            ", ".join(together), *gains, None if cost_j is None else float(cost_j[j]), None)  # fmt: skip


def _shown(found: Estimate | None) -> tuple[float | None, ...]:
    return (None,) * 3 if found is None or not found.n_gold else (found.value, found.low, found.high)


def _right(panel: Panel, j: int, known: Any, mass: float) -> Estimate | None:
    right_i = (panel.vote_ji[j] == panel.gold_i)[known].astype(float)
    return gold_alone(right_i, panel.weight_i[known], mass)


def _two_labels(panel: Panel, j: int, known: Any, mass: float) -> tuple[Estimate | None, Estimate | None]:
    """Return sensitivity and specificity, where there are two labels."""
    question = panel.question
    if question.positive is None:
        return None, None
    at = question.labels.index(question.positive)
    return _recall(panel, j, known, at, mass), _recall(panel, j, known, 1 - at, mass)


def _recall(panel: Panel, j: int, known: Any, label: int, mass: float) -> Estimate | None:
    here = known & (panel.gold_i == label)
    return gold_alone((panel.vote_ji[j][here] == label).astype(float), panel.weight_i[here], mass)


def _by_label(run: Run, panel: Panel) -> Iterator[tuple[Any, ...]]:
    for j, judge in enumerate(panel.judges):
        known = (panel.vote_ji[j] != UNKNOWN) & (panel.gold_i != UNKNOWN)
        for k, label in enumerate(panel.question.labels):
            found = _recall(panel, j, known, k, run.interval)
            if found is not None and found.n_gold:
                yield panel.question.name, judge, label, found.n_gold, found.value, found.low, found.high


def _right_all(panel: Panel, j: int, expected_v: Floats | None, mass: float) -> Estimate | None:
    """Return the share of a judge's votes that are right: what the others let one expect, corrected by known answers.

    The score of the judge, so to speak: more exact than the share of known answers that it gave, as all of its votes
    count.
    """
    some = panel.take(panel.voted(j))
    known_i = some.gold_i != UNKNOWN
    if expected_v is None:
        return _right(some, j, known_i, mass)
    right_i = np.where(known_i, some.vote_ji[j] == some.gold_i, UNKNOWN)
    p_ik = np.stack([1.0 - expected_v, expected_v], axis=1)
    return corrected_mean(right_i, p_ik, np.array([0.0, 1.0]), some.weight_i, mass)


def _expected(panel: Panel, j: int) -> Floats | None:
    """Return how probable each vote of a judge is to be right, by those who are not counted with it."""
    at_v = panel.voted(j)
    if not panel.others(j) or len(panel.judges) > MOST_JUDGES or not len(at_v):
        return None
    p_vk = panel.labels(panel.log_without(j, at_v))
    return np.asarray(p_vk[np.arange(len(at_v)), panel.vote_ji[j, at_v]])
