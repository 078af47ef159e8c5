"""A small fit of the mixed model, for tests that need one: plain EM with squared steps (SQUAREM), rows at their mean.

States are the corners of the simplex of labels and some points on each edge. Written apart from the package, in dense
and sparse matrices, so that it also stands against the package's own fit.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array


class MixedFit(NamedTuple):
    """Posterior of the states by row, how annotators vote in each state, rows, label shares by row, passes."""

    posterior_rz: np.ndarray
    vote_azv: np.ndarray
    confusion_akv: np.ndarray
    mean_rk: np.ndarray
    passes: int


def grid(n_labels, points=None):
    """The states' mixes of labels, and which weight each belongs to: a corner's own, or its edge's."""
    points = points if points is not None else {2: 7}.get(n_labels, 3 if n_labels <= 6 else 1)
    mixes, group_z = list(np.eye(n_labels)), list(range(n_labels))
    for edge, (k, m) in enumerate(combinations(range(n_labels), 2)):
        for j in range(1, points + 1):
            mixes.append((1 - j / (points + 1)) * np.eye(n_labels)[k] + j / (points + 1) * np.eye(n_labels)[m])
            group_z.append(n_labels + edge)
    return np.array(mixes), np.array(group_z)


def fit_mixed(patterns, *, points=None, tolerance=0.003, most=1_000):
    """Fit from vote shares until a cycle gains less than `tolerance` nats."""
    n_annotators, n_labels, weight_r = patterns.n_annotators, patterns.n_labels, patterns.weight_r
    shape = (patterns.n_rows, n_annotators * n_labels)
    votes_rc = csr_array((np.ones(len(patterns.code_v)), patterns.code_v, patterns.start_r), shape=shape)
    mix_zk, group_z = grid(n_labels, points)
    size_g = np.bincount(group_z)
    wrong = min(1.2, 3.0 / (n_labels - 1))
    beta_kv = np.where(np.eye(n_labels, dtype=bool), 1.8, wrong)
    label_ck = np.tile(np.eye(n_labels), (n_annotators, 1))
    share_rk = (votes_rc @ label_ck + 0.5) / (votes_rc.sum(axis=1)[:, None] + n_labels / 2)

    def normal(x):
        return np.log(x / x.sum(axis=-1, keepdims=True))

    def em(log_akv, log_z):
        theta_akv = np.exp(log_akv)
        t_azv = np.einsum("zk,akv->azv", mix_zk, theta_akv)
        joint_rz = votes_rc @ np.log(t_azv).transpose(0, 2, 1).reshape(-1, len(log_z)) + log_z
        top_r = joint_rz.max(axis=1)
        r_rz = np.exp(joint_rz - top_r[:, None])
        total_r = r_rz.sum(axis=1)
        r_rz /= total_r[:, None]
        s_avz = (votes_rc.T @ (weight_r[:, None] * r_rz)).reshape(n_annotators, n_labels, -1)
        count_akv = theta_akv * np.einsum("avz,zk,azv->akv", s_avz, mix_zk, 1 / t_azv, optimize=True)
        mass_g = np.bincount(group_z, weights=weight_r @ r_rz + 1.0)
        height = weight_r @ (top_r + np.log(total_r)) + (beta_kv * log_akv).sum() + log_z.sum()
        return normal(count_akv + beta_kv), normal((mass_g / size_g)[group_z]), height, r_rz, t_azv

    start_akv = (votes_rc.T @ (weight_r[:, None] * share_rk)).reshape(n_annotators, n_labels, n_labels)
    now = normal(start_akv.transpose(0, 2, 1) + beta_kv)
    weight_z = np.where(group_z < n_labels, n_labels * np.append(weight_r @ share_rk, 0)[group_z.clip(max=n_labels)], 1)
    weight_z[:n_labels] /= weight_r.sum()
    now, height, passes = (now, normal(weight_z)), -np.inf, 0
    while passes < most:
        one_a, one_z, before, *_ = em(*now)
        two_a, two_z, *_ = em(one_a, one_z)
        first, second = (one_a - now[0], one_z - now[1]), (two_a - 2 * one_a + now[0], two_z - 2 * one_z + now[1])
        sizes = [np.sqrt(sum((x**2).sum() for x in move)) for move in (first, second)]
        step = np.clip(sizes[0] / max(sizes[1], 1e-12), 1.0, 64.0)
        jump = [normal(np.exp(x + 2 * step * r + step**2 * v)) for x, r, v in zip(now, first, second, strict=True)]
        new_a, new_z, high, *_ = em(*jump)
        now, passes = ((new_a, new_z) if np.isfinite(high) and high >= before else (two_a, two_z)), passes + 3
        if before - height < tolerance:
            break
        height = before
    *_, r_rz, t_azv = em(*now)
    return MixedFit(r_rz, t_azv, np.exp(now[0]), r_rz @ mix_zk, passes)
