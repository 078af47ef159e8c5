"""Votes made by hand and by Hypothesis, real data where it lies, and plain solvers to compare with."""

from __future__ import annotations

import importlib.util
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from scipy.special import logsumexp

from moral_entropy.model.fit import log_posterior
from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import Parameters
from moral_entropy.model.priors import Priors
from moral_entropy.options import FitOptions
from moral_entropy.votes.table import Votes, ballot_from_codes

ROOT = Path(__file__).parents[1]
DATA = ROOT / ".." / "shared" / "data"


def load_script(path: str, name: str | None = None):
    """Load a script of studies/ or tools/ as a module; what lies beside it can be imported, as when it is run."""
    file = ROOT / path
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    spec = importlib.util.spec_from_file_location(name or file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def real_data(name: str) -> Path:
    """Folder of a real data set; skips the test where it is absent."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"real votes are not at hand: {name} is looked for in ../shared/data")
    return folder


def posterior_draws(fit, items=slice(None)):
    """Label probabilities of some items of a fit in every draw: `posterior_sik`."""
    row_r, at_i = np.unique(fit.patterns.row_i[items], return_inverse=True)
    return fit.draws_of(row_r)[:, at_i]


def first_votes_by_hand(ballot):
    """The vote that the share in the published p starts from: split as all votes fall, half a vote added to each."""
    said = [0.5] * ballot.n_labels
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            said[code % ballot.n_labels] += ballot.count_i[i]
    return [n / sum(said) for n in said]


def pooled(ballot, p_ik, mode_ik, interior_i, counts_ik=None, known_i=None, silent=()):
    """Probabilities as published, item by item: the model's and the vote share's, which leads where votes are few."""
    counts_ik = ballot.counts_ik if counts_ik is None else counts_ik
    first_k, pooled_ik = np.array(first_votes_by_hand(ballot)), np.array(p_ik)
    for i in range(ballot.n_items):
        n = counts_ik[i].sum()
        voters = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]] // ballot.n_labels
        unknown = np.mean([12 / (12 + ballot.votes_a[a]) for a in voters if a not in silent]) if n else 0.0
        share_k = (counts_ik[i] + first_k) / (n + 1)
        apart = sum(abs(mode_ik[i] - share_k)) / 2
        weight = min(0.7, 0.3 + interior_i[i] + 0.4 * max(apart - 0.3, 0))
        weight = min(1.0, max(weight, 1.5 / max(n, 1), unknown))
        if known_i is None or known_i[i] < 0:
            pooled_ik[..., i, :] = (1 - weight) * pooled_ik[..., i, :] + weight * share_k
    return pooled_ik


def published_draws(fit):
    """The same as published: every draw pooled with the vote share, item by item, under the mixed model."""
    if fit.options.model != "mixed":
        return posterior_draws(fit)
    known_i = fit.patterns.clamp_r[fit.patterns.row_i]
    silent = [a for group in fit.counted_groups for a in group[1:]]
    return pooled(fit.ballot, posterior_draws(fit), fit.posterior_ik, fit.interior_i, fit.counts_ik, known_i, silent)


def votes_of(rows, n_labels=2, *, n_items=None, gold_i=None, count_i=None, question="q", positive=None, domain_i=None):
    """Votes from (item, annotator, label) triples of small integers."""
    rows = np.asarray(rows, dtype=int).reshape(-1, 3)
    n_items = n_items or int(rows[:, 0].max()) + 1
    n_annotators = int(rows[:, 1].max(initial=-1)) + 1
    ballot = ballot_from_codes(
        question,
        tuple(str(k) for k in range(n_labels)),
        item_v=rows[:, 0],
        annotator_v=rows[:, 1],
        label_v=rows[:, 2],
        item_i=np.arange(n_items, dtype=np.int32),
        gold_i=gold_i,
        count_i=count_i,
        positive=positive,
    )
    return Votes(
        items=pl.Series("item", range(n_items), dtype=pl.Int64),
        annotators=pl.Series("annotator", range(n_annotators), dtype=pl.Int64),
        ballots=(ballot,),
        domains=() if domain_i is None else tuple(f"d{d}" for d in range(max(domain_i) + 1)),
        domain_i=np.full(n_items, -1, dtype=np.int32) if domain_i is None else np.asarray(domain_i, dtype=np.int32),
    )


def log_posterior_of(votes, priors=None, *, model="paper", use_gold=False, threads=None):
    """The log posterior of the first ballot."""
    ballot, options = votes.ballots[0], FitOptions(model=model, use_gold=use_gold, threads=threads)
    patterns = collapse(ballot, use_gold=use_gold, domains_from=votes if options.by_domain else None)
    return log_posterior(votes, ballot, patterns, priors or Priors(), options)


def random_parameters(rng, posterior):
    """Parameters somewhere inside the simplex, of the shape that a log posterior has."""
    n_labels, n_groups = posterior.patterns.n_labels, posterior.states.n_groups
    weight_dg = rng.dirichlet(np.full(n_groups, 3.0), size=posterior.patterns.n_domains)
    confusion_akv = rng.dirichlet(np.full(n_labels, 3.0), size=(posterior.patterns.n_annotators, n_labels))
    return Parameters(weight_dg, confusion_akv)


def random_rows(rng, n_items, n_annotators, n_labels, share=0.7):
    """Votes of the better-than-chance kind, each pair kept with some probability, at least one an item."""
    truth_i = rng.integers(n_labels, size=n_items)
    rows = []
    for item in range(n_items):
        for annotator in range(n_annotators):
            if rng.random() < share or annotator == item % n_annotators:
                right = rng.random() < 0.7
                rows.append((item, annotator, truth_i[item] if right else rng.integers(n_labels)))
    return rows


@st.composite
def vote_rows(draw, max_items=12, max_annotators=5, max_labels=3):
    """Rows (item, annotator, label) of a small data set in which every label occurs, and its number of labels."""
    n_labels = draw(st.integers(2, max_labels))
    n_items, n_annotators = draw(st.integers(n_labels, max_items)), draw(st.integers(1, max_annotators))
    pairs = [(i, a) for i in range(n_items) for a in range(n_annotators)]
    kept = draw(st.lists(st.sampled_from(pairs), min_size=n_labels, max_size=len(pairs), unique=True))
    labels = draw(st.lists(st.integers(0, n_labels - 1), min_size=len(kept), max_size=len(kept)))
    labels[:n_labels] = range(n_labels)
    return [(i, a, k) for (i, a), k in zip(kept, labels, strict=True)], n_labels


def plain_em(votes, start, priors, steps=20_000, tolerance=1e-13):
    """Textbook EM of the paper's model with NumPy, nothing shared with the package but the priors."""
    ballot = votes.ballots[0]
    n_labels, n_codes = ballot.n_labels, ballot.n_annotators * ballot.n_labels
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    alpha_k, beta_akv = priors.alpha_k(ballot), priors.beta_akv(ballot, votes)
    pi, theta = start.weight_dg[0], start.confusion_akv
    voted_i = ballot.votes_i > 0
    for _ in range(steps):
        log_ck = np.log(theta).transpose(0, 2, 1).reshape(n_codes, n_labels)
        log_ik = np.tile(np.log(pi), (ballot.n_items, 1))
        np.add.at(log_ik, item_v, log_ck[ballot.code_v])
        post_ik = np.exp(log_ik - logsumexp(log_ik, axis=1, keepdims=True))
        weight_ik = post_ik * (ballot.count_i * voted_i)[:, None]
        count_ck = np.zeros((n_codes, n_labels))
        np.add.at(count_ck, ballot.code_v, weight_ik[item_v])
        new_pi = weight_ik.sum(axis=0) + alpha_k - 1
        new_theta = count_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1) + beta_akv - 1
        before, pi, theta = (pi, theta), new_pi / new_pi.sum(), new_theta / new_theta.sum(axis=-1, keepdims=True)
        if max(np.abs(pi - before[0]).max(), np.abs(theta - before[1]).max()) < tolerance:
            break
    return Parameters(pi[None], theta), post_ik


def plain_mixed_em(votes, start=None, steps=50_000, tolerance=1e-12, *, use_gold=False, silent=()):
    """The default model with NumPy: plain EM until nothing moves; returns parameters and states by item.

    Votes of `silent` annotators are left out, as if others stood for them.
    """
    ballot = votes.ballots[0]
    n_labels, item_v = ballot.n_labels, np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    keep_v = ~np.isin(ballot.code_v // n_labels, silent)
    votes_ic = np.zeros((ballot.n_items, ballot.n_annotators * n_labels))
    np.add.at(votes_ic, (item_v[keep_v], ballot.code_v[keep_v]), 1.0)
    several = len(votes.domains) > 1
    domain_i = np.where(votes.domain_i < 0, len(votes.domains), votes.domain_i) * several
    in_di = np.eye(len(votes.domains) + 1 if several else 1)[domain_i].T * ballot.count_i * (ballot.votes_i > 0)
    mix_zk, group_z = plain_states(n_labels)
    in_zg = np.eye(group_z.max() + 1)[group_z]
    size_g = in_zg.sum(axis=0)
    beta_kv = np.where(np.eye(n_labels, dtype=bool), 1.8, min(1.2, 3.0 / (n_labels - 1)))

    def rows_of(counts_akv):
        common_kv = counts_akv.sum(axis=0) + 2 * beta_kv
        rows_akv = counts_akv + 2 * common_kv / common_kv.sum(axis=1, keepdims=True)
        return rows_akv / rows_akv.sum(axis=-1, keepdims=True)

    if start is None:
        label_ck = np.tile(np.eye(n_labels), (ballot.n_annotators, 1))
        share_ik = (votes_ic @ label_ck + 0.5) / (votes_ic.sum(axis=1, keepdims=True) + n_labels / 2)
        if use_gold:
            share_ik[ballot.gold_i >= 0] = np.eye(n_labels)[ballot.gold_i[ballot.gold_i >= 0]]
        weight_g = 0.1 * size_g
        weight_g[:n_labels] = n_labels * (in_di @ share_ik).sum(axis=0) / in_di.sum()
        row_kv = 0.6 * np.eye(n_labels) + 0.4 / n_labels
        weights = np.tile(weight_g / weight_g.sum(), (len(in_di), 1))
        start = Parameters(weights, np.tile(row_kv, (ballot.n_annotators, 1, 1)))
    weight_dg, theta_akv = start
    for _ in range(steps):
        vote_azv = np.einsum("zk,akv->azv", mix_zk, theta_akv)
        vote_cz = vote_azv.transpose(0, 2, 1).reshape(-1, len(mix_zk))
        log_iz = np.log((weight_dg / size_g)[:, group_z])[domain_i] + votes_ic @ np.log(vote_cz)
        if use_gold:
            log_iz[(ballot.gold_i[:, None] >= 0) & (ballot.gold_i[:, None] != np.arange(len(mix_zk)))] = -np.inf
        state_iz = np.exp(log_iz - logsumexp(log_iz, axis=1, keepdims=True))
        seen_cz = votes_ic.T @ (in_di.sum(axis=0)[:, None] * state_iz) / vote_cz
        came_akv = (seen_cz @ mix_zk).reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
        items_dg = in_di @ state_iz @ in_zg
        shared_g = items_dg.sum(axis=0) + size_g
        total_dg = items_dg + 30 * shared_g / shared_g.sum() if several else shared_g[None]
        before = np.concatenate([weight_dg.ravel(), theta_akv.ravel()])
        weight_dg, theta_akv = total_dg / total_dg.sum(axis=1, keepdims=True), rows_of(theta_akv * came_akv)
        if np.abs(np.concatenate([weight_dg.ravel(), theta_akv.ravel()]) - before).max() < tolerance:
            break
    return Parameters(weight_dg, theta_akv), state_iz


def plain_states(n_labels):
    """The grid of states from its definition: where each lies, and whose weight it shares."""
    inner = 7 if n_labels == 2 else 3 if n_labels <= 6 else 1 if n_labels <= 12 else 0
    mix, group = [*np.eye(n_labels)], [*range(n_labels)]
    for g, (one, other) in enumerate(combinations(range(n_labels), 2) if inner else ()):
        for j in range(inner, 0, -1):
            place_k = np.zeros(n_labels)
            place_k[one], place_k[other] = j / (inner + 1), 1 - j / (inner + 1)
            mix, group = [*mix, place_k], [*group, n_labels + g]
    return np.array(mix), np.array(group)
