"""Run with known answers → judges who err together on them, and the consensus with each such group counted as one.

The audit looks for copies in the votes alone, so that its p never depends on known answers. Scores and judges' tables
of a run with known answers use the consensus from here, if it differs. Known answers decide who is counted with whom,
and nothing else of it: how judges vote is fitted to the votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.findings import listed
from moral_entropy.judges.cast import MOST_JUDGES, cast_votes, judge_of_annotator
from moral_entropy.judges.common_errors import (
    FEWEST_KNOWN,
    CommonErrors,
    ErrGroup,
    find_common_errors,
)
from moral_entropy.judges.known import KnownItems
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import Run
from moral_entropy.votes.annotators import PLUS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_DRAWS = 100
"""Posterior draws of the second fit: its p is used, and not its intervals."""

MOST_KNOWN = 4_000
"""Known answers that are looked at; of more a random part."""

WORTH = pl.Schema({"question": pl.String(), "votes": pl.Float64(), "effective": pl.Float64()})


@dataclass(frozen=True, eq=False)
class Recount:
    """A question of a run, looked at with known answers.

    Parameters
    ----------
    question
        Name of the question.
    judges
        Names of its judges.
    common
        Who errs together, by position among the judges; None where nobody looked.
    consensus
        The fit of the question with every such group counted as one; None where the run's own fit stands.
    counted
        Names of judges whom the run counts as one, by group.
    """

    question: str
    judges: list[str]
    common: CommonErrors | None
    consensus: Consensus | None = None
    counted: tuple[frozenset[str], ...] = ()

    @property
    def fits(self) -> tuple[QuestionFit, ...]:
        """Parts of the question as fitted again; none where the run's own fit stands."""
        return () if self.consensus is None else self.consensus.fits

    @property
    def groups(self) -> tuple[ErrGroup, ...]:
        """Groups of judges who err together."""
        return () if self.common is None else self.common.groups

    def names(self, group: ErrGroup) -> list[str]:
        """Return the names of a group's judges."""
        return [self.judges[j] for j in group.judges]

    def is_new(self, group: ErrGroup) -> bool:
        """Return whether the run does not count a group as one already."""
        return not any(one.issuperset(self.names(group)) for one in self.counted)

    def is_counted(self, group: ErrGroup) -> bool:
        """Return whether a group is counted as one, by the run or by the second fit."""
        return self.consensus is not None or not self.is_new(group)

    def worth(self) -> pl.DataFrame | None:
        """Return votes per item and how many independent ones they are worth: `WORTH`; None where the run's stand."""
        worth = [(fit.worth, float(fit.patterns.weight_r.sum())) for fit in self.fits if fit.worth is not None]
        if not worth:
            return None
        votes, effective = (
            float(np.average([getattr(one, name) for one, _ in worth], weights=[n for _, n in worth]))
            for name in ("votes", "effective")
        )
        return pl.DataFrame([(self.question, votes, effective)], schema=WORTH, orient="row")


def recount(run: Run, known: KnownItems) -> Recount:
    """Find the judges of a question who err together on known answers, and fit it again with each group as one.

    Parameters
    ----------
    run
        The run.
    known
        The items of one question, with the answers that are known.
    """
    question, nobody = known.question, Recount(known.question.name, [], None)
    if known.evidence or run.manifest["anonymous"] or run.manifest["options"]["fit"]["dependence"] == "off":
        return nobody
    seen_i = _some(np.flatnonzero(known.gold_i != UNKNOWN))
    if len(seen_i) < FEWEST_KNOWN:
        return nobody
    cast = cast_votes(run, question, known.items.gather(seen_i))
    if not 1 < len(cast.judges) <= MOST_JUDGES:
        return nobody
    common = find_common_errors(cast.vote_ji, known.gold_i[seen_i], len(question.labels))
    return fitted_again(run, Recount(question.name, cast.judges, common, counted=counted_by(run, question.name)))


def _some(seen_i: Ints) -> Ints:
    if len(seen_i) <= MOST_KNOWN:
        return seen_i
    return np.sort(np.random.default_rng(len(seen_i)).choice(seen_i, MOST_KNOWN, replace=False))


def counted_by(run: Run, question: str) -> tuple[frozenset[str], ...]:
    """Return the names of judges whom a run counts as one, by group."""
    judge_of = judge_of_annotator(run)
    return tuple(
        frozenset(judge_of.get(str(name), str(name)) for name in group)
        for part in run.manifest["questions"]
        for group in part["counted_as_one"]
        if part["question"] == question
    )


def fitted_again(run: Run, found: Recount) -> Recount:
    """Fit with the groups that are not counted as one already, if the options of the run let copies be counted once."""
    fit, groups = run.manifest["options"]["fit"], [one for one in found.groups if found.is_new(one)]
    if not groups or fit["model"] != "mixed" or fit["dependence"] != "merge":
        return found
    unsure = {judge: name for name, judge in judge_of_annotator(run).items()}
    merge = []
    for names in [*map(found.names, groups), *_kept(found)]:
        merge.append(PLUS.join([*names, *(unsure[name] for name in names if name in unsure)]))
    # Copies are not looked for again: whoever errs together makes the others look strange.
    merged = (*fit["merge"], *merge)
    changes = {"draws": min(fit["draws"], MOST_DRAWS), "merge": merged, "dependence": "report"}
    return replace(found, consensus=reload_consensus(run, question=found.question, **changes))


def _kept(found: Recount) -> Iterator[list[str]]:
    """Yield the groups that the run counts as one, but for those of whom known answers deny that they are copies."""
    for names in map(sorted, found.counted):
        if found.common is None or not found.common.pairs.denies([found.judges.index(name) for name in names]):
            yield names


def with_recount(known: KnownItems, found: Recount) -> KnownItems:
    """Return the items with the p of the second fit, where there is one."""
    if found.consensus is None:
        return known
    votes = found.consensus.votes
    ids = pl.concat([votes.items.gather(fit.ballot.item_i) for fit in found.fits])
    places = pl.DataFrame({"item": ids}).with_row_index("at")
    at_i = known.items.to_frame("item").join(places, on="item", how="left", maintain_order="left")["at"].to_numpy()
    p_ik: Floats = np.concatenate([fit.p_ik for fit in found.fits])
    return replace(known, p_ik=p_ik[at_i])


def notes_on_common_errors(found: Recount) -> Iterator[str]:
    """Say which judges err together on known answers, and what follows from it."""
    for group in filter(found.is_new, found.groups):
        names = found.names(group)
        counted = (
            f"Here they are counted as one{_worth_in_words(found)}. The labels of the audit count them apart, as it "
            "looks at votes alone: audit with"
            if found.is_counted(group)
            else "They are counted apart, as the audit was told. Count them as one with"
        )
        yield (
            f"{found.question}: {listed(names)} err together: two of them give the same wrong answer on "
            f"{group.same:.0f} of {group.n_known:.0f} known answers, independent judges would on {group.expected:.0f}. "
            f"{counted} --merge '{PLUS.join(names)}'."
        )
    kept = list(_kept(found))
    for names in (sorted(one) for one in found.counted if found.consensus is not None and sorted(one) not in kept):
        yield (
            f"{found.question}: the audit counts {listed(names)} as one; known answers deny that they are copies, and "
            "here they are counted apart."
        )
    if found.common is not None and found.common.shared_by_all:
        yield (
            f"{found.question}: all judges tend to err on the same items (on known answers the errors of two judges "
            f"correlate by {found.common.shared_by_all:.2f} in the median): items that are hard for all, or a bias "
            "that all share. More judges of this kind add little."
        )


def _worth_in_words(found: Recount) -> str:
    worth = found.worth()
    if worth is None:
        return ""
    [(_, votes, effective)] = worth.iter_rows()
    return f", and {votes:.1f} votes per item are worth {effective:.1f}"
