"""Teams whose labels could trade names on their own, and what that would cost.

Annotators who share few items with the rest can be read the other way round together with their items: the votes
inside the team fit as well as before, and only the links and the priors object. The cost is how many nats the log
posterior falls when the team's confusion rows trade places and everything then adapts; e to the minus cost is about
how likely that reading is compared with the one reported. Part of it is the priors', which take annotators to be
better than chance; where the votes add next to nothing to that, they do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from moral_entropy.checks.vote_access import VoteAccess
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import CLOSE, LEVEL
from moral_entropy.consensus.parts import Part
from moral_entropy.consensus.states import between_labels, corners
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import Ints

SPLITS = 6
"""Weakest links that are cut, one after the other, to find teams."""

MOST_GROUPS = 4
"""Groups without any link that are tried, the largest but the first."""

LEAST_ITEMS = 10
"""A team shares at least this many items; fewer are thin data, not a team."""

PASSES = 12
"""Passes in which everything adapts to the switch before its cost is read."""

MOST_PAIRS = 3
"""Pairs of labels a team is tried with, those it confuses most."""

ALL_ITEMS = 0.97
"""Share of the items of two labels that must trade them for a switch to be everyone's."""

DEAR = 2.0 * CLOSE
"""Nats from which a switch is out of the question, and its cost need not be exact."""

WORTH = 0.1
"""Nats by which another reading must be better to be called so."""

Team = NDArray[np.bool_]
"""For every annotator, whether they belong to the team."""


@dataclass(frozen=True, eq=False)
class Switch:
    """A team read the other way round.

    Parameters
    ----------
    team_a
        Who.
    labels
        The two labels that trade names.
    cost
        Nats by which the log posterior falls; negative where the switched reading is the better one.
    prior
        How much of it is the priors'; the votes object with the rest.
    changed
        Items whose label would be another; None where the votes object so much that nobody need count them.
    """

    team_a: Team
    labels: tuple[int, int]
    cost: float
    prior: float
    changed: float | None

    @property
    def votes(self) -> float:
        """Nats by which the votes object."""
        return self.cost - self.prior

    @property
    def everyone(self) -> bool:
        """Whether all annotators switch together, so that only the priors object."""
        return bool(self.team_a.all())


def cheapest_switches(votes: VoteAccess, at: Parameters, teams: Sequence[Team]) -> list[Switch]:
    """Find the cheapest switch of every candidate team, cheapest first.

    Parameters
    ----------
    votes
        The votes of the fit.
    at
        Its mode.
    teams
        Who might switch, see `candidate_teams`.
    """
    found = []
    for team_a in teams:
        tried = [switch for pair in _pairs(at, team_a) if (switch := _try(votes, at, team_a, pair))]
        found += sorted(tried, key=_height)[:1]
    return sorted(_distinct(found), key=_height)


def _height(switch: Switch) -> float:
    # Costs are read off climbs that end within about 1e-6 of the top.
    return round(switch.cost, 3)


def _distinct(switches: Sequence[Switch]) -> list[Switch]:
    """Keep the largest team of those whose switch ends in the same place: part of a team may take the rest along."""
    kept: dict[tuple[float, float | None], Switch] = {}
    for switch in sorted(switches, key=lambda switch: -int(switch.team_a.sum())):
        kept.setdefault((round(switch.cost, 1), switch.changed), switch)
    return list(kept.values())


def is_mode(log_posterior: LogPosterior, at: Parameters) -> bool:
    """Whether a step of EM raises the log posterior by next to nothing."""
    expectation = log_posterior.expect(at)
    return log_posterior.expect(expectation.maximum()).log_posterior - expectation.log_posterior < WORTH


def candidate_teams(shared: csr_array, group_a: Ints) -> list[Team]:
    """Name teams that hang on few shared items: all, groups without a link, and what the weakest links hold.

    Parameters
    ----------
    shared
        Items that every two annotators share.
    group_a
        The group of every annotator; no vote links two groups.

    Examples
    --------
    Two pairs who vote together, and one shared item between the pairs.

    >>> shared = csr_array(np.array([[30, 20, 0, 0], [20, 30, 1, 0], [0, 1, 30, 20], [0, 0, 20, 30.0]]))
    >>> [team_a.astype(int).tolist() for team_a in candidate_teams(shared, np.zeros(4, int))]
    [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
    """
    seen, found = set[bytes](), list[Team]()
    everyone_a = np.ones(len(group_a), dtype=bool)
    unlinked = [group_a == g for g in range(1, min(int(group_a.max(initial=0)), MOST_GROUPS) + 1)]
    own_a = shared.diagonal()
    for team_a in [everyone_a, *unlinked, *_split_teams(shared)]:
        key = team_a.tobytes()
        if key not in seen and own_a[team_a].max(initial=0.0) >= LEAST_ITEMS:
            seen.add(key)
            found.append(team_a)
    return found


def _split_teams(shared: csr_array) -> Iterator[Team]:
    """Cut the weakest links of the strongest tree one by one; each cut leaves two teams."""
    tree = _strongest_tree(shared)
    one_e, other_e, weak_e = tree.row, tree.col, tree.data
    order_e = np.lexsort((other_e, one_e, -weak_e))
    for cuts in range(1, min(SPLITS, len(order_e)) + 1):
        kept_e = order_e[cuts:]
        shape = shared.shape
        graph = csr_array((np.ones(len(kept_e)), (one_e[kept_e], other_e[kept_e])), shape=shape)
        _, part_a = connected_components(graph, directed=False)
        last = order_e[cuts - 1]
        for end in (one_e[last], other_e[last]):
            team_a = part_a == part_a[end]
            # One annotator who votes with nobody much is thin data; most of all is everyone, but for a few.
            if 2 <= team_a.sum() <= len(team_a) / 2:
                yield team_a


def _strongest_tree(shared: csr_array) -> csr_array:
    """Span the annotators by their strongest links: shared items as a share of the less busy one's."""
    links = shared.tocoo()
    apart_e = links.row != links.col
    one_e, other_e, items_e = links.row[apart_e], links.col[apart_e], links.data[apart_e]
    own_a = np.maximum(shared.diagonal(), 1.0)
    share_e = items_e / np.minimum(own_a[one_e], own_a[other_e])
    # SciPy 1.15 finds trees in graphs with 32-bit indices alone.
    ends = one_e.astype(np.int32), other_e.astype(np.int32)
    weak = csr_array((2.0 - share_e, ends), shape=shared.shape)
    return minimum_spanning_tree(weak).tocoo()


def _pairs(at: Parameters, team_a: Team) -> list[tuple[int, int]]:
    """Return the pairs of labels that the team confuses most."""
    confusion_kv = at.confusion_akv[team_a].sum(axis=0)
    pairs = list(combinations(range(len(confusion_kv)), 2))
    return sorted(pairs, key=lambda pair: -tie_key(confusion_kv[pair] + confusion_kv[pair[::-1]]))[:MOST_PAIRS]


def _try(votes: VoteAccess, at: Parameters, team_a: Team, pair: tuple[int, int]) -> Switch | None:
    """Switch a team, let everything adapt, and read the cost; None where the switch undoes itself."""
    log_posterior, small = votes.density, votes.small_density
    cost, end = _adapt(small, at, switched(at, team_a, pair))
    prior = _log_prior(small, at) - _log_prior(small, end)
    # To all switching together the votes never object; what it costs is the priors'.
    if (cost if team_a.all() else cost - prior) >= DEAR:
        return Switch(team_a, pair, cost, prior, None)
    # What the votes hardly object to gets the exact figure: the search may still lead back to where it came from.
    optimum = maximise(log_posterior, end, tolerance=LEVEL)
    send = votes.parts.workers.send
    changed = float(votes.parts.total(changed_items, votes.b, send(at), send(optimum.at)))
    if not team_a.all() and changed >= ALL_ITEMS * float(votes.parts.total(items_of, votes.b, send(at), pair)):
        # The team took everyone along, which is another candidate.
        return None
    cost = log_posterior.expect(at).log_posterior - optimum.log_posterior
    prior = _log_prior(log_posterior, at) - _log_prior(log_posterior, optimum.at)
    return Switch(team_a, pair, cost, prior, changed) if changed > 0 else None


def items_of(part: Part, b: int, at: Parameters, pair: tuple[int, int]) -> float:
    """Count one part's items whose likeliest label is one of two."""
    label_r = highest(part.likelihood(b, at.mixed).posterior_rk(at))
    return float(part.rows(b).weight_r[np.isin(label_r, pair)].sum())


def _log_prior(log_posterior: LogPosterior, at: Parameters) -> float:
    confusion = (log_posterior.pseudo_akv * at.log_confusion_akv).sum()
    return float((log_posterior.pseudo_g * at.log_weight_g).sum() + confusion)


def switched(at: Parameters, team_a: Team, pair: tuple[int, int]) -> Parameters:
    """Let two confusion rows of a team trade places; of everyone, the prevalence too, and that between labels.

    Examples
    --------
    >>> at = Parameters(np.log([0.5, 0.5]), np.log([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> switched(at, np.array([True]), (0, 1)).confusion_akv.round(1).tolist()
    [[[0.2, 0.8], [0.9, 0.1]]]
    """
    n_labels = at.log_confusion_akv.shape[-1]
    states = between_labels(n_labels) if at.mixed else corners(n_labels)
    order_g = states.trade_groups(*pair)
    log_akv = at.log_confusion_akv.copy()
    log_akv[team_a] = log_akv[team_a][:, order_g[:n_labels]]
    log_g = at.log_weight_g[..., order_g] if team_a.all() else at.log_weight_g
    return Parameters(log_g, log_akv)


def _adapt(log_posterior: LogPosterior, home: Parameters, start: Parameters) -> tuple[float, Parameters]:
    """Take EM steps from the switch until its cost is plain; give the cost and where it was read."""
    top = log_posterior.expect(home).log_posterior
    at, heights = start, list[float]()
    for n in range(1, PASSES + 1):
        expectation = log_posterior.expect(at)
        heights.append(expectation.log_posterior)
        prior = _log_prior(log_posterior, home) - _log_prior(log_posterior, at)
        if n == PASSES or _hopeless(top - prior, heights):
            break
        at = expectation.maximum()
    return top - heights[-1], at


def _hopeless(top: float, heights: list[float]) -> bool:
    """Whether steps that shrink as the last two did would still end far below the top."""
    if len(heights) < 3:
        return False
    before, last = heights[-2] - heights[-3], heights[-1] - heights[-2]
    shrink = min(last / max(before, 1e-12), 0.95)
    return top - heights[-1] - 2.0 * last * shrink / (1.0 - shrink) > DEAR


def changed_items(part: Part, b: int, one: Parameters, other: Parameters) -> float:
    """Count one part's items whose likeliest label differs between two sets of parameters."""
    label_r: Ints = highest(part.likelihood(b, one.mixed).posterior_rk(one))
    other_r: Ints = highest(part.likelihood(b, other.mixed).posterior_rk(other))
    return float(part.rows(b).weight_r[label_r != other_r].sum())
