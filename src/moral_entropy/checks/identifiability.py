"""Can the votes tell at all? Annotators worse than guessing, labels nobody gave, groups without a link, switched teams.

Takes a `Consensus`, returns findings of the side "identifiability". Cheap: every audit runs it. What the votes cannot
tell, priors decide, and a posterior may be sure of it nonetheless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moral_entropy.checks.label_switching import WORTH, Switch, Team, candidate_teams, cheapest_switches, is_mode
from moral_entropy.checks.vote_access import Unsupported, VoteAccess, VotesOf, each_fit
from moral_entropy.consensus.fit_findings import NOTICEABLE, annotator_name, finding_of
from moral_entropy.consensus.modes import CLOSE
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.youden import SURE, below_chance, surely_below_chance, youden
from moral_entropy.findings import Finding, level_of, listed, many
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.table import Floats, Ints

SIDE = "identifiability"

MANY_VOTES = 0.1
"""Share of the votes from which annotators worse than guessing put the whole fit in doubt."""

UNSUPPORTED, MANY_UNSUPPORTED = 0.001, 0.01
"""Shares of items whose consensus label nobody voted for: worth a word, and too many."""

MANY_CHANGED = 0.05
"""Share of items that a team's switch relabels from which it must be settled first."""

MOST_TEAMS = 4
"""Teams with a finding of their own at most, the cheapest to switch."""

NAMED = 20
"""Annotators with a finding of their own at most, those surest of them."""

SWAPPED = {
    "meaning": "The fit sits on an answer that is not the best one.",
    "cure": "Read some of the items that would change; state priors you can defend (--prior-confusion, "
    "--prior-prevalence) and audit again.",
}


def examine_identifiability(
    consensus: Consensus, *, seed: int = 0, votes_of: VotesOf | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Say what the votes cannot tell.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Not used: nothing here is random.
    votes_of
        Returns the votes of the n-th fit; those on this machine when not given.
    advance
        Called with the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=2).votes
    >>> findings = examine_identifiability(me.fit(votes, draws=100))
    >>> [(finding.figure, finding.value) for finding in findings][:3]
    [('below_chance', 0.0), ('unsupported_labels', 0.0), ('groups', 1.0)]
    >>> any(finding.alarms for finding in findings)
    False
    """
    found: list[Finding] = []
    before: VoteAccess | None = None
    for votes in each_fit(consensus, votes_of, advance):
        if before is None or not votes.same_voters(before):
            before, (group_a, items_g) = votes, votes.groups()
            teams = candidate_teams(votes.shared_items(), group_a)
        if votes.fit.patterns.weight_r.sum():
            found += _examine(consensus, votes, group_a, items_g, teams)
    return found


def _examine(
    consensus: Consensus, votes: VoteAccess, group_a: Ints, items_g: Floats, teams: Sequence[Team]
) -> Iterator[Finding]:
    fit = votes.fit
    yield from _below_chance(consensus, fit)
    yield _unsupported(fit, votes.unsupported())
    yield _groups(consensus, fit, group_a, items_g)
    at = fit.at
    # One matrix for all leaves no team that could switch; a fit at the bound of chance is no mode to compare with.
    if fit.pooling != "full" and is_mode(votes.density, at):
        yield from _teams(consensus, fit, cheapest_switches(votes, at, teams))


def _below_chance(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    below_a, votes_a = below_chance(fit), fit.ballot.votes_a
    sure_a = np.flatnonzero(surely_below_chance(below_a, votes_a))
    sure_a = sure_a[np.lexsort((sure_a, -votes_a[sure_a], -below_a[sure_a]))]
    names = [annotator_name(consensus, fit, a) for a in sure_a.tolist()]
    n_annotators, share = fit.ballot.n_annotators, float(votes_a[sure_a].sum() / max(votes_a.sum(), 1))
    if not names:
        yield finding_of(fit, SIDE, "below_chance", 0, n=n_annotators)
        return
    yield finding_of(
        fit, SIDE, "below_chance", len(names), subject=listed(names), n=n_annotators,
        level=level_of(True, bad=share > MANY_VOTES),
        text=(
            f"{len(names):,} of {n_annotators:,} annotators ({listed(names)}; {share:.1%} of the votes) vote "
            f"worse than guessing, with a probability of {SURE:.0%} or more."
        ),
        meaning=(
            "Their votes count as the opposite of what they say: either they read the scale the other way round, or "
            "the labels switched for them."
        ),
        cure="Read some of their votes; correct a reversed scale in the data, or leave them out and audit again.",
    )  # fmt: skip
    for a, name in zip(sure_a[:NAMED].tolist(), names, strict=False):
        youden_s = youden(fit.confusion_sakv[:, a])
        low, high = (float(bound[0]) for bound in central_interval(youden_s[None], consensus.interval))
        text = (
            f"annotator {name} has a Youden index of {youden_s.mean():z.2f} ({low:z.2f} to {high:z.2f}) on "
            f"{votes_a[a]:,} votes: below 0 with a probability of {below_a[a]:.3f}."
        )
        value, n = float(youden_s.mean()), int(votes_a[a])
        yield finding_of(fit, SIDE, "youden", value, subject=name, low=low, high=high, n=n, text=text)


def _unsupported(fit: QuestionFit, found: Unsupported) -> Finding:
    n, n_voted, share = found.n, round(found.n_voted), found.n / max(found.n_voted, 1.0)
    if found.first is None:
        return finding_of(fit, SIDE, "unsupported_labels", 0, n=n_voted)
    return finding_of(
        fit, SIDE, "unsupported_labels", n, n=n_voted,
        level=level_of(share > UNSUPPORTED, bad=share > MANY_UNSUPPORTED),
        text=(
            f"on {n:,.0f} items ({share:.2%}; first: {found.first}) the model chose a label that no annotator gave: "
            f"on {found.by_votes:,.0f} of them the votes themselves are read the other way round, on "
            f"{n - found.by_votes:z,.0f} the share of the label outweighs the votes."
        ),
        meaning="That takes annotators worse than guessing or a very common label; often two labels have been swapped.",
        cure=(
            "Look at these items in the report (filter: nobody voted for the consensus) and at annotators who "
            "are worse than guessing; state a share you can defend (--prior-prevalence)."
        ),
    )  # fmt: skip


def _groups(consensus: Consensus, fit: QuestionFit, group_a: Ints, items_g: Floats) -> Finding:
    if len(items_g) == 1:
        return finding_of(fit, SIDE, "groups", 1, n=fit.ballot.n_annotators)
    counts = zip(items_g.tolist(), np.bincount(group_a, minlength=len(items_g)).tolist(), strict=True)
    sizes = [f"{many(items, 'item')}, {many(annotators, 'annotator')}" for items, annotators in counts]
    # The first annotator of the second group: somebody to look up.
    someone = annotator_name(consensus, fit, int(np.flatnonzero(group_a == 1)[0]))
    return finding_of(
        fit, SIDE, "groups", len(items_g), n=fit.ballot.n_annotators, level="doubt",
        text=(
            f"the votes fall into {len(items_g):,} groups that share neither item nor annotator "
            f"({listed(sizes, '; ')}; {someone} is in the second)."
        ),
        meaning="Annotators cannot be compared across groups, and each group can switch labels on its own.",
        cure="Fit them apart (--fit-by), or have some items of one group voted on by the other.",
    )  # fmt: skip


def _teams(consensus: Consensus, fit: QuestionFit, switches: Sequence[Switch]) -> Iterator[Finding]:
    n_items = float(fit.patterns.weight_r.sum())
    teams = [switch for switch in switches if not switch.everyone]
    told_by_prior = [
        switch for switch in teams if switch.votes < CLOSE and (switch.changed or 0) >= NOTICEABLE * n_items
    ]
    for switch in told_by_prior[:MOST_TEAMS] or teams[:1]:
        changed = switch.changed or 0.0
        level = level_of(bool(told_by_prior), bad=switch.cost < CLOSE and changed >= MANY_CHANGED * n_items)
        subject, words = _team(consensus, fit, switch), _switch_words(consensus, fit, switch)
        yield finding_of(fit, SIDE, "switch_cost", switch.cost, subject=subject, n=round(changed), level=level, **words)
    for switch in switches:
        if switch.everyone:
            level = level_of(switch.cost < -WORTH, bad=True)
            yield finding_of(fit, SIDE, "switch_cost_all", switch.cost, level=level, **_switch_all_words(fit, switch))


def _team(consensus: Consensus, fit: QuestionFit, switch: Switch) -> str:
    return listed([annotator_name(consensus, fit, a) for a in np.flatnonzero(switch.team_a).tolist()], " · ")


def _switch_words(consensus: Consensus, fit: QuestionFit, switch: Switch) -> dict[str, str]:
    """Put a team's switch into words: text, and what it means and what to do where it matters."""
    one, other = (fit.ballot.labels[k] for k in switch.labels)
    who = f"the team of {switch.team_a.sum():,} ({_team(consensus, fit, switch)})"
    if switch.changed is None:
        easiest = f"of the teams tried, {who} is the easiest to read the other way round"
        return {"text": f"{easiest}, and {switch.cost:z,.0f} nats speak against that."}
    changed = f"{switch.changed:,.0f} items would change label"
    if switch.cost < -WORTH:
        swapped = f"the labels {one} and {other} may have been swapped for {who}"
        return {
            "text": f"{swapped}: traded back, {changed} and the fit is better by {-switch.cost:.1f} nats.",
            **SWAPPED,
        }
    return {
        "text": (
            f"{who} could be read the other way round ({one} for {other}): {changed}, and the fit is worse by only "
            f"{switch.cost:z.1f} nats, {switch.votes:z.1f} of them from the votes."
        ),
        "meaning": "The votes are too few to tell: the assumption that annotators are better than chance decides.",
        "cure": "Have some of the team's items voted on by others.",
    }


def _switch_all_words(fit: QuestionFit, switch: Switch) -> dict[str, str]:
    one, other = (fit.ballot.labels[k] for k in switch.labels)
    if switch.cost < -WORTH:
        swapped = f"the labels {one} and {other} may have been swapped for everyone"
        return {"text": f"{swapped}: traded back, the fit is better by {-switch.cost:.1f} nats.", **SWAPPED}
    cost = (
        f"reading every vote the other way round ({one} for {other}) costs {switch.cost:z.1f} nats, all from the prior"
    )
    return {"text": f"{cost}: that annotators are better than chance is an assumption, which no vote can test."}
