"""Consensus → AuditTable: every rule graded, every figure with an interval.

The one function most users call. One pass over items and draws, then grades of groups of cells. Touches no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.model.consensus import Consensus
from moral_entropy.option_fields import lists_options
from moral_entropy.options import GradeOptions
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.advice import NO_VOTES, Advice, advise, best_rule
from moral_entropy.rules.any_by_votes import any_rule_by_votes
from moral_entropy.rules.calibration import CONSENSUS, MODEL, consensus_cells, reliability
from moral_entropy.rules.cells import RuleSums, gold_sums, group_by_answers, rule_sums, sort_into_cells
from moral_entropy.rules.grading import Grading
from moral_entropy.rules.rules import PLURALITY, PUBLISHED, RULES, Rule, as_rules
from moral_entropy.schemas import SCHEMAS
from moral_entropy.votes.labels import POSITIVE_NAMES
from moral_entropy.votes.table import UNKNOWN, Votes

REPLICATES = 200
"""Resamplings of the items for intervals against gold."""

Reference = Literal["auto", "consensus", "gold", "both"]


@dataclass(frozen=True, eq=False)
class AuditTable:
    """The results of the audit of rules.

    Against the consensus a figure grades the rule by the published p, and has no interval: what p itself may be off by
    is not in the votes. Against gold its interval is over resampled items.

    Parameters
    ----------
    frame
        One row per figure: question, domain, label, rule, reference, metric, value, low, high, n. Null where the
        denominator is empty, infinite where the score is.
    rules
        One row per rule and question: question, label, rule, meaning, items, abstained, tied, and
        `same_as`: an earlier rule that gives every item the same label.
    any_by_votes
        The any rule's false-positive rate by number of votes: see `any_rule_by_votes`.
    reliability
        The consensus' reliability diagram against gold; no rows without gold.
    advice
        The best of the named rules for the costs named.
    interval
        Mass of the intervals.
    """

    frame: pl.DataFrame
    rules: pl.DataFrame
    any_by_votes: pl.DataFrame
    reliability: pl.DataFrame
    advice: Advice
    interval: float

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
    advance
        Called with the share done.
    **changes
        Options by name.

    Examples
    --------
    >>> from moral_entropy.model.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=1).votes
    >>> table = audit_rules(votes, fit(votes, draws=100), rules=["any", "majority"])
    >>> figures = table.frame.filter(metric="fpr", domain="(all)", question="(all)", reference="consensus")
    >>> bool(figures["value"][0] > figures["value"][1])
    True
    """
    options = (options or GradeOptions()).changed(changes, "audit_rules")
    consensus = _with_ballots(votes, consensus)
    return grade_rules(consensus, options, reference=reference, seed=seed, advance=advance)


def grade_rules(
    consensus: Consensus,
    options: GradeOptions,
    *,
    reference: Reference = "auto",
    seed: int = 0,
    advance: Advance = ignore,
    sums: RuleSums | None = None,
    with_gold: Consensus | None = None,
) -> AuditTable:
    """Grade consensus rules on the votes of a consensus: see `audit_rules`.

    Where the consensus has only a sample of the items, `sums` are those over all, `with_gold` has those with gold.
    """
    votes, with_gold = consensus.votes, with_gold or consensus
    many_labels, published = any(ballot.n_labels > 2 for ballot in votes.ballots), has_gold(votes, "published_i")
    rules = default_rules(many_labels, published) if options.rules is None else as_rules(options.rules)
    check_options(votes, rules, reference, options)
    cells, members = sort_into_cells(with_gold.votes, with_gold.fits, group_by_answers, rules=rules)
    sums = sums or rule_sums(cells, members, options.costs)
    advance(0.5)
    labels = {ballot.question: ballot.labels for ballot in votes.ballots}
    names = (tuple(labels), votes.domains, tuple(labels.values()))
    settings = (options.smoothing, consensus.interval)
    graded = Grading("consensus", rules, sums.cells, sums.sum_tcs, *names, *settings)
    frames = [] if reference == "gold" else [graded.frame()]
    # The paper's model counts labels that are not the consensus' own; p that holds the vote share, expected errors.
    led_by = graded if consensus.options.mixed else replace(graded, sum_tcs=sums.sum_tcs[[0, 1, 1]])
    advised = {"consensus": advise(led_by, np.zeros_like(sums.cost_c), options.costs)}
    points = pl.DataFrame(schema=SCHEMAS["audit_reliability"])
    if has_gold(with_gold.votes):
        points = reliability(with_gold, mass=consensus.interval)
    if has_gold(with_gold.votes) and reference != "consensus":
        gold_tcs = gold_sums(len(cells.question_c), members, replicates=REPLICATES, seed=seed)
        against_gold = replace(graded, reference="gold", cells=cells, sum_tcs=gold_tcs)
        frames += [against_gold.frame(), grade_consensus(with_gold, against_gold, seed)]
        if consensus.options.mixed:
            frames.append(grade_consensus(with_gold, against_gold, seed, unpooled=True))
        # Gold as evidence is no test of what was learnt from it, but rules on votes have not seen it.
        advised["gold"] = advise(against_gold, np.zeros(len(cells.question_c)), options.costs)
    frame = pl.concat(frames).fill_nan(None)
    best = best_rule(frame, advised, options.costs, yes_word(votes), expected=consensus.options.mixed)
    advice = Advice(advise(graded, sums.cost_c, options.costs), best, NO_VOTES if best is None else best["text"])
    curves = any_rule_by_votes(consensus, graded)
    return AuditTable(frame, _rule_frame(graded), curves, points, advice, consensus.interval)


def grade_consensus(consensus: Consensus, graded: Grading, seed: int, *, unpooled: bool = False) -> pl.DataFrame:
    """Grade the consensus itself against gold, by the published p or the model's own.

    Figures are from every item's own p, widths of intervals from merged cells.
    """
    frames = []
    for in_bins in (False, True):
        cells, members = consensus_cells(consensus, in_bins=in_bins, unpooled=unpooled)
        sum_tcs = gold_sums(len(cells.question_c), members, replicates=REPLICATES if in_bins else 0, seed=seed)
        frames.append(replace(graded, rules=(MODEL if unpooled else CONSENSUS,), cells=cells, sum_tcs=sum_tcs).frame())
    exact, rough = frames
    ends = ((exact["value"] + (rough[end] - rough["value"])).alias(end) for end in ("low", "high"))
    return exact.with_columns(ends)


def _rule_frame(graded: Grading) -> pl.DataFrame:
    """Return per rule and question its meaning, on how many items it abstains or is tied, which rule labels alike."""
    cells, items_c, rows = graded.cells, graded.sum_tcs[0, :, 0], []
    for q, question in enumerate(graded.questions):
        for k in np.unique(cells.label_c[cells.question_c == q]):
            cell_c = np.flatnonzero((cells.question_c == q) & (cells.label_c == k))
            decision_rc = cells.decision_rc[:, cell_c]
            for r, rule in enumerate(graded.rules):
                abstained_c, tied_c = np.isnan(cells.score_rc[r, cell_c]), cells.tied_rc[r, cell_c]
                sizes = (items_c[cell_c], items_c[cell_c[abstained_c]], items_c[cell_c[tied_c]])
                first = next(n for n in range(r + 1) if np.array_equal(decision_rc[n], decision_rc[r], equal_nan=True))
                same_as = graded.rules[first].name if first != r else None
                where = (question, graded.labels[q][k], rule.name, rule.meaning)
                rows.append((*where, *(round(items.sum()) for items in sizes), same_as))
    return pl.DataFrame(rows, schema=SCHEMAS["audit_rules"], orient="row")


def yes_word(votes: Votes) -> str:
    """Return what a positive vote is called: the label of a single question that says more than yes, else "yes"."""
    labels = {ballot.labels[ballot.positive] for ballot in votes.ballots if ballot.n_labels == 2}
    [label, *further] = sorted(labels) or ["yes"]
    plain = further or len(votes.questions) > 1 or label.casefold() in POSITIVE_NAMES
    return "yes" if plain else f"{label!r}"


def _with_ballots(votes: Votes, consensus: Consensus) -> Consensus:
    """Replace the ballots by those of `votes`, which may have gained gold or published labels since the fit."""
    fits, ballots = consensus.fits, votes.ballots
    is_same = [
        a is b
        or (
            (a.question, a.part, a.labels) == (b.question, b.part, b.labels)
            and np.array_equal(a.start_i, b.start_i)
            and np.array_equal(a.code_v, b.code_v)
        )
        for a, b in zip(ballots, (fit.ballot for fit in fits), strict=False)
    ]
    if len(fits) != len(ballots) or not all(is_same):
        msg = (
            f"the consensus was fitted to other votes: {', '.join(consensus.votes.questions)} with "
            f"{consensus.votes.n_votes:,} votes, not {', '.join(votes.questions)} with {votes.n_votes:,}. "
            "Pass the votes that were fitted."
        )
        raise UsageError(msg)
    fits = tuple(replace(fit, ballot=ballot) for fit, ballot in zip(fits, ballots, strict=True))
    return replace(consensus, votes=votes, fits=fits)


def has_gold(votes: Votes, column: str = "gold_i") -> bool:
    """Return whether any item has a gold label, or a published one."""
    return any((getattr(ballot, column) != UNKNOWN).any() for ballot in votes.ballots)


def default_rules(many_labels: bool, published: bool) -> tuple[Rule, ...]:
    """Return the rules that are graded by default."""
    return (*RULES.values(), *([PLURALITY] * many_labels), *([PUBLISHED] * published))


def check_options(votes: Votes, rules: Sequence[Rule], reference: str, options: GradeOptions) -> None:
    """Raise a `UsageError` for options that make no sense for these votes."""
    n_items = round(max((ballot.count_i.sum() for ballot in votes.ballots), default=0))
    choices = ("auto", "consensus", "gold", "both")
    msg = ""
    if not rules:
        msg = f"no rule to audit. Rules: {', '.join(RULES)}."
    elif reference not in choices:
        msg = f"the reference is {reference!r}; choose one of {', '.join(choices)}."
    elif reference in ("gold", "both") and not has_gold(votes):
        msg = f"none of {n_items:,} items has a gold label. Name their column (CLI: --gold COLUMN)."
    elif PUBLISHED in rules and not has_gold(votes, "published_i"):
        msg = f"none of {n_items:,} items has a published label. Name their column (CLI: --published COLUMN)."
    elif not 0 <= options.smoothing < np.inf:
        msg = f"smoothing is {options.smoothing:g}; it is a number of pseudo-votes, 0 or more."
    if msg:
        raise UsageError(msg)
