"""Texts as evidence: what the words of an item say about its label, and how many votes that is worth.

Logistic regressions on tf-idf and, where an encoder is at hand, on its frozen embeddings learn the shares of votes in
four fifths of the texts and predict the last fifth; their log-odds are combined by a third regression, cross-fitted
too. No text's probability depends on its own votes, nor on those of a text that is nearly the same. The worth is the
number of pseudo-votes at that probability which predicts left-out votes best. Axes: **i** item, **k** label, **b**
block of items, **s** number of pseudo-votes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.cache import cache_folder
from moral_entropy.files import whole_file
from moral_entropy.model.fit import base_rates
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.train.targets import normal_text, text_hash
from moral_entropy.train.tfidf import MOST_FEATURES, WORDS, fit_logistic
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes

FOLDS = 5
PENALTIES = {"tfidf": 3.0, "encoder": 3.0, "stack": 1.0}
"""`C` of the regressions. On Care, Equality, Authority and Non-Moral of MFRC with one and two votes, 3 is as good as 1,
4 and 10 once the regressions are combined (log loss within .002), and better than 10 for MiniLM (.001 to .006)."""

WORTHS = np.concatenate([[0.0], np.geomspace(0.25, 32.0, 29)])
"""Numbers of pseudo-votes that are tried: a quarter of a vote to 32, each 19% more."""

NEGLIGIBLE = 0.002
"""A gain below this share of the log loss is none: on shuffled texts half of the gains are above 0."""

MOST_COUNTED, WITHOUT_PAIRS = 8.0, 4.0
"""Worth, at most, where fewer than `FEWEST` items have two votes: then nothing shows how many votes a text replaces."""

FEWEST, BLOCKS, REPLICATES, INTERVAL = 100, 100, 400, 0.95
LONGEST = 10_000
"""Characters of a text that are read."""

TOKENS = 128
NEAR, BANDS, ROWS = 0.8, 5, 4
"""Texts that share this much of their words and pairs are near-identical; candidates have equal minima of 4 hashes in
one of 5 bands, which finds 93% of the pairs at 0.8 and 99.5% at 0.9."""


def cross_fit_texts(
    texts: Sequence[str], counts: Sequence[Ints], encoder: str | None = None, *, advance: Advance = ignore
) -> tuple[list[Floats], Ints]:
    """Predict label probabilities of texts from the votes on other texts.

    Parameters
    ----------
    texts
        One per item, none blank.
    counts
        For every question the votes by item and label, `counts_ik`; rows without votes are predicted too.
    encoder
        "minilm", or a folder of Transformers; tf-idf alone when not given.
    advance
        Called with the share done.

    Returns
    -------
    tuple
        For every question the probabilities `t_ik`; and the group of every item, near-identical texts having one.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    short = [text[:LONGEST] for text in texts]
    embedded = embed_texts(short, encoder, advance=lambda share: advance(0.8 * share)) if encoder else None
    x_if = TfidfVectorizer(**WORDS, min_df=2, max_features=MOST_FEATURES).fit_transform(short)
    group_i = group_texts(short, x_if)
    # By a hash of the first text of the group: further items, or another order, do not move the others.
    fold_i = np.array([text_hash(normal_text(short[first])) % FOLDS for first in _firsts(group_i)])[group_i]
    features = [(x_if, PENALTIES["tfidf"])] + ([(embedded, PENALTIES["encoder"])] if encoder else [])
    probabilities = []
    for n, counts_ik in enumerate(counts):
        share_ik = counts_ik / np.maximum(counts_ik.sum(axis=1, keepdims=True), 1)
        first_ik = np.hstack([_log_odds(_cross_fit(x, share_ik, fold_i, c)) for x, c in features])
        probabilities.append(_cross_fit(first_ik, share_ik, fold_i, PENALTIES["stack"]))
        share_of(lambda share: advance(0.8 + 0.2 * share if encoder else share), n, len(counts))(1.0)
    return probabilities, group_i


def _cross_fit(x: Any, share_ik: Floats, fold_i: Ints, c: float) -> Floats:
    t_ik = np.empty(share_ik.shape)
    for fold in range(FOLDS):
        train, test = np.flatnonzero((fold_i != fold) & (share_ik.sum(axis=1) > 0)), np.flatnonzero(fold_i == fold)
        if len(test) and len(train):
            t_ik[test] = fit_logistic(x[train], share_ik[train], c, tol=1e-4).predict_proba(x[test])
        else:
            t_ik[test] = 1.0 / share_ik.shape[1]
    return np.clip(t_ik, 1e-4, 1.0)


def _log_odds(t_ik: Floats) -> Floats:
    return np.asarray(np.log(t_ik[:, 1:] / t_ik[:, :1]))


def _firsts(group_i: Ints) -> Ints:
    return np.asarray(np.unique(group_i, return_index=True)[1])


def group_texts(texts: Sequence[str], x_if: Any) -> Ints:
    """Number the groups of texts that are identical or nearly so: see `NEAR`.

    Parameters
    ----------
    texts
        The texts.
    x_if
        Their words and pairs of words, as a sparse matrix.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    key_i = np.array([text_hash(normal_text(text)) for text in texts], dtype=np.uint64)
    keys, size_i = [key_i], np.diff(x_if.indptr)
    hash_f = np.random.default_rng(0).integers(1 << 62, size=(BANDS * ROWS, x_if.shape[1]), dtype=np.uint64)
    filled = np.flatnonzero(size_i > 0)
    for band_f in hash_f.reshape(BANDS, ROWS, -1):
        band_i = key_i.copy()
        band_i[filled] = sum(
            np.minimum.reduceat(row_f[x_if.indices], x_if.indptr[filled]) * np.uint64(2 * n + 1)
            for n, row_f in enumerate(band_f)
        )
        keys.append(band_i)
    left, right = [], []
    for n, band_i in enumerate(keys):
        _, first_g, group_i = np.unique(band_i, return_index=True, return_inverse=True)
        pair = np.flatnonzero(first_g[group_i] != np.arange(len(texts)))
        first = first_g[group_i][pair]
        present = x_if.astype(bool).astype(np.float32) if n == 1 else (present if n else None)
        if n:
            shared = np.asarray(present[pair].multiply(present[first]).sum(axis=1)).ravel()
            near = shared >= NEAR * (size_i[pair] + size_i[first] - shared)
            pair, first = pair[near], first[near]
        left.append(pair)
        right.append(first)
    link = np.concatenate(left), np.concatenate(right)
    graph = coo_matrix((np.ones(len(link[0])), link), shape=(len(texts), len(texts)))
    return np.asarray(connected_components(graph, directed=False)[1])


def embed_texts(texts: Sequence[str], encoder: str, *, advance: Advance = ignore) -> Floats:
    """Return the normalised mean of an encoder's last states for every text; read from the cache where it is there."""
    from moral_entropy.train.encoder import in_batches, load_safely, model_folder

    folder = Path(model_folder(encoder))
    weights = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in folder.glob("*.safetensors")]
    digest = hashlib.blake2b(repr((str(folder), sorted(weights), TOKENS)).encode(), digest_size=16)
    for text in texts:
        digest.update(text_hash(text).to_bytes(8, "big"))
    path = None
    with suppress(OSError, ValueError):
        path = cache_folder() / "texts" / f"{digest.hexdigest()}.npy"
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    model, tokenizer = load_safely(encoder, "AutoModel")
    mean_it = in_batches(model, tokenizer, texts, TOKENS, lambda out, mask: (
        (out.last_hidden_state * mask).sum(1) / mask.sum(1)), advance)  # fmt: skip
    embedded = mean_it / np.maximum(np.linalg.norm(mean_it, axis=1, keepdims=True), 1e-12)
    with suppress(OSError, ValueError):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as partial, partial.open("wb") as file:
                np.save(file, embedded.astype(np.float32))
    return np.asarray(embedded)


# --- Worth in votes -----------------------------------------------------------------------------------------------


def measure_worth(counts_ik: Ints, t_ik: Floats, base_k: Floats, group_i: Ints) -> dict[str, float]:
    """Find the number of pseudo-votes at a text's probability that predicts left-out votes best.

    Parameters
    ----------
    counts_ik
        Votes by item and label.
    t_ik
        What the texts say.
    base_k
        Share of every label among all votes, which counts as one vote on every item.
    group_i
        Groups of items that are resampled together.

    Returns
    -------
    dict
        `votes`, with the 95% interval `low` and `high`: 0 where texts predict votes no better than base rates do,
        whatever weight these are given; `loss` and `loss_without`, nats per left-out vote with texts and without.
    """
    n_i = counts_ik.sum(axis=1)
    items = np.flatnonzero(n_i > 1)
    paired = len(items) >= FEWEST
    items = items if paired else np.flatnonzero(n_i)
    # Blocks, not items, are resampled: a few sums then stand for any number of texts.
    block_i = np.random.default_rng(0).permutation(int(group_i.max()) + 1)[group_i[items]] % BLOCKS
    loss_bs = left_out_loss(counts_ik[items], t_ik[items], base_k, block_i)
    without_bs = left_out_loss(counts_ik[items], np.broadcast_to(base_k, t_ik[items].shape), base_k, block_i)
    times_rb = np.random.default_rng(1).multinomial(BLOCKS, np.full(BLOCKS, 1.0 / BLOCKS), REPLICATES)
    times_rb = np.vstack([np.ones(BLOCKS), times_rb])
    loss_rs, without_rs = times_rb @ loss_bs, times_rb @ without_bs
    gains_r = loss_rs.min(axis=1) < (1.0 - NEGLIGIBLE) * without_rs.min(axis=1)
    worth_r = np.where(gains_r, WORTHS[loss_rs.argmin(axis=1)], 0.0)
    if not paired:
        worth_r = np.minimum(worth_r, WITHOUT_PAIRS)
    low, high = np.quantile(worth_r[1:], ((1.0 - INTERVAL) / 2.0, (1.0 + INTERVAL) / 2.0))
    n_votes = max(float(n_i[items].sum()), 1.0)
    return {
        "votes": float(worth_r[0]), "low": float(min(low, worth_r[0])), "high": float(max(high, worth_r[0])),
        "loss": float(loss_rs[0].min() / n_votes), "loss_without": float(without_rs[0].min() / n_votes),
        "n_items": len(items),
    }  # fmt: skip


def left_out_loss(counts_ik: Ints, t_ik: Floats, base_k: Floats, block_i: Ints) -> Floats:
    """Add up −log p of every vote given the others on its item and s pseudo-votes, by block: `loss_bs`."""
    n_i = counts_ik.sum(axis=1)
    loss_bs = np.empty((BLOCKS, len(WORTHS)))
    for column, worth in enumerate(WORTHS):
        p_ik = (counts_ik - 1.0 + base_k + worth * t_ik) / (n_i[:, None] + worth)
        loss_i = -(counts_ik * np.log(np.where(counts_ik > 0, p_ik, 1.0))).sum(axis=1)
        loss_bs[:, column] = np.bincount(block_i, weights=loss_i, minlength=BLOCKS)
    return loss_bs
