"""Can the votes tell at all? Annotators below chance, votes overruled, groups without a link, teams that can switch.

Takes a `Consensus`, gives findings of the side "identifiability". Cheap: every audit runs it. What the votes cannot
tell, priors decide, and a posterior may be sure of it nonetheless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moral_entropy.consensus.fitted import local_fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.modes import CLOSE
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.warn import NOTICEABLE
from moral_entropy.consensus.youden import SURE, below_chance, surely_below_chance, youden
from moral_entropy.grading.intervals import central_interval
from moral_entropy.progress import Advance, ignore
from moral_entropy.validate.behind import Behind, BehindFit, votes_behind
from moral_entropy.validate.finding import Finding, Level
from moral_entropy.validate.links import Groups
from moral_entropy.validate.overruled import Overruled
from moral_entropy.validate.teams import WORTH, Switch, Team, candidate_teams, cheapest_switches, is_mode
from moral_entropy.validate.thin import thin_findings
from moral_entropy.validate.words import annotator_name, finding_of, level_of, listed

SIDE = "identifiability"

MANY_VOTES = 0.1
"""Share of the votes from which annotators below chance, or hardly known, put the whole fit in doubt."""

OVERRULED, MANY_OVERRULED = 0.001, 0.01
"""Shares of items on which all votes are overruled: worth a word, and too many."""

MANY_CHANGED = 0.05
"""Share of items that a team's switch relabels from which it must be settled first."""

MOST_TEAMS = 4
"""Teams with a finding of their own at most, the cheapest to switch."""

NAMED = 20
"""Annotators with a finding of their own at most, those surest below chance."""


def examine_identifiability(
    consensus: Consensus, *, seed: int = 0, behind: BehindFit | None = None, advance: Advance = ignore
) -> list[Finding]:
    """Say what the votes cannot tell.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Not used: nothing here is random.
    behind
        Gives the votes behind a fit.
    advance
        Told the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=5, seed=2).votes
    >>> findings = examine_identifiability(me.fit(votes, draws=100))
    >>> [(finding.figure, finding.value) for finding in findings][:3]
    [('below_chance', 0.0), ('unanimous_against', 0.0), ('groups', 1.0)]
    >>> any(finding.alarms for finding in findings)
    False
    """
    found: list[Finding] = []
    behind = behind or votes_behind(local_fit(consensus))
    before: tuple[Behind, Groups, list[Team]] | None = None
    for n in range(len(consensus.fits)):
        votes = behind(n)
        if before is None or not votes.same_voters(before[0]):
            groups = votes.groups()
            before = votes, groups, candidate_teams(votes.shared_items(), groups)
        found += _examine(consensus, votes, *before[1:])
        advance((n + 1) / len(consensus.fits))
    return found


def _examine(consensus: Consensus, behind: Behind, groups: Groups, teams: Sequence[Team]) -> Iterator[Finding]:
    fit = behind.fit
    if not fit.patterns.weight_r.sum():
        return
    log_posterior = behind.density
    at = Parameters(np.log(fit.prevalence_k), np.log(fit.confusion_akv))
    yield from _below_chance(consensus, fit)
    yield from _unanimous_against(fit, behind.overruled())
    yield from _groups(consensus, fit, groups)
    expected = log_posterior.expect(at)
    # One matrix for all leaves no team that could switch; a fit at the bound of chance is no mode to compare with.
    if fit.pooling != "full" and is_mode(log_posterior, at):
        yield from _teams(consensus, fit, cheapest_switches(behind.switchboard(), at, teams))
    yield from thin_findings(consensus, fit, expected.votes_akv - log_posterior.pseudo_akv)


def _below_chance(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    below_a, votes_a = below_chance(fit), fit.ballot.votes_a
    sure_a = np.flatnonzero(surely_below_chance(below_a, votes_a))
    sure_a = sure_a[np.lexsort((sure_a, -votes_a[sure_a], -below_a[sure_a]))]
    names = [annotator_name(consensus, fit, a) for a in sure_a.tolist()]
    share = float(votes_a[sure_a].sum() / max(votes_a.sum(), 1))
    text, level = "", level_of(bool(len(sure_a)), bad=share > MANY_VOTES)
    if names:
        text = (
            f"{len(names):,} of {fit.ballot.n_annotators:,} annotators ({listed(names)}; {share:.1%} of the votes) "
            f"are below chance with a probability of {SURE:.0%} or more: their votes count as the opposite of what "
            "they say. Either they read the scale the other way round, or the labels switched for them."
        )
    yield finding_of(fit, SIDE, "below_chance", len(names), n=fit.ballot.n_annotators, level=level, text=text)
    for a, name in zip(sure_a[:NAMED].tolist(), names, strict=False):
        youden_s = youden(fit.confusion_sakv[:, a])
        low, high = central_interval(youden_s[None], consensus.interval)
        words = (
            f"annotator {name} has a Youden index of {youden_s.mean():z.2f} ({low[0]:z.2f} to {high[0]:z.2f}) on "
            f"{votes_a[a]:,} votes: below 0 with a probability of {below_a[a]:.3f}."
        )
        yield finding_of(
            fit, SIDE, "youden", float(youden_s.mean()), subject=name, low=float(low[0]), high=float(high[0]),
            n=int(votes_a[a]), level="doubt", text=words,
        )  # fmt: skip


def _unanimous_against(fit: QuestionFit, found: Overruled) -> Iterator[Finding]:
    n, n_voted, by_votes = found.n, found.n_voted, found.by_votes
    share = n / max(n_voted, 1.0)
    text, level = "", level_of(share > OVERRULED, bad=share > MANY_OVERRULED)
    if found.first is not None:
        text = (
            f"{n:,.0f} items ({share:.2%}; first: {found.first}) have votes for one label alone and a consensus of "
            f"another. On {by_votes:,.0f} of them the votes themselves are read the other way round, since those "
            f"annotators are fitted below chance; on {n - by_votes:z,.0f} the prevalence outweighs the votes."
        )
    yield finding_of(fit, SIDE, "unanimous_against", n, n=round(n_voted), level=level, text=text)


def _groups(consensus: Consensus, fit: QuestionFit, groups: Groups) -> Iterator[Finding]:
    text = ""
    if len(groups) > 1:
        sizes = [
            f"{items:,.0f} items, {annotators:,} annotators"
            for items, annotators in zip(groups.items_g, groups.annotators_g, strict=True)
        ]
        # The first annotator of the second group: somebody to look up.
        someone = annotator_name(consensus, fit, int(np.flatnonzero(groups.group_a == 1)[0]))
        text = (
            f"the votes fall into {len(groups):,} groups that share neither item nor annotator ({listed(sizes, '; ')}"
            f"; {someone} is in the second): annotators cannot be compared across them, and each group can switch "
            "labels on its own. Fit them apart (--fit-by), or have some items of one group voted on by the other."
        )
    level: Level = "doubt" if len(groups) > 1 else "info"
    yield finding_of(fit, SIDE, "groups", len(groups), n=fit.ballot.n_annotators, level=level, text=text)


def _teams(consensus: Consensus, fit: QuestionFit, switches: Sequence[Switch]) -> Iterator[Finding]:
    n_items = float(fit.patterns.weight_r.sum())
    teams = [switch for switch in switches if not switch.everyone]
    told_by_prior = [
        switch for switch in teams if switch.votes < CLOSE and (switch.changed or 0) >= NOTICEABLE * n_items
    ]
    for switch in told_by_prior[:MOST_TEAMS] or teams[:1]:
        changed, subject = switch.changed or 0.0, _team(consensus, fit, switch)
        bad = switch.cost < CLOSE and changed >= MANY_CHANGED * n_items
        level, text = level_of(bool(told_by_prior), bad=bad), _switch_text(consensus, fit, switch)
        yield finding_of(
            fit, SIDE, "switch_cost", switch.cost, subject=subject, n=round(changed), level=level, text=text
        )
    for switch in switches:
        if switch.everyone:
            text = _switch_all_text(fit, switch)
            level = "bad" if switch.cost < -WORTH else "info"
            yield finding_of(fit, SIDE, "switch_cost_all", switch.cost, level=level, text=text)


def _team(consensus: Consensus, fit: QuestionFit, switch: Switch) -> str:
    return listed([annotator_name(consensus, fit, a) for a in np.flatnonzero(switch.team_a).tolist()], " · ")


def _switch_text(consensus: Consensus, fit: QuestionFit, switch: Switch) -> str:
    one, other = (fit.ballot.labels[k] for k in switch.labels)
    who = f"the team of {switch.team_a.sum():,} ({_team(consensus, fit, switch)})"
    if switch.changed is None:
        return (
            f"of the teams tried, {who} is the easiest to read the other way round, and {switch.cost:z,.0f} nats speak "
            "against that."
        )
    changed = f"{switch.changed:,.0f} items would change label"
    if switch.cost < -WORTH:
        return (
            f"with {one} and {other} traded for {who}, {changed} and the log posterior be {-switch.cost:.1f} nats "
            "higher: the fit sits on a switched mode."
        )
    return (
        f"{who} could be read the other way round ({one} for {other}): {changed}, at a cost of {switch.cost:z.1f} "
        f"nats. Of these the votes give {switch.votes:z.1f}, too few to tell; the rest is the prior, which takes "
        "annotators to be better than chance. Have some of the team's items voted on by others."
    )


def _switch_all_text(fit: QuestionFit, switch: Switch) -> str:
    one, other = (fit.ballot.labels[k] for k in switch.labels)
    if switch.cost < -WORTH:
        return (
            f"with {one} and {other} traded for everyone the log posterior is {-switch.cost:.1f} nats higher: the fit "
            "sits on a switched mode."
        )
    return (
        f"reading every vote the other way round ({one} for {other}) costs {switch.cost:z.1f} nats, all of them the "
        "prior's: that annotators are better than chance is an assumption, which no vote can test."
    )
