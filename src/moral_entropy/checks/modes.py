"""Which modes a posterior has, and what trades places between them.

Takes a log posterior and the mode that was reported; searches from many more starts, returns every distinct mode with
its height, the items it would relabel, and whose labels are switched there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from moral_entropy.checks.label_switching import candidate_teams, switched
from moral_entropy.checks.links import find_groups, shared_items
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import APART, LEVEL, ROUGH, ROUGH_NEWTON, leads_to_same
from moral_entropy.consensus.starts import paper_start, spread_over_states, starts
from moral_entropy.consensus.youden import youden
from moral_entropy.progress import Advance, ignore
from moral_entropy.ties import highest
from moral_entropy.votes.table import Floats

REPORTED = "reported"
"""The start at the mode that was reported."""

PROBE = "switched"
"""First word of starts that look for a switched mode on purpose: nobody would have begun there."""

SPREAD = 1.5
"""Standard deviation of random starts around the paper's, in log ratios: of two labels, one annotator in ten begins
worse than chance."""

MOST_PAIRS = 6
"""Pairs of labels that are switched, for everybody and for each team, as a start."""

HEIGHT_DECIMALS = 3
"""Decimals of a height in nats that a climb to `LEVEL` settles."""

INFORMED = 0.05
"""Youden index from which an annotator tells labels apart at all."""


@dataclass(frozen=True, eq=False)
class FoundMode:
    """One mode. Axes: **a** annotator, **k** label.

    Parameters
    ----------
    starts
        The starts that lead to it.
    distance
        Nats below the mode that was reported; negative where it is higher.
    changed
        Share of items whose label is another than at the reported mode.
    traded
        Pairs of labels that trade names over all items.
    switched_a
        Annotators who are better than chance at one of the two modes and worse at the other.
    at
        Its parameters.
    """

    starts: tuple[str, ...]
    distance: float
    changed: float
    traded: tuple[tuple[int, int], ...]
    switched_a: NDArray[np.bool_]
    at: Parameters


def find_modes(
    log_posterior: LogPosterior, at: Parameters, *, seeds: int = 20, seed: int = 0, advance: Advance = ignore
) -> list[FoundMode]:
    """Search from many starts and list the distinct modes, the reported one first, then by height.

    Parameters
    ----------
    log_posterior
        The density.
    at
        The mode that was reported.
    seeds
        Random starts, besides the named ones and those with two labels switched, for all or for a team.
    seed
        Of the random starts.
    advance
        Called with the share done.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.checks.density import densities_of
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=300, n_annotators=6, votes_per_item=4).votes, draws=0).fits[0]
    >>> modes = find_modes(densities_of(one).simplex, one.mode, seeds=3)
    >>> modes[0].distance, "paper" in modes[0].starts
    (0.0, True)
    """
    begins = list(_all_starts(log_posterior, at, seeds, seed))
    modes: list[Parameters] = []
    names: list[list[str]] = []
    for n, (name, start) in enumerate(begins):
        place = _search_from(log_posterior, start, modes)
        if place == len(names):
            names.append([])
        names[place].append(name)
        advance((n + 1) / len(begins))
    return _described(log_posterior, modes, names)


def _all_starts(log_posterior: LogPosterior, at: Parameters, seeds: int, seed: int) -> Iterator[tuple[str, Parameters]]:
    patterns = log_posterior.patterns
    yield REPORTED, at
    yield from starts(log_posterior)
    for n, team_a in enumerate(candidate_teams(shared_items(patterns), find_groups(patterns)[0])):
        for one, other in islice(combinations(range(patterns.n_labels), 2), MOST_PAIRS):
            whom = "all" if team_a.all() else f"team {n}"
            yield f"{PROBE} {one} {other} {whom}", switched(at, team_a, (one, other))
    middle = paper_start(patterns.n_annotators, patterns.n_labels)
    middle = spread_over_states(middle, log_posterior) if at.mixed else middle
    for n in range(seeds):
        step_p = SPREAD * np.random.default_rng([seed, n]).standard_normal(log_posterior.n_parameters)
        yield f"seed {n}", unpack_like(pack(middle) + step_p, middle)


def _search_from(log_posterior: LogPosterior, start: Parameters, modes: list[Parameters]) -> int:
    """Search for a mode, append it if it is new, and return its place in the list."""
    joined: list[int] = []

    def joins_earlier(here: Parameters) -> bool:
        joined.extend(n for n, mode in enumerate(modes) if leads_to_same(here, mode))
        return bool(joined)

    rough = maximise(log_posterior, start, tolerance=ROUGH, newton=ROUGH_NEWTON, stop_if=joins_earlier)
    if joined:
        return joined[0]
    mode = maximise(log_posterior, rough.at, tolerance=LEVEL).at
    posterior_rk = log_posterior.posterior_rk(mode)
    for n, other in enumerate(modes):
        apart = np.abs(log_posterior.posterior_rk(other) - posterior_rk).max(axis=1)
        if np.average(apart, weights=_weights(log_posterior)) <= APART:
            return n
    modes.append(mode)
    return len(modes) - 1


def _weights(log_posterior: LogPosterior) -> Floats:
    weight_r = log_posterior.patterns.weight_r
    return weight_r if weight_r.any() else np.ones_like(weight_r)


def _described(log_posterior: LogPosterior, modes: list[Parameters], names: list[list[str]]) -> list[FoundMode]:
    weight_r = _weights(log_posterior)
    top = log_posterior.expect(modes[0]).log_posterior
    top_rk = log_posterior.posterior_rk(modes[0])
    youden_a = youden(modes[0].confusion_akv)
    found = []
    for at, starts_there in zip(modes, names, strict=True):
        there_rk = log_posterior.posterior_rk(at)
        here_a, there_a = youden_a, youden(at.confusion_akv)
        told = (np.abs(here_a) > INFORMED) & (np.abs(there_a) > INFORMED)
        found.append(
            FoundMode(
                starts=tuple(starts_there),
                distance=round(top - log_posterior.expect(at).log_posterior, HEIGHT_DECIMALS) + 0.0,
                changed=float(np.average(highest(top_rk) != highest(there_rk), weights=weight_r)),
                traded=_traded(top_rk, there_rk, weight_r),
                switched_a=told & (np.sign(here_a) != np.sign(there_a)),
                at=at,
            )
        )
    return [found[0], *sorted(found[1:], key=lambda mode: mode.distance)]


def _traded(one_rk: Floats, other_rk: Floats, weight_r: Floats) -> tuple[tuple[int, int], ...]:
    """Pairs of labels that trade names from one mode to the other."""
    # Loaded here, as no audit needs it.
    from scipy.optimize import linear_sum_assignment

    # Which label at the other mode holds the items of each label here, no two the same.
    together_kl = one_rk.T @ (weight_r[:, None] * other_rk)
    _, to_k = linear_sum_assignment(together_kl, maximize=True)
    return tuple((k, int(to)) for k, to in enumerate(to_k) if k < to and to_k[to] == k)
