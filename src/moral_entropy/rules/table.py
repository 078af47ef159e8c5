"""Votes + Consensus → AuditTable: every rule graded, every figure with an interval.

The one function most users call. One streaming pass over items and draws, then grades of groups of cells. Touches no
files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moral_entropy.consensus.fitted import FittedParts, local_fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.parts import Parts
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.options import lists_options
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.advice import Advice, advise
from moral_entropy.rules.best_rule import best_rule
from moral_entropy.rules.calibration import (
    CONSENSUS,
    MODEL,
    consensus_cells,
    gold_consensus,
    reliability,
)
from moral_entropy.rules.cells import Cells, Membership, sort_into_cells
from moral_entropy.rules.explanations import one_label_modes
from moral_entropy.rules.frames import one_label_frame, rule_frame
from moral_entropy.rules.groups import Grading
from moral_entropy.rules.options import GradeOptions
from moral_entropy.rules.rules import PLURALITY, PUBLISHED, RULES, Rule, as_rules
from moral_entropy.rules.sums import CellSums, Sorting, gold_sums, sums_of_part
from moral_entropy.rules.votes_dependence import any_rule_by_votes
from moral_entropy.votes.labels import POSITIVE_NAMES
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Votes

if TYPE_CHECKING:
    import polars as pl

FITTING = 0.3
"""Share of the time that fitting the paper's model takes, about."""

REPLICATES = 200
"""Resamplings of the items for intervals against gold, unless `bootstrap` says otherwise."""

Reference = Literal["auto", "consensus", "gold", "both"]


@dataclass(frozen=True, eq=False)
class AuditTable:
    """The results of the audit of rules.

    Against the consensus a figure grades the rule by the published p. Its interval holds the draws of the model, and
    the figures under three explanations of the same votes (`EXPLANATIONS`), which few votes cannot tell apart. Where
    the fit is unsure of many items at once, their means may all lie on one side of ½, which happens in no single draw,
    and a figure can lie outside its interval: a sign of thin data, as `doubt_annotators` is.

    Parameters
    ----------
    frame
        One row per figure: question, domain, label, rule, reference, metric, value, low, high, n, and the value under
        each of `EXPLANATIONS`. Null where the denominator is empty, infinite where the score is.
    rules
        One row per rule and question: question, label, rule, meaning, items, abstained, tied, and
        `same_as`: an earlier rule that gives every item the same label.
    one_label
        By question and domain, how many items would have another label if every item had one true label: question,
        domain, n_items, changed. No rows under the paper's model, and without draws.
    any_by_votes
        The any rule's false-positive rate by number of votes: see `any_rule_by_votes`.
    reliability
        The consensus' reliability diagram against gold; no rows without gold.
    advice
        The best threshold on votes for the costs named.
    interval
        Mass of the intervals.
    bootstrap
        Resamplings of the items in the intervals against the consensus; 0 if they hold posterior draws alone.
    """

    frame: pl.DataFrame
    rules: pl.DataFrame
    one_label: pl.DataFrame
    any_by_votes: pl.DataFrame
    reliability: pl.DataFrame
    advice: Advice
    interval: float
    bootstrap: int

    def __repr__(self) -> str:
        """Describe it in one line."""
        rules = ", ".join(self.rules["rule"].unique(maintain_order=True))
        return f"AuditTable({self.frame.height:,} figures of {rules})"


@lists_options(GradeOptions)
def audit_rules(
    votes: Votes,
    consensus: Consensus,
    options: GradeOptions | None = None,
    *,
    reference: Reference = "auto",
    seed: int = 0,
    threads: int | None = None,
    advance: Advance = ignore,
    **changes: Any,
) -> AuditTable:
    """Grade consensus rules against the Bayesian consensus, and against gold where there is any.

    An item without votes gets no answer from rules on votes; it counts as abstained and is in none of their figures.

    Parameters
    ----------
    votes
        What was voted, with gold and published labels if known.
    consensus
        The fit of these votes.
    options
        All options as one object; keywords change some of them.
    reference
        "consensus", "gold", "both", or "auto" for gold where the data has it.
    seed
        Seed of the resampling.
    threads
        Use at most this many threads; the result does not depend on it.
    advance
        Called with the share done.
    **changes
        Options by name.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=1).votes
    >>> table = audit_rules(votes, fit(votes, draws=100), rules=["any", "majority"])
    >>> figures = table.frame.filter(metric="fpr", domain="(all)", question="(all)", reference="consensus")
    >>> bool(figures["value"][0] > figures["value"][1])
    True
    """
    options = (options or GradeOptions()).changed(changes, "audit_rules")
    fitted = local_fit(_with_ballots(votes, replace(consensus, options=replace(consensus.options, threads=threads))))
    return grade_parts(fitted, options, reference=reference, seed=seed, advance=advance)


def grade_parts(
    fitted: FittedParts,
    options: GradeOptions,
    *,
    reference: Reference = "auto",
    seed: int = 0,
    advance: Advance = ignore,
) -> AuditTable:
    """Grade consensus rules on votes in parts: see `audit_rules`."""
    import polars as pl

    parts, consensus = fitted.parts, fitted.consensus
    asked = as_rules(default_rules(parts.class_votes) if options.rules is None else options.rules)
    check_options(parts.class_votes, asked, reference, options)
    by_item = _goes_by_item(asked, options, parts)
    sorted_items = consensus if by_item else fitted.class_consensus
    cells, members = sort_into_cells(sorted_items, asked)
    one_label = one_label_modes(fitted, lambda share: advance(FITTING * share))
    if one_label:
        advance = partial(_after_fitting, advance)
    sums, of_p_c, changed_c = _sums(fitted, cells.n_cells, members, one_label, options, seed, advance, by_item=by_item)
    graded = _grading(consensus, asked, cells, sums, options, explained=bool(one_label))
    frames = [] if reference == "gold" else [graded.frame()]
    none_c = np.zeros(cells.n_cells)
    # The best rule is said in labels, not in expected costs: as often as its label is not that of the consensus.
    in_labels = replace(graded, sums=replace(sums, p_cs=sums.positive_cs))
    advised = {"consensus": advise(in_labels, none_c, options.costs)}
    known, own = gold_consensus(fitted) if has_gold(parts.class_votes) else (None, None)
    if known is not None and reference != "consensus":
        gold = gold_sums(cells.n_cells, members, replicates=options.bootstrap or REPLICATES, seed=seed)
        frames += _grade_gold(graded, gold, known, own, options.bootstrap or REPLICATES, seed)
        # Gold as evidence is no test of what was learnt from it, but rules on votes have not seen it.
        advised["gold"] = advise(replace(graded, sums=gold), none_c, options.costs)
    frame = pl.concat(frames).fill_nan(None)
    best = best_rule(frame, advised, options.costs, yes_word(parts.class_votes))
    return AuditTable(
        frame=frame,
        rules=rule_frame(graded),
        one_label=one_label_frame(graded, changed_c),
        any_by_votes=any_rule_by_votes(fitted, graded),
        reliability=reliability(known or fitted.class_consensus, mass=consensus.interval),
        advice=Advice(advise(graded, of_p_c, options.costs), best),
        interval=consensus.interval,
        bootstrap=options.bootstrap,
    )


def _grading(
    consensus: Consensus,
    rules: tuple[Rule, ...],
    cells: Cells,
    sums: CellSums,
    options: GradeOptions,
    *,
    explained: bool,
) -> Grading:
    """Return the grading of rules against the consensus."""
    labels = {ballot.question: ballot.labels for ballot in consensus.votes.ballots}
    return Grading(
        "consensus",
        rules,
        cells,
        sums,
        questions=tuple(labels),
        domains=consensus.votes.domains,
        labels=tuple(labels.values()),
        smoothing=options.smoothing,
        mass=consensus.interval,
        resampled=options.bootstrap > 0,
        explained=explained,
    )


def _goes_by_item(asked: Sequence[Rule], options: GradeOptions, parts: Parts) -> bool:
    """Tell whether items are looked at one by one, and not by kinds alike; that takes one machine."""
    by_item = any(rule.looks_at_all_items for rule in asked) or bool(options.bootstrap)
    if by_item and not parts.whole:
        what = "--bootstrap resamples items one by one" if options.bootstrap else "a rule of one's own sees all items"
        msg = f"{what}, which needs one machine. Leave it out with --cluster."
        raise UsageError(msg)
    return by_item


def _sums(
    fitted: FittedParts,
    n_cells: int,
    members: Sequence[Membership],
    one_label: Sequence[Parameters],
    options: GradeOptions,
    seed: int,
    advance: Advance,
    *,
    by_item: bool,
) -> tuple[CellSums, Floats, Floats]:
    """Add up the posterior of the items of each cell, over all parts: see `sums_of_part`."""
    report = advance if fitted.parts.whole else ignore
    facts = None if by_item else [one.fact_nf for one in fitted.parts.classes]
    sorting = Sorting(n_cells, facts, [one.group_i for one in members], [one.cell_gt for one in members])
    sent, *found = map(fitted.parts.workers.send, (sorting, *one_label))
    given = (sent, options.costs, options.bootstrap, seed, report, *found)
    *columns, of_p_c, changed_c = fitted.total(sums_of_part, *given)
    return CellSums(*columns), of_p_c, changed_c


def _after_fitting(advance: Advance, share: float) -> None:
    advance(FITTING + (1.0 - FITTING) * share)


def yes_word(votes: Votes) -> str:
    """Return what a positive vote is called: the label of a single question that says more than yes, else "yes"."""
    labels = {ballot.labels[ballot.positive] for ballot in votes.ballots if ballot.n_labels == 2}
    [label, *others] = sorted(labels) or ["yes"]
    several = len({ballot.question for ballot in votes.ballots}) > 1
    plain = others or several or label.casefold() in POSITIVE_NAMES
    return "yes" if plain else f"{label!r}"


def _grade_gold(
    graded: Grading, gold: CellSums, known: Consensus, own: Consensus | None, replicates: int, seed: int
) -> list[pl.DataFrame]:
    """Grade the rules, and the consensus itself, against gold; and the model's own p, where it is another."""
    against_gold = replace(graded, reference="gold", sums=gold, resampled=True, explained=False)
    of_consensus = replace(against_gold, rules=(CONSENSUS,))
    frames = [against_gold.frame(), grade_consensus(known, of_consensus, replicates, seed)]
    if own is not None:
        frames.append(grade_consensus(own, replace(against_gold, rules=(MODEL,)), replicates, seed))
    return frames


def _with_ballots(votes: Votes, consensus: Consensus) -> Consensus:
    """Replace the ballots by those of `votes`, which may have gained gold or published labels since the fit."""
    fits, ballots = consensus.fits, votes.ballots
    same = len(fits) == len(ballots) and all(map(_same_votes, ballots, (fit.ballot for fit in fits)))
    if not same:
        msg = (
            f"the consensus was fitted to other votes: {', '.join(consensus.votes.questions)} with "
            f"{consensus.votes.n_votes:,} votes, not {', '.join(votes.questions)} with {votes.n_votes:,}. "
            "Pass the votes that were fitted."
        )
        raise UsageError(msg)
    for ballot in ballots:
        _check_codes(votes, ballot)
    fits = tuple(replace(fit, ballot=ballot) for fit, ballot in zip(fits, ballots, strict=True))
    return replace(consensus, votes=votes, fits=fits)


def _same_votes(one: Ballot, other: Ballot) -> bool:
    if one is other:
        return True
    named = (one.question, one.part, one.labels) == (other.question, other.part, other.labels)
    return named and np.array_equal(one.start_i, other.start_i) and np.array_equal(one.code_v, other.code_v)


def _check_codes(votes: Votes, ballot: Ballot) -> None:
    for what, code_i in (("gold", ballot.gold_i), ("published", ballot.published_i)):
        bad_i = np.flatnonzero((code_i < UNKNOWN) | (code_i >= ballot.n_labels))
        if len(bad_i):
            item = votes.items[int(ballot.item_i[bad_i[0]])]
            msg = (
                f"{len(bad_i):,} {what} labels of question {ballot.question!r} are none of the labels that were voted "
                f"({', '.join(ballot.labels)}). First: item {item!r}. Merge or drop them with a label map (CLI: "
                "--labels map.toml)."
            )
            raise VotesError(msg)


def has_gold(votes: Votes) -> bool:
    """Return whether any item has a gold label."""
    return any((ballot.gold_i != UNKNOWN).any() for ballot in votes.ballots)


def _has_published(votes: Votes) -> bool:
    return any((ballot.published_i != UNKNOWN).any() for ballot in votes.ballots)


def default_rules(votes: Votes) -> Sequence[Rule]:
    """Return the rules that are graded by default."""
    rules = list(RULES.values())
    if any(ballot.n_labels > 2 for ballot in votes.ballots):
        rules.append(PLURALITY)
    if _has_published(votes):
        rules.append(PUBLISHED)
    return rules


def check_options(votes: Votes, rules: Sequence[Rule], reference: str, options: GradeOptions) -> None:
    """Raise a `UsageError` for options that make no sense for these votes."""
    smoothing, bootstrap = options.smoothing, options.bootstrap
    n_items = round(max((ballot.count_i.sum() for ballot in votes.ballots), default=0))
    choices = ("auto", "consensus", "gold", "both")
    msg = ""
    if not rules:
        msg = f"no rule to audit. Rules: {', '.join(RULES)}."
    elif reference not in choices:
        msg = f"the reference is {reference!r}; choose one of {', '.join(choices)}."
    elif reference in ("gold", "both") and not has_gold(votes):
        msg = f"none of {n_items:,} items has a gold label. Name their column (CLI: --gold COLUMN)."
    elif PUBLISHED in rules and not _has_published(votes):
        msg = f"none of {n_items:,} items has a published label. Name their column (CLI: --published COLUMN)."
    elif not 0 <= smoothing < np.inf:
        msg = f"smoothing is {smoothing:g}; it is a number of pseudo-votes, 0 or more."
    elif bootstrap < 0:
        msg = f"bootstrap is {bootstrap}; it is how often items are resampled, 0 or more."
    if msg:
        raise UsageError(msg)


def grade_consensus(consensus: Consensus, grading: Grading, replicates: int, seed: int) -> pl.DataFrame:
    """Grade the consensus itself: figures from every item's own p, widths of intervals from merged cells."""
    made = []
    for merged in (False, True):
        cells, members = consensus_cells(consensus, merged=merged)
        sums = gold_sums(cells.n_cells, members, replicates=replicates if merged else 0, seed=seed)
        made.append(replace(grading, cells=cells, sums=sums).frame())
    exact, rough = made
    ends = ((exact["value"] + (rough[end] - rough["value"])).alias(end) for end in ("low", "high"))
    return exact.with_columns(ends)
