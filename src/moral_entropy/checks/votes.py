"""Did the fit succeed, are there enough votes, and can they tell? The checks that need nothing but the fits.

Items with hardly a vote, annotators hardly known or worse than guessing, one who dominates, labels nobody gave, groups
without a link. Cheap: every audit runs them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from moral_entropy.checks.dependence import check_alike
from moral_entropy.findings import Finding, level_of, listed, many
from moral_entropy.model.consensus import SURE, Consensus, QuestionFit, below_chance, surely_below_chance
from moral_entropy.model.findings import annotator_name, finding_of
from moral_entropy.model.patterns import Patterns
from moral_entropy.votes.table import Floats, Ints

MANY_VOTES = 0.1
"""Share of the votes from which annotators hardly known, or worse than guessing, put the whole fit in doubt."""

FEW_OF_A_LABEL = 3.0
"""Votes on items of a label below which an annotator's errors there are hardly known."""

DOMINATES = 0.4
"""Share of all votes from which one annotator dominates."""

UNSUPPORTED, MANY_UNSUPPORTED = 0.001, 0.01
"""Shares of items whose consensus label nobody voted for: worth a word, and too many."""

VOTED, ALMOST_NONE = 0.05, 0.005
"""Share of the items with votes for a label from which it is missed, where no more than the other have it."""

FEW_ITEMS, MANY_ITEMS = 30, 300
"""Items of a label below which little is learnt about it, and items in all from which that is worth a word."""

SPREAD = 2.0
"""From so many times as many items by p as by labels the number of a rare label is a guess: p rests on single votes.
Chosen on 240 simulated sets: p said 2.1 to 74 times the planted number above it, .9 to 2.6 times below."""

VOTES_AT_ONCE = 4_000_000


def check_fit(consensus: Consensus) -> list[Finding]:
    """Repeat what the fits have warned of, and say so where there are no draws."""
    findings = [finding for finding in consensus.findings if finding.check == "fit"]
    if consensus.options.draws:
        return findings
    no_draws = Finding(
        "fit", "draws", 0, level="doubt",
        text="no posterior draws were asked for.",
        meaning="There are no intervals, and the entropy is not split: any figure may be firm or a guess.",
        remedy="Run the audit again without --draws 0.",
    )  # fmt: skip
    return [*findings, no_draws]


def check_votes(consensus: Consensus) -> list[Finding]:
    """Count what there is too little of.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=2).votes
    >>> [finding.metric for finding in check_votes(me.fit(votes, draws=100)) if finding.level != "info"]
    []
    """
    findings = [finding for finding in consensus.findings if finding.check == "votes"]
    for fit in consensus.fits:
        count_i, voted_i = fit.ballot.count_i, fit.ballot.votes_i > 0
        if unvoted := float(count_i[~voted_i].sum()):
            findings.append(finding_of(
                fit, "votes", "items_without_votes", unvoted, n=round(float(count_i.sum())), level="note",
                text=f"{unvoted:,.0f} items have no vote.",
                meaning=(
                    "Their p is the share of the label among all items, and no rule on votes says anything about them."
                ),
                remedy="Leave them out of what you publish, or have them annotated.",
            ))  # fmt: skip
        # Pooled rows are everybody's; that they outweigh one annotator's votes is their purpose.
        if voted_i.any() and not consensus.votes.anonymous:
            findings += [_hardly_known(consensus, fit), *check_alike(consensus, fit)]
    findings += _dominant(consensus)
    return [*findings, *_without_votes(consensus)] if consensus.priors.annotators else findings


def _hardly_known(consensus: Consensus, fit: QuestionFit) -> Finding:
    """Find annotators of whom some confusion row rests on very few votes, or more on the prior than on votes."""
    ballot, votes_a = fit.ballot, fit.ballot.votes_a
    least_ak = np.maximum(fit.pseudo.confusion_akv.sum(axis=-1), FEW_OF_A_LABEL)
    # The votes of each annotator by the label that their items have at the mode.
    votes_ak = np.zeros((ballot.n_annotators, ballot.n_labels))
    for start in range(0, ballot.n_items, VOTES_AT_ONCE // 4):
        items = slice(start, min(start + VOTES_AT_ONCE // 4, ballot.n_items))
        annotator_v = ballot.code_v[ballot.start_i[items.start] : ballot.start_i[items.stop]] // ballot.n_labels
        for k in range(ballot.n_labels):
            weight_v = np.repeat(fit.posterior_ik[items, k] * ballot.count_i[items], ballot.votes_i[items])
            votes_ak[:, k] += np.bincount(annotator_v, weights=weight_v, minlength=ballot.n_annotators)
    # On a scale a rater's bias and spread are the same for all levels.
    ordered = ballot.levels is not None
    thin_a = votes_ak.sum(axis=-1) < least_ak.max(axis=-1) if ordered else (votes_ak < least_ak).any(axis=-1)
    # Whoever is counted with another has no vote of their own in the fit.
    thin_a[[a for group in fit.counted_groups for a in group[1:]]] = False
    share = float(votes_a[thin_a].sum() / max(votes_a.sum(), 1))
    thin = np.flatnonzero(thin_a)[np.argsort(votes_a[thin_a], kind="stable")].tolist()
    if not thin:
        return finding_of(fit, "votes", "hardly_known", 0.0, n=0)
    names = listed([annotator_name(consensus, fit, a) for a in thin])
    return finding_of(
        fit, "votes", "hardly_known", share, n=len(thin), level=level_of(share > MANY_VOTES),
        text=(
            f"{len(thin):,} of {len(thin_a):,} annotators, who gave {share:.1%} of the votes, have voted on very few "
            f"items of some label ({names})."
        ),
        meaning="Of their errors the default assumption says more than their votes do.",
        remedy="Collect more votes per annotator, or compare runs under other priors before you trust their rates.",
    )  # fmt: skip


def _dominant(consensus: Consensus) -> Iterator[Finding]:
    votes_a = np.zeros(len(consensus.votes.annotators), dtype=np.int64)
    for fit in consensus.fits:
        np.add.at(votes_a, fit.ballot.annotator_a, fit.ballot.votes_a)
    n_annotators, total = np.count_nonzero(votes_a), votes_a.sum()
    if consensus.votes.anonymous or n_annotators < 3:
        return
    share = float(votes_a.max() / total)
    # Of three annotators one third each is no dominance.
    if share > max(DOMINATES, 1.5 / n_annotators):
        first = str(consensus.votes.annotators[int(votes_a.argmax())])
        yield Finding(
            "votes", "dominant_annotator", share, subject=first, n=int(votes_a.max()), level="doubt",
            text=f"one annotator dominates: {first} gave {share:.0%} of all votes.",
            meaning="The consensus leans on one person's reading, and the others are measured against it.",
            remedy="Audit again without this annotator and compare; spread the next votes over others.",
        )  # fmt: skip


def _without_votes(consensus: Consensus) -> Iterator[Finding]:
    """Find annotators with a prior of their own who have no vote."""
    present = set(consensus.votes.annotators.cast(str).to_list())
    with_prior = [str(name) for name in consensus.priors.annotators]
    strangers = [name for name in with_prior if name not in present]
    if strangers:
        yield Finding(
            "votes", "priors_without_votes", len(strangers), subject=listed(strangers), level="doubt",
            n=len(with_prior),
            text=(
                f"{len(strangers)} of {len(with_prior)} annotators with a prior of their own have no vote here. First: "
                f"{strangers[0]!r}."
            ),
            meaning="Their priors are not used: the same people may be spelt differently in the votes.",
            remedy="Compare the names of --prior-annotators with those in the votes.",
        )  # fmt: skip


def check_identifiability(consensus: Consensus) -> list[Finding]:
    """Say what the votes cannot tell: there priors decide, and a posterior may be sure of it nonetheless.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=2).votes
    >>> [(finding.metric, finding.value) for finding in check_identifiability(me.fit(votes, draws=100))]
    [('below_chance', 0.0), ('unsupported_labels', 0.0), ('groups', 1.0)]
    """
    findings: list[Finding] = []
    for fit in consensus.fits:
        if fit.patterns.weight_r.any():
            findings += [_below_chance(consensus, fit), _unsupported(consensus, fit), _groups(consensus, fit)]
            findings += [*_labels_lost(fit)]
    return findings


def _below_chance(consensus: Consensus, fit: QuestionFit) -> Finding:
    below_a, votes_a = below_chance(fit), fit.ballot.votes_a
    sure_a = np.flatnonzero(surely_below_chance(below_a, votes_a))
    sure_a = sure_a[np.lexsort((sure_a, -votes_a[sure_a], -below_a[sure_a]))]
    names = [annotator_name(consensus, fit, a) for a in sure_a.tolist()]
    n_annotators, share = fit.ballot.n_annotators, float(votes_a[sure_a].sum() / max(votes_a.sum(), 1))
    if not names:
        return finding_of(fit, "identifiability", "below_chance", 0, n=n_annotators)
    return finding_of(
        fit, "identifiability", "below_chance", len(names), subject=listed(names), n=n_annotators,
        level=level_of(True, bad=share > MANY_VOTES),
        text=(
            f"{len(names):,} of {n_annotators:,} annotators ({listed(names)}; {share:.1%} of the votes) vote "
            f"worse than guessing, with a probability of {SURE:.0%} or more."
        ),
        meaning=(
            "Their votes count as the opposite of what they say: either they read the scale the other way round, or "
            "the labels switched for them."
        ),
        remedy="Read some of their votes; correct a reversed scale in the data, or leave them out and audit again.",
    )  # fmt: skip


def _unsupported(consensus: Consensus, fit: QuestionFit) -> Finding:
    """Count the items whose consensus label nobody voted for.

    An item with a single vote is left out where the prior simply outweighs it; with two labels, a single "no" that
    counts as "yes" is counted.
    """
    ballot, label_i = fit.ballot, fit.label_i
    enough_i = ballot.votes_i >= 2
    if ballot.n_labels == 2:
        enough_i |= (ballot.votes_i > 0) & (label_i == ballot.positive)
    item_i = np.flatnonzero(enough_i & ~fit.supported_i)
    n_voted = float(ballot.count_i[ballot.votes_i > 0].sum())
    if not len(item_i):
        return finding_of(fit, "identifiability", "unsupported_labels", 0, n=round(n_voted))
    n = float(ballot.count_i[item_i].sum())
    share, first = n / n_voted, consensus.votes.items[int(ballot.item_i[item_i[0]])]
    return finding_of(
        fit, "identifiability", "unsupported_labels", n, n=round(n_voted),
        level=level_of(share > UNSUPPORTED, bad=share > MANY_UNSUPPORTED),
        text=f"on {n:,.0f} items ({share:.2%}; first: {first}) the model chose a label that no annotator gave.",
        meaning="That takes annotators worse than guessing or a very common label; often two labels have been swapped.",
        remedy=(
            "Look at these items in the report (filter: nobody voted for the consensus) and at annotators who "
            "are worse than guessing; state a share you can defend (--prior-prevalence)."
        ),
    )  # fmt: skip


def _labels_lost(fit: QuestionFit) -> Iterator[Finding]:
    """Name labels that many items have votes for and hardly an item gets, and those too rare to learn about."""
    ballot, weight_i = fit.ballot, np.where(fit.ballot.votes_i > 0, fit.ballot.count_i, 0.0)
    total, counts_ik = float(weight_i.sum()), ballot.counts_ik
    most_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    for k, label in enumerate(ballot.labels):
        voted, first, labelled, by_p = (
            float(weight_i @ value_i)
            for value_i in (counts_ik[:, k] > 0, most_ik[:, k], fit.label_i == k, fit.p_ik[:, k])
        )
        # The label of a scale is its median, which is seldom an end of it.
        is_spread = ballot.levels is None and by_p > SPREAD * max(labelled, FEW_ITEMS / 2)
        if voted >= VOTED * total and labelled <= ALMOST_NONE * total:
            yield finding_of(
                fit, "identifiability", "vanishing_label", labelled, subject=label, n=round(total),
                level="doubt" if first > MANY_UNSUPPORTED * total else "note",
                text=(
                    f"{label!r} has votes on {voted:,.0f} of {total:,.0f} items and the most votes on {first:,.0f}; it "
                    f"is the consensus on {labelled:,.0f}, by p on {by_p:,.0f}."
                ),
                meaning="Whoever counts labels sees next to none of it; how many there are is a guess.",
                remedy="Check items with votes for it by hand.",
            )  # fmt: skip
        elif (
            voted and (is_spread or min(labelled, by_p) < FEW_ITEMS)
            and labelled < VOTED * total and total >= MANY_ITEMS
        ):  # fmt: skip
            yield finding_of(
                fit, "identifiability", "rare_label", labelled, subject=label, n=round(total),
                level="doubt" if is_spread else "note",
                text=(
                    f"how many items are {label!r} is a guess: {labelled:,.0f} of {total:,.0f} by labels, {by_p:,.0f} "
                    f"by p; {voted:,.0f} have a vote for it."
                ),
                meaning="So few items hardly teach how annotators vote on them.",
                remedy=f"Check the items with votes for {label!r} by hand: moral-entropy spot-check.",
            )  # fmt: skip


def _groups(consensus: Consensus, fit: QuestionFit) -> Finding:
    group_a, items_g = find_groups(fit.patterns)
    if len(items_g) == 1:
        return finding_of(fit, "identifiability", "groups", 1, n=fit.ballot.n_annotators)
    counts = zip(items_g.tolist(), np.bincount(group_a, minlength=len(items_g)).tolist(), strict=True)
    sizes = [f"{many(items, 'item')}, {many(annotators, 'annotator')}" for items, annotators in counts]
    # The first annotator of the second group: somebody to look up.
    someone = annotator_name(consensus, fit, int(np.flatnonzero(group_a == 1)[0]))
    return finding_of(
        fit, "identifiability", "groups", len(items_g), n=fit.ballot.n_annotators, level="doubt",
        text=(
            f"the votes fall into {len(items_g):,} groups that share neither item nor annotator "
            f"({listed(sizes, '; ')}; {someone} is in the second)."
        ),
        meaning="Annotators cannot be compared across groups, and each group can switch labels on its own.",
        remedy="Fit them apart (--fit-by), or have some items of one group voted on by the other.",
    )  # fmt: skip


def find_groups(patterns: Patterns) -> tuple[Ints, Floats]:
    """Find the groups of annotators and items that no vote links.

    Returns
    -------
    tuple
        The group of every annotator, `group_a`, those of most items first, and how many items each has, `items_g`;
        items count as often as they weigh. Annotators without a counted vote belong to the largest.

    Examples
    --------
    >>> from moral_entropy.model.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1, 1, 2], "annotator_v": [0, 1, 1, 2, 3], "label_v": [0, 1, 0, 1, 1]}
    >>> find_groups(collapse(ballot_from_codes("q", ("0", "1"), **votes)))
    (array([0, 0, 0, 1]), array([2., 1.]))
    """
    n_annotators = patterns.n_annotators
    group_a, links = np.arange(n_annotators), (n_annotators, n_annotators)
    first_v = np.zeros(len(patterns.code_v) + 1, dtype=bool)
    first_v[patterns.start_r] = True
    for start in range(0, len(patterns.code_v) - 1, VOTES_AT_ONCE):
        annotator_v = group_a[patterns.code_v[start : start + VOTES_AT_ONCE + 1] // patterns.n_labels]
        # Votes that lie side by side in a row are enough to link all of it.
        same_v = ~first_v[start + 1 : start + len(annotator_v)]
        ends = (annotator_v[:-1][same_v], annotator_v[1:][same_v])
        graph = csr_array((np.ones(len(ends[0]), dtype=bool), ends), shape=links)
        joined_g = connected_components(graph, directed=False)[1]
        group_a = joined_g[group_a]
    row_r = np.flatnonzero((np.diff(patterns.start_r) > 0) & (patterns.weight_r > 0))
    group_r = group_a[patterns.code_v[patterns.start_r[row_r]] // patterns.n_labels]
    items_g = np.bincount(group_r, weights=patterns.weight_r[row_r], minlength=n_annotators).astype(np.float64)
    order_g = np.argsort(-items_g, kind="stable")
    rank_g = np.empty(n_annotators, dtype=np.int64)
    rank_g[order_g] = np.where(items_g[order_g] > 0, np.arange(n_annotators), 0)
    return rank_g[group_a], items_g[order_g][: max(int((items_g > 0).sum()), 1)]
