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

from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import Parameters
from moral_entropy.model.priors import Priors
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
    """Pseudo-votes of the share in the published p, from all votes: half a vote each, of two labels as votes fall."""
    if ballot.n_labels != 2:
        return [0.5] * ballot.n_labels
    said = [0.5, 0.5]
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            said[code % 2] += ballot.count_i[i]
    return [one / sum(said) for one in said]


def published_draws(fit):
    """The same as published: every draw pooled with the vote share, item by item, under the mixed model."""
    p_sik, first_k = posterior_draws(fit), np.array(first_votes_by_hand(fit.ballot))
    for i in range(fit.ballot.n_items if fit.options.model == "mixed" else 0):
        counts_k = fit.ballot.counts_ik[i]
        if counts_k.sum() and fit.patterns.clamp_r[fit.patterns.row_i[i]] < 0:
            weight = min(0.6, 0.2 + fit.summary.interior_i[i])
            share_k = (counts_k + first_k) / (counts_k.sum() + len(counts_k) / 2)
            p_sik[:, i] = (1 - weight) * p_sik[:, i] + weight * share_k
    return p_sik


def votes_of(rows, n_labels=2, *, n_items=None, gold_i=None, count_i=None, question="q", positive=None):
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
        domains=(),
        domain_i=np.full(n_items, -1, dtype=np.int32),
    )


def log_posterior_of(votes, priors=None, *, use_gold=False, threads=None):
    """The log posterior of the first ballot."""
    priors, ballot = priors or Priors(), votes.ballots[0]
    patterns = collapse(ballot, use_gold=use_gold)
    return LogPosterior(patterns, priors.alpha_k(ballot) - 1, priors.beta_akv(ballot, votes) - 1, threads)


def random_parameters(rng, n_annotators, n_labels):
    """Parameters somewhere inside the simplex."""
    prevalence_k = rng.dirichlet(np.full(n_labels, 3.0))
    confusion_akv = rng.dirichlet(np.full(n_labels, 3.0), size=(n_annotators, n_labels))
    return Parameters(np.log(prevalence_k), np.log(confusion_akv))


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


def plain_log_joint(votes, at):
    """Log probability of label and votes, item by item, with loops: `log_joint_ik`."""
    ballot = votes.ballots[0]
    n_labels = ballot.n_labels
    log_ik = np.zeros((ballot.n_items, n_labels))
    for i in range(ballot.n_items):
        for k in range(n_labels):
            total = at.log_weight_g[k]
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                total += at.log_confusion_akv[code // n_labels, k, code % n_labels]
            log_ik[i, k] = total
    return log_ik


def plain_log_posterior(votes, at, priors):
    """Marginal likelihood by item, plus the log priors without constants."""
    ballot = votes.ballots[0]
    log_ik = plain_log_joint(votes, at)
    voted = ballot.votes_i > 0
    likelihood = (ballot.count_i * logsumexp(log_ik, axis=1))[voted].sum()
    prior = ((priors.alpha_k(ballot) - 1) * at.log_weight_g).sum()
    return likelihood + prior + ((priors.beta_akv(ballot, votes) - 1) * at.log_confusion_akv).sum()


def plain_em(votes, start, priors, steps=20_000, tolerance=1e-13):
    """Textbook EM on one-hot votes with NumPy, nothing shared with the package but the priors."""
    ballot = votes.ballots[0]
    n_labels, n_codes = ballot.n_labels, ballot.n_annotators * ballot.n_labels
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    alpha_k, beta_akv = priors.alpha_k(ballot), priors.beta_akv(ballot, votes)
    log_pi, log_theta = start.log_weight_g, start.log_confusion_akv
    voted_i = ballot.votes_i > 0
    for _ in range(steps):
        log_ck = log_theta.transpose(0, 2, 1).reshape(n_codes, n_labels)
        log_ik = np.tile(log_pi, (ballot.n_items, 1))
        np.add.at(log_ik, item_v, log_ck[ballot.code_v])
        post_ik = np.exp(log_ik - logsumexp(log_ik, axis=1, keepdims=True))
        weight_ik = post_ik * (ballot.count_i * voted_i)[:, None]
        count_ck = np.zeros((n_codes, n_labels))
        np.add.at(count_ck, ballot.code_v, weight_ik[item_v])
        pi = weight_ik.sum(axis=0) + alpha_k - 1
        theta = count_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1) + beta_akv - 1
        new_pi = np.log(pi / pi.sum())
        new_theta = np.log(theta / theta.sum(axis=-1, keepdims=True))
        moved = max(np.abs(np.exp(new_pi) - np.exp(log_pi)).max(), np.abs(np.exp(new_theta) - np.exp(log_theta)).max())
        log_pi, log_theta = new_pi, new_theta
        if moved < tolerance:
            break
    return Parameters(log_pi, log_theta), post_ik


def plain_mixed_em(votes, start, steps=20_000, tolerance=1e-10):
    """EM of the mixed model with NumPy, states listed one by one and default priors; probabilities of states too."""
    ballot = votes.ballots[0]
    n_labels, item_v = ballot.n_labels, np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    a_v, said_v = np.divmod(ballot.code_v, n_labels)
    mix_zk, group_z = plain_states(n_labels)
    size_g = np.bincount(group_z)
    beta_kv = np.full((n_labels, n_labels), min(1.2, 3.0 / (n_labels - 1))) + np.eye(n_labels)
    np.fill_diagonal(beta_kv, 1.8)
    weight_g, theta_akv = start.weight_g[0], start.confusion_akv
    for _ in range(steps):
        vote_azv = np.einsum("zk,akv->azv", mix_zk, theta_akv)
        log_iz = np.tile(np.log(weight_g / size_g)[group_z], (ballot.n_items, 1))
        np.add.at(log_iz, item_v, np.log(vote_azv[a_v, :, said_v]))
        state_iz = np.exp(log_iz - logsumexp(log_iz, axis=1, keepdims=True))
        weight_iz = state_iz * (ballot.count_i * (ballot.votes_i > 0))[:, None]
        counts_akv = np.tile(beta_kv, (ballot.n_annotators, 1, 1))
        for v in range(len(item_v)):
            share_zk = mix_zk * theta_akv[a_v[v], :, said_v[v]] / vote_azv[a_v[v], :, said_v[v], None]
            counts_akv[a_v[v], :, said_v[v]] += weight_iz[item_v[v]] @ share_zk
        items_g = np.bincount(group_z, weights=weight_iz.sum(axis=0)) + size_g
        before = np.concatenate([weight_g, theta_akv.ravel()])
        weight_g, theta_akv = items_g / items_g.sum(), counts_akv / counts_akv.sum(axis=-1, keepdims=True)
        if np.abs(np.concatenate([weight_g, theta_akv.ravel()]) - before).max() < tolerance:
            break
    return Parameters(np.log(weight_g)[None], np.log(theta_akv)), state_iz


def plain_states(n_labels):
    """The grid of states from its definition: where each lies, and whose weight it shares."""
    inner = {2: 7}.get(n_labels, 3 if n_labels <= 6 else 1)
    mix, group = [*np.eye(n_labels)], [*range(n_labels)]
    for g, (one, other) in enumerate(combinations(range(n_labels), 2)):
        for j in range(inner, 0, -1):
            place_k = np.zeros(n_labels)
            place_k[one], place_k[other] = j / (inner + 1), 1 - j / (inner + 1)
            mix, group = [*mix, place_k], [*group, n_labels + g]
    return np.array(mix), np.array(group)
