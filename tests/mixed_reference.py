"""The mixed model a second time, in plain NumPy: loops, sums over states, finite differences. Slow, made to be read.

Shares no line with the package; tests compare the package with it. An item lies at a point of the simplex of labels,
one of a grid of states `z`: the corners first, then the points of each edge. Annotator `a` votes `v` on an item in
state `z` with probability Σ_k mix_zk confusion_akv. States of one edge share its weight evenly: `weight_dg` has one
number per corner and one per edge, for each domain. The log posterior is that of log-ratio coordinates, where a
Dirichlet prior with parameters β adds Σ β log θ.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy.special import entr, gammaln, logsumexp

KNOWN_NOTHING = -1


def grid(n_labels, points=None):
    """States `mix_zk`, and the group of each: K corners, then `points` states on every edge."""
    if points is None:
        points = 7 if n_labels == 2 else 3 if n_labels <= 6 else 1
    mix, group = list(np.eye(n_labels)), list(range(n_labels))
    for edge, (k, other) in enumerate(itertools.combinations(range(n_labels), 2)):
        for j in range(1, points + 1):
            point = np.zeros(n_labels)
            point[k], point[other] = 1 - j / (points + 1), j / (points + 1)
            mix.append(point)
            group.append(n_labels + edge)
    return np.array(mix), np.array(group)


def row_pseudo_counts(n_labels):
    """Pseudo-counts of a confusion row: 1.8 on the diagonal, 1.2 off it, but no more than 3 in all off it."""
    beta_kv = np.full((n_labels, n_labels), min(1.2, 3 / (n_labels - 1)))
    np.fill_diagonal(beta_kv, 1.8)
    return beta_kv


@dataclass
class MixedModel:
    """Votes and priors of a mixed model.

    `votes` has one list of (annotator, label) per item. Without a `strength` all items share one vector of weights,
    with a pseudo-count of 1 per state. With it every domain has its own, and κ pseudo-items that have the weights
    `common_g`.
    """

    votes: list
    n_labels: int
    n_annotators: int
    count_i: np.ndarray | None = None
    gold_i: np.ndarray | None = None
    domain_i: np.ndarray | None = None
    points: int | None = None
    corners_only: bool = False
    beta_kv: np.ndarray | None = None
    strength: float | None = None
    common_g: np.ndarray | None = None
    mix_zk: np.ndarray = field(init=False)
    group_z: np.ndarray = field(init=False)

    def __post_init__(self):
        self.mix_zk, self.group_z = grid(self.n_labels, 0 if self.corners_only else self.points)
        n = len(self.votes)
        self.count_i = np.ones(n) if self.count_i is None else np.asarray(self.count_i, dtype=float)
        self.gold_i = np.full(n, KNOWN_NOTHING) if self.gold_i is None else np.asarray(self.gold_i)
        self.domain_i = np.zeros(n, dtype=int) if self.domain_i is None else np.asarray(self.domain_i)
        self.beta_kv = row_pseudo_counts(self.n_labels) if self.beta_kv is None else self.beta_kv

    @property
    def n_domains(self):
        return 1 if self.strength is None else int(self.domain_i.max()) + 1

    @property
    def n_groups(self):
        return int(self.group_z.max()) + 1

    @property
    def size_g(self):
        return np.bincount(self.group_z)

    @property
    def pseudo_dg(self):
        """Pseudo-items of every domain and group."""
        if self.strength is None:
            return self.size_g[None].astype(float)
        return np.tile(self.strength * self.common_g, (self.n_domains, 1))

    def row_of(self, i):
        """Which row of `weight_dg` an item uses."""
        return 0 if self.strength is None else self.domain_i[i]


def state_weights(model, weight_dg):
    """Weight of every state: an edge's weight, spread evenly over its points."""
    return weight_dg[:, model.group_z] / model.size_g[model.group_z]


def vote_chance(model, confusion_akv, a, z, v):
    """How likely annotator `a` is to vote `v` on an item in state `z`."""
    return sum(model.mix_zk[z, k] * confusion_akv[a, k, v] for k in range(model.n_labels))


def log_joint(model, confusion_akv, weight_dg):
    """Log of weight times likelihood, by item and state; gold leaves only its corner."""
    weight_dz = state_weights(model, weight_dg)
    log_iz = np.empty((len(model.votes), len(model.group_z)))
    for i, votes in enumerate(model.votes):
        for z in range(len(model.group_z)):
            if model.gold_i[i] not in (KNOWN_NOTHING, z):
                log_iz[i, z] = -np.inf
                continue
            log_iz[i, z] = np.log(weight_dz[model.row_of(i), z])
            for a, v in votes:
                log_iz[i, z] += np.log(vote_chance(model, confusion_akv, a, z, v))
    return log_iz


def counted(model):
    """Items that inform the parameters: as often as they count; not at all without a vote or gold."""
    informs = [bool(votes) or gold != KNOWN_NOTHING for votes, gold in zip(model.votes, model.gold_i, strict=True)]
    return model.count_i * informs


def log_likelihood(model, confusion_akv, weight_dg):
    """Marginal log likelihood: states summed out item by item."""
    return float(counted(model) @ logsumexp(log_joint(model, confusion_akv, weight_dg), axis=1))


def enumerated_log_likelihood(model, confusion_akv, weight_dg):
    """The same by enumerating the states of all items together: for a handful of items."""
    weight_dz = state_weights(model, weight_dg)
    total = 0.0
    for states in itertools.product(range(len(model.group_z)), repeat=len(model.votes)):
        chance = 1.0
        for i, z in enumerate(states):
            chance *= weight_dz[model.row_of(i), z] * (model.gold_i[i] in (KNOWN_NOTHING, z))
            for a, v in model.votes[i]:
                chance *= vote_chance(model, confusion_akv, a, z, v)
        total += chance
    return float(np.log(total))


def log_prior(model, confusion_akv, weight_dg):
    """Log prior in log-ratio coordinates, constants left out."""
    rows = (model.beta_kv * np.log(confusion_akv)).sum()
    return float(rows + (model.pseudo_dg * np.log(weight_dg)).sum())


def log_posterior(model, confusion_akv, weight_dg):
    """Log posterior in log-ratio coordinates."""
    return log_likelihood(model, confusion_akv, weight_dg) + log_prior(model, confusion_akv, weight_dg)


def pack(confusion_akv, weight_dg):
    """Log ratios to the first group, and to the first label: all weights, then all rows."""
    weights = np.log(weight_dg[:, 1:] / weight_dg[:, :1])
    rows = np.log(confusion_akv[..., 1:] / confusion_akv[..., :1])
    return np.concatenate([weights.ravel(), rows.ravel()])


def unpack(x, model):
    """Parameters from log ratios."""
    n_weights = model.n_domains * (model.n_groups - 1)
    weights = x[:n_weights].reshape(model.n_domains, -1)
    rows = x[n_weights:].reshape(model.n_annotators, model.n_labels, -1)
    return _from_ratios(rows), _from_ratios(weights)


def _from_ratios(ratios):
    full = np.exp(np.concatenate([np.zeros((*ratios.shape[:-1], 1)), ratios], axis=-1))
    return full / full.sum(axis=-1, keepdims=True)


def gradient(model, x, step=1e-5):
    """Gradient of the log posterior in log ratios, by central differences."""
    found = np.empty(len(x))
    for p in range(len(x)):
        up, down = x.copy(), x.copy()
        up[p] += step
        down[p] -= step
        found[p] = (log_posterior(model, *unpack(up, model)) - log_posterior(model, *unpack(down, model))) / (2 * step)
    return found


def hessian(model, x, step=1e-4):
    """Hessian of the log posterior in log ratios, dense, by central differences of values."""
    n = len(x)
    found = np.empty((n, n))
    for p, q in itertools.combinations_with_replacement(range(n), 2):
        value = 0.0
        for sign_p, sign_q in itertools.product((1, -1), repeat=2):
            there = x.copy()
            there[p] += sign_p * step
            there[q] += sign_q * step
            value += sign_p * sign_q * log_posterior(model, *unpack(there, model))
        found[p, q] = found[q, p] = value / (4 * step**2)
    return found


def states_of_items(model, confusion_akv, weight_dg):
    """Posterior of every item's state: `posterior_iz`."""
    log_iz = log_joint(model, confusion_akv, weight_dg)
    return np.exp(log_iz - logsumexp(log_iz, axis=1, keepdims=True))


def labels_of_items(model, confusion_akv, weight_dg):
    """Posterior mean of every item's point on the simplex: `p_ik`."""
    return states_of_items(model, confusion_akv, weight_dg) @ model.mix_zk


def interior_of_items(model, confusion_akv, weight_dg):
    """Posterior mass of the states between labels."""
    return states_of_items(model, confusion_akv, weight_dg)[:, model.group_z >= model.n_labels].sum(axis=1)


def expected_counts(model, confusion_akv, weight_dg):
    """E step: votes by annotator, label and vote; items by domain and group."""
    posterior_iz = states_of_items(model, confusion_akv, weight_dg) * counted(model)[:, None]
    votes_akv = np.zeros((model.n_annotators, model.n_labels, model.n_labels))
    items_dg = np.zeros((model.n_domains, model.n_groups))
    for i, votes in enumerate(model.votes):
        for z, group in enumerate(model.group_z):
            items_dg[model.row_of(i), group] += posterior_iz[i, z]
            for a, v in votes:
                chance = vote_chance(model, confusion_akv, a, z, v)
                for k in range(model.n_labels):
                    came_from_k = model.mix_zk[z, k] * confusion_akv[a, k, v] / chance
                    votes_akv[a, k, v] += posterior_iz[i, z] * came_from_k
    return votes_akv, items_dg


def em_step(model, confusion_akv, weight_dg):
    """One EM step: it never lowers the log posterior."""
    votes_akv, items_dg = expected_counts(model, confusion_akv, weight_dg)
    votes_akv, items_dg = votes_akv + model.beta_kv, items_dg + model.pseudo_dg
    return votes_akv / votes_akv.sum(axis=-1, keepdims=True), items_dg / items_dg.sum(axis=-1, keepdims=True)


def start_from_shares(model, inner=1.0):
    """Rows from smoothed vote shares; corners weigh K times their prevalence, inner points `inner` each."""
    share_ik = smoothed_share(counts_of(model))
    votes_akv = np.tile(model.beta_kv, (model.n_annotators, 1, 1))
    for i, votes in enumerate(model.votes):
        for a, v in votes:
            votes_akv[a, :, v] += model.count_i[i] * share_ik[i]
    weight_g = inner * model.size_g.astype(float)
    weight_g[: model.n_labels] = model.n_labels * (model.count_i @ share_ik) / model.count_i.sum()
    weight_dg = np.tile(weight_g / weight_g.sum(), (model.n_domains, 1))
    return votes_akv / votes_akv.sum(axis=-1, keepdims=True), weight_dg


def em(model, start=None, steps=5_000, tolerance=1e-10):
    """Plain EM until no parameter moves."""
    confusion_akv, weight_dg = start or start_from_shares(model)
    for _ in range(steps):
        rows, weights = em_step(model, confusion_akv, weight_dg)
        moved = max(np.abs(rows - confusion_akv).max(), np.abs(weights - weight_dg).max())
        confusion_akv, weight_dg = rows, weights
        if moved < tolerance:
            break
    return confusion_akv, weight_dg


def counts_of(model):
    """Votes by item and label."""
    counts_ik = np.zeros((len(model.votes), model.n_labels), dtype=int)
    for i, votes in enumerate(model.votes):
        for _, v in votes:
            counts_ik[i, v] += 1
    return counts_ik


def smoothed_share(counts_ik):
    """Share of votes with half a vote for every label beforehand."""
    return (counts_ik + 0.5) / (counts_ik.sum(axis=1, keepdims=True) + counts_ik.shape[1] / 2)


def pooled(p_ik, interior_i, share_ik):
    """What is published: model and smoothed share, more share the more an item lies between labels."""
    share_of_share = np.minimum(0.6, 0.2 + interior_i)[:, None]
    return (1 - share_of_share) * p_ik + share_of_share * share_ik


def entropy_parts(model, draws):
    """Total entropy, and its three parts by item, from (confusion, weights) draws: ambiguity, votes, annotators."""
    mean_ik, ambiguity_i, conditional_i = 0.0, 0.0, 0.0
    for confusion_akv, weight_dg in draws:
        posterior_iz = states_of_items(model, confusion_akv, weight_dg)
        of_draw_ik = posterior_iz @ model.mix_zk
        mean_ik = mean_ik + of_draw_ik / len(draws)
        ambiguity_i = ambiguity_i + posterior_iz @ entr(model.mix_zk).sum(axis=1) / len(draws)
        conditional_i = conditional_i + entr(of_draw_ik).sum(axis=1) / len(draws)
    total_i = entr(mean_ik).sum(axis=1)
    return total_i, ambiguity_i, conditional_i - ambiguity_i, total_i - conditional_i


def common_weights(model, items_dg):
    """Weights that domains are shrunk to: those of all items together, with a pseudo-count of 1 per state."""
    items_g = items_dg.sum(axis=0) + model.size_g
    return items_g / items_g.sum()


def log_strength_density(strength, common_g, items_dg, middle=20.0, spread=1.0):
    """Log density of the strength κ: Dirichlet-multinomial items by domain, log-normal prior; constants left out."""
    alpha_g, items_d = strength * common_g, items_dg.sum(axis=1)
    by_group = (gammaln(alpha_g + items_dg) - gammaln(alpha_g)).sum()
    evidence = by_group + (gammaln(strength) - gammaln(strength + items_d)).sum()
    return float(evidence - 0.5 * (np.log(strength / middle) / spread) ** 2)


def share_by_integration(counts_k, nodes=400):
    """Posterior mean of φ ~ Dir(½) when every vote tells the truth (θ = I), by numerical integration.

    φ_k = x_k² with x uniform on the positive part of the unit sphere has just this prior. Two or three labels.
    """
    at, weight = np.polynomial.legendre.leggauss(nodes)
    at, weight = (at + 1) / 2, weight / 2
    if len(counts_k) == 2:
        angle = at * np.pi / 2
        phi = np.stack([np.cos(angle) ** 2, np.sin(angle) ** 2], axis=-1)
    else:
        # Uniform on a sphere: height and angle are independent and uniform.
        height, angle = np.meshgrid(at, at * np.pi / 2, indexing="ij")
        flat = 1 - height**2
        phi = np.stack([height**2, flat * np.cos(angle) ** 2, flat * np.sin(angle) ** 2], axis=-1).reshape(-1, 3)
        weight = np.outer(weight, weight).ravel()
    likelihood = weight * np.prod(phi ** np.asarray(counts_k), axis=-1)
    return likelihood @ phi / likelihood.sum()
