"""How far a group agrees with itself and with the others (GRASP, Prabhakaran et al. 2024, arXiv 2311.05074).

Within: Krippendorff's alpha of the group's votes. Across: the same comparison for pairs of which one votes in the
group and one outside it (cross-replication reliability, Wong, Paritosh and Aroyo 2021), 1 − observed / expected
disagreement. Their ratio is above 1 where members agree with each other more than with the others. Whether it is so
by more than chance is told by shuffling who belongs to the group.
Axes: **i** item, **k** label, **p** shuffle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

SHUFFLES = 199
CELLS = 30_000_000
"""Most cells (items × labels × shuffles) held at once; larger sets are shuffled less often."""


@dataclass(frozen=True)
class GroupAgreement:
    """Agreement of one group; NaN where it does not exist.

    Parameters
    ----------
    within
        Krippendorff's alpha among members.
    across
        The same between members and others.
    ratio
        The first by the second, where both are positive.
    p_value
        How often a group of as many annotators drawn at random exceeds the others by as much.
    """

    within: float
    across: float
    ratio: float
    p_value: float


def group_agreement(
    item_v: Ints, annotator_v: Ints, label_v: Ints, n_labels: int, inside_a: Ints, *, seed: int = 0,
    shuffles: int = SHUFFLES,
) -> GroupAgreement:  # fmt: skip
    """Compare how far members agree with each other and with the others.

    Parameters
    ----------
    item_v, annotator_v, label_v, n_labels
        The votes, as codes.
    inside_a
        1 for members, 0 for others, -1 for annotators who are left out.
    seed, shuffles
        Seed of the shuffling, and how often.

    Examples
    --------
    Two members who always agree, two others who never agree with them.

    >>> label_v = np.array([0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    >>> found = group_agreement(np.repeat([0, 1, 2], 4), np.tile(range(4), 3), label_v, 2, np.array([1, 1, 0, 0]))
    >>> found.within, found.across < 0
    (1.0, True)
    """
    matrices = _by_label(item_v, annotator_v, label_v, n_labels, len(inside_a))
    chosen_ap = _shuffled(inside_a, _how_often(matrices, shuffles), seed)
    known_a = (inside_a >= 0).astype(np.float64)
    all_ik = np.stack([matrix @ known_a for matrix in matrices], axis=1)
    in_ikp = np.stack([matrix @ chosen_ap for matrix in matrices], axis=1)
    within_p = alpha_of(in_ikp)
    across_p = across_of(in_ikp, all_ik[:, :, None] - in_ikp)
    within, across = float(within_p[0]), float(across_p[0])
    gap_p = tie_key((within_p - across_p)[~np.isnan(within_p - across_p)])
    has_gap = not np.isnan(within - across)
    p_value = float((gap_p >= tie_key(within - across)).mean()) if has_gap and len(gap_p) > 1 else np.nan
    return GroupAgreement(within, across, within / across if within > 0.0 and across > 0.0 else np.nan, p_value)


def alpha_of(counts_ikp: Floats) -> Floats:
    """Compute Krippendorff's alpha, nominal, in every column of counts by item and label."""
    total_ip = counts_ikp.sum(axis=1)
    paired_ip = total_ip >= 2.0
    alike_ip = (counts_ikp * (counts_ikp - 1.0)).sum(axis=1) / np.maximum(total_ip - 1.0, 1.0)
    n_p = (total_ip * paired_ip).sum(axis=0)
    label_kp = (counts_ikp * paired_ip[:, None]).sum(axis=0)
    observed_p = _share((alike_ip * paired_ip).sum(axis=0), n_p)
    expected_p = _share((label_kp * (label_kp - 1.0)).sum(axis=0), n_p * (n_p - 1.0))
    return _share(observed_p - expected_p, _distance(expected_p))


def across_of(one_ikp: Floats, other_ikp: Floats) -> Floats:
    """Compute the agreement of pairs with one vote on each side, above chance, in every column."""
    n_ip, m_ip = one_ikp.sum(axis=1), other_ikp.sum(axis=1)
    weight_ip = np.where((n_ip > 0.0) & (m_ip > 0.0), n_ip + m_ip, 0.0)
    alike_ip = (one_ikp * other_ikp).sum(axis=1) / np.maximum(n_ip * m_ip, 1.0)
    observed_p = _share((alike_ip * weight_ip).sum(axis=0), weight_ip.sum(axis=0))
    both_ip = (weight_ip > 0.0)[:, None]
    one_kp, other_kp = ((side_ikp * both_ip).sum(axis=0) for side_ikp in (one_ikp, other_ikp))
    chance_p = (_share(one_kp, one_kp.sum(axis=0)) * _share(other_kp, other_kp.sum(axis=0))).sum(axis=0)
    return _share(observed_p - chance_p, _distance(chance_p))


def _by_label(item_v: Ints, annotator_v: Ints, label_v: Ints, n_labels: int, n_annotators: int) -> list[Any]:
    shape = (int(item_v.max(initial=-1)) + 1, n_annotators)
    chosen = [label_v == k for k in range(n_labels)]
    return [csr_array((np.ones(some.sum()), (item_v[some], annotator_v[some])), shape=shape) for some in chosen]


def _how_often(matrices: list[Any], shuffles: int) -> int:
    return int(min(shuffles, CELLS // max(matrices[0].shape[0] * len(matrices), 1)))


def _shuffled(inside_a: Ints, shuffles: int, seed: int) -> Floats:
    """Return the members, then members drawn at random from all who are compared, one column each."""
    rng = np.random.default_rng(seed)
    known_a = np.flatnonzero(inside_a >= 0)
    chosen_ap = np.zeros((len(inside_a), 1 + shuffles))
    chosen_ap[:, 0] = inside_a == 1
    for p in range(1, 1 + shuffles):
        chosen_ap[known_a, p] = rng.permutation(chosen_ap[known_a, 0])
    return chosen_ap


def _share(part: Floats, whole: Floats) -> Floats:
    return np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), np.nan)


def _distance(chance_p: Floats) -> Floats:
    # With a single label, agreement by chance is certain: the figure does not exist.
    return np.where(chance_p > 1.0 - 1e-12, 0.0, 1.0 - chance_p)
