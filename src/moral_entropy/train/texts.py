"""Texts as evidence: what the words of an item say about its label, and how many votes that is worth.

Logistic regressions on tf-idf of words and of their pieces and, where an encoder is at hand, on its frozen embeddings
learn the shares of votes in four fifths of the texts and predict the last fifth; their log-odds are combined by a last
regression, cross-fitted too. No text's probability depends on its own votes, nor on those of a text that is nearly the
same. The worth is the number of pseudo-votes at that probability which predicts left-out votes best. Axes: **i** item,
**k** label, **b** bin of votes, **s** number of pseudo-votes, **v** vote.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.checks.scores import mean_interval
from moral_entropy.files import cache_folder, whole_file
from moral_entropy.findings import Finding, listed
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.fit import ItemPrior, base_rates
from moral_entropy.names import ALL
from moral_entropy.options import TFIDF
from moral_entropy.progress import Advance, ignore
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.ties import highest, tie_key
from moral_entropy.train.classifier import MOST_FEATURES, TOKEN, UNSPACED, fit_logistic, spaced
from moral_entropy.train.targets import normal_text, text_hash
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes

FOLDS = 5
PENALTIES, STACK_PENALTY = (3.0, 1.0, 3.0), 1.0
"""`C` of the regressions on words, pieces and embeddings, and of the last. On four labels of MFRC 3 is as good as 1, 4
and 10 for words once the regressions are combined (log loss within .002), and better than 10 for MiniLM (.001 to .006);
for pieces 1 is as good as 3, and quicker."""

WORTHS = np.concatenate([[0.0], np.geomspace(0.25, 32.0, 29)])
"""Numbers of pseudo-votes that are tried: a quarter of a vote to 32, each 19% more."""

NEGLIGIBLE = 0.002
"""A gain below this share of the log loss is none: on shuffled texts half of the gains are above 0."""

MOST_COUNTED, FEW_VOTES, WITHOUT_PAIRS = (12.0, 6.0), 3.0, 4.0
"""Votes that a text counts for, at most: where items have so few votes on average, and where they have more. Of 4, 6,
8, 12 and 32, with two votes 12 and 32 predict left-out votes of MFRC best (Thin Morality, Proportionality and Purity:
.8 to 2% below 6); with nine votes of language models 12 is further from people's labels than no text (loyalty). And its
worth, at most, where fewer than `FEWEST` items have two votes: then nothing shows how many votes a text replaces."""

FEWEST_ITEMS, MOST_MEASURED = 300, 8_000
"""Items with a text and a vote that a question needs, and items on which the worth is measured where no text counts;
where there are several questions fewer, since each takes a third as long as reading the texts."""

FEWEST_VOTES = 10
"""Votes of an annotator before they are held against the texts."""

FEWEST, BLOCKS, REPLICATES, INTERVAL = 100, 100, 400, 0.95
CONFLICTS, WORDS_LISTED = 100, 3
LONGEST = 10_000
"""Characters of a text that are read."""

PIECE = 4
"""Letters of a piece. On Loyalty, Proportionality, Purity and Thin Morality of MFRC pieces of 4 beside words lower the
log loss of texts by 2.6%, those of 3 to 5 by as much in three times the time."""

TOKENS = 128
NEAR, BANDS, HASHES = 0.8, 5, 4
"""Texts that share this much of their words and pairs are near-identical; candidates have equal minima of 4 hashes in
one of 5 bands, which finds 93% of the pairs at 0.8 and 99.5% at 0.9."""


class Reading(NamedTuple):
    """Texts as numbers: words and pairs of words, pieces, embeddings, which are nearly the same, and folds."""

    x_if: Any
    words: Any
    piece_if: Any
    embedded: Floats | None
    group_i: Ints
    fold_i: Ints


def read_texts(texts: Sequence[str], encoder: str | None = None, *, advance: Advance = ignore) -> Reading | None:
    """Turn texts, none of them blank, into features, and put nearly identical ones into one fold.

    None where no two texts share a word.

    Parameters
    ----------
    texts
        The texts; those beyond `LONGEST` characters are cut.
    encoder
        "minilm", or a folder of Transformers; words alone when not given.
    advance
        Called with the share done.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    short = [text[:LONGEST] for text in texts]
    count_if, words = count_words(short)
    if not len(words):
        return None
    x_if = TfidfTransformer(sublinear_tf=True).fit_transform(count_if)
    embedded = embed_texts(short, encoder, advance=advance) if encoder else None
    key_i = np.array([text_hash(normal_text(text)) for text in short], dtype=np.uint64)
    group_i = group_texts(key_i, x_if)
    # By a hash of the first text of the group: further items, or another order, do not move the others.
    fold_i = (key_i[np.unique(group_i, return_index=True)[1]] % np.uint64(FOLDS)).astype(np.int64)[group_i]
    return Reading(x_if, words, _pieces(x_if, words), embedded, group_i, fold_i)


def count_words(texts: Sequence[str]) -> tuple[Any, Any]:
    """Count the words and pairs of words that two texts or more have: a sparse matrix and their names.

    The same as scikit-learn's `CountVectorizer` counts, in a fourth of its time.

    Examples
    --------
    >>> counts, words = count_words(["Good dog, good!", "good dog", "cat"])
    >>> counts.toarray().astype(int).tolist(), words.tolist()
    ([[1, 2, 1], [1, 1, 1], [0, 0, 0]], ['dog', 'good', 'good dog'])
    """
    from scipy.sparse import csr_matrix

    tokens = [re.findall(TOKEN, spaced(text)) for text in texts]
    words = sorted({word for row in tokens for word in row})
    number = {word: f for f, word in enumerate(words)}
    word_t = np.array([number[word] for row in tokens for word in row], dtype=np.int64)
    item_t = np.repeat(np.arange(len(texts)), [len(row) for row in tokens])
    first_t = np.flatnonzero(item_t[1:] == item_t[:-1])
    pairs, pair_t = np.unique(word_t[first_t] * len(words) + word_t[first_t + 1], return_inverse=True)
    names = np.array([*words, *(f"{words[p // len(words)]} {words[p % len(words)]}" for p in pairs)], dtype=object)
    place_t = np.concatenate([item_t, item_t[first_t]]), np.concatenate([word_t, len(words) + pair_t])
    count_if = csr_matrix((np.ones(len(place_t[0]), np.float32), place_t), shape=(len(texts), len(names)))
    total_f = np.bincount(place_t[1], minlength=len(names)) * (np.bincount(count_if.indices, minlength=len(names)) > 1)
    columns = np.sort(np.argsort(-total_f, kind="stable")[: min(MOST_FEATURES, np.count_nonzero(total_f))])
    return count_if[:, columns], names[columns]


def _pieces(x_if: Any, words: Any) -> Any:
    """Return tf-idf of the pieces of the words of texts: forms of one word, and compounds, have some in common."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    single_f = np.flatnonzero([" " not in word for word in words])
    cut = CountVectorizer(analyzer="char_wb", ngram_range=(PIECE, PIECE), dtype=np.float32).fit_transform
    # Every word is cut once, not every text.
    piece_if = (x_if[:, single_f] != 0).astype(np.float32) @ cut(words[single_f])
    return TfidfTransformer(sublinear_tf=True).fit_transform(piece_if)


def cross_fit(reading: Reading, counts_ik: Ints, rows: Ints | None = None) -> tuple[Floats, list[Any]]:
    """Predict label probabilities of texts from the votes on other texts.

    Parameters
    ----------
    reading
        The texts.
    counts_ik
        Their votes by label; texts without votes are predicted too.
    rows
        Only these texts.

    Returns
    -------
    tuple
        The probabilities `t_ik`, and the regression on words of every fold.
    """
    rows = np.arange(len(counts_ik)) if rows is None else rows
    share_ik = counts_ik / np.maximum(counts_ik.sum(axis=1, keepdims=True), 1)
    fold_i = reading.fold_i[rows]
    sources = zip((reading.x_if, reading.piece_if, reading.embedded), PENALTIES, strict=True)
    fits = [_cross_fit(x[rows], share_ik, fold_i, c) for x, c in sources if x is not None]
    odds_ik = np.hstack([np.log(t_ik[:, 1:] / t_ik[:, :1]) for t_ik, _ in fits])
    return _cross_fit(odds_ik, share_ik, fold_i, STACK_PENALTY)[0], fits[0][1]


def _cross_fit(x: Any, share_ik: Floats, fold_i: Ints, c: float) -> tuple[Floats, list[Any]]:
    t_ik, regressions = np.full(share_ik.shape, 1.0 / share_ik.shape[1]), []
    for fold in range(FOLDS):
        train, test = np.flatnonzero((fold_i != fold) & (share_ik.sum(axis=1) > 0)), np.flatnonzero(fold_i == fold)
        regressions.append(fit_logistic(x[train], share_ik[train], c, tol=1e-3) if len(test) and len(train) else None)
        if regressions[-1] is not None:
            t_ik[test] = regressions[-1].predict_proba(x[test])
    return np.clip(t_ik, 1e-4, 1.0), regressions


def group_texts(key_i: Any, x_if: Any) -> Ints:
    """Number the groups of texts that are identical or nearly so: see `NEAR`.

    Parameters
    ----------
    key_i
        Hashes of the texts.
    x_if
        Their words and pairs of words, as a sparse matrix.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size_i, present_if = np.diff(x_if.indptr), x_if.astype(bool).astype(np.float32)
    filled = np.flatnonzero(size_i)
    hash_bhf = np.random.default_rng(0).integers(1 << 62, size=(BANDS, HASHES, x_if.shape[1]), dtype=np.uint64)
    links = [_same_key(key_i)]
    for hash_hf in hash_bhf:
        band_i = key_i.copy()
        for n, hash_f in enumerate(hash_hf):
            least_i = np.minimum.reduceat(hash_f[x_if.indices], x_if.indptr[filled])
            band_i[filled] = least_i * np.uint64(2 * n + 1) + (band_i[filled] if n else np.uint64(0))
        later, first = _same_key(band_i)
        shared = np.asarray(present_if[later].multiply(present_if[first]).sum(axis=1)).ravel()
        links.append(np.compress(shared >= NEAR * (size_i[later] + size_i[first] - shared), [later, first], axis=1))
    link = np.hstack(links)
    graph = coo_matrix((np.ones(link.shape[1]), link), shape=(len(key_i), len(key_i)))
    return np.asarray(connected_components(graph, directed=False)[1])


def _same_key(key_i: Any) -> Ints:
    """Pair every text with the first of the same key."""
    _, first_g, group_i = np.unique(key_i, return_index=True, return_inverse=True)
    first_i = first_g[group_i]
    later = np.flatnonzero(first_i != np.arange(len(first_i)))
    return np.array([later, first_i[later]])


def embed_texts(texts: Sequence[str], encoder: str, *, advance: Advance = ignore) -> Floats:
    """Return the normalised mean of an encoder's last states for every text; read from the cache where it is there."""
    from moral_entropy.train.encoder import in_batches, load_safely, model_folder

    folder = Path(model_folder(encoder))
    weights = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in folder.glob("*.safetensors")]
    digest = hashlib.blake2b(repr((str(folder), sorted(weights), TOKENS)).encode(), digest_size=16)
    for text in texts:
        digest.update(text_hash(text).to_bytes(8, "big"))
    file_name = f"{digest.hexdigest()}.npy"
    with suppress(OSError, ValueError, EOFError):
        return np.asarray(np.load(cache_folder() / "texts" / file_name, allow_pickle=False), dtype=np.float64)
    model, tokenizer = load_safely(encoder, "AutoModel")
    mean_it = in_batches(model, tokenizer, texts, TOKENS, lambda out, mask: (
        (out.last_hidden_state * mask).sum(1) / mask.sum(1)), advance)  # fmt: skip
    embedded = mean_it / np.maximum(np.linalg.norm(mean_it, axis=1, keepdims=True), 1e-12)
    with suppress(OSError, ValueError):
        (cache_folder() / "texts").mkdir(parents=True, exist_ok=True)
        with whole_file(cache_folder() / "texts" / file_name) as partial, partial.open("wb") as file:
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
        whatever weight these are given; `loss` and `loss_without`, nats per left-out vote with texts and without, each
        at its best weight; `n_items` that were looked at; `most`, the votes that a text may count for.
    """
    n_i = counts_ik.sum(axis=1)
    items = np.flatnonzero(n_i > 1)
    paired = len(items) >= FEWEST
    items = items if paired else np.flatnonzero(n_i)
    # Blocks, not items, are resampled: a few sums then stand for any number of texts.
    block_i = np.random.default_rng(0).permutation(int(group_i.max()) + 1)[group_i[items]] % BLOCKS
    resampled_rb = np.random.default_rng(1).multinomial(BLOCKS, np.full(BLOCKS, 1.0 / BLOCKS), REPLICATES)
    times_rb: Floats = np.vstack([np.ones((1, BLOCKS)), resampled_rb])
    loss_rs, without_rs = (
        times_rb @ np.column_stack([np.bincount(block_i, weights=loss_ik.sum(axis=1), minlength=BLOCKS) for loss_ik in
                                    left_out_losses(counts_ik[items], prior_ik, base_k)])
        for prior_ik in (t_ik[items], np.broadcast_to(base_k, t_ik[items].shape))
    )  # fmt: skip
    worth_r = np.minimum(best_worth(loss_rs, without_rs), np.inf if paired else WITHOUT_PAIRS)
    low, high = np.quantile(worth_r[1:], ((1.0 - INTERVAL) / 2.0, (1.0 + INTERVAL) / 2.0))
    n_votes = max(float(n_i[items].sum()), 1.0)
    return {
        "votes": float(worth_r[0]), "low": float(min(low, worth_r[0])), "high": float(max(high, worth_r[0])),
        "loss": float(loss_rs[0].min() / n_votes), "loss_without": float(without_rs[0].min() / n_votes),
        "n_items": len(items), "most": MOST_COUNTED[int(n_i.sum() > FEW_VOTES * (n_i > 0).sum())],
    }  # fmt: skip


def left_out_losses(counts_ik: Ints, t_ik: Floats, base_k: Floats) -> Iterator[Floats]:
    """Yield −log p of a vote by item and label, given the other votes and s pseudo-votes, times such votes there are.

    One table per number of `WORTHS`.
    """
    n_i1 = counts_ik.sum(axis=1, keepdims=True)
    for worth in WORTHS:
        p_ik = (counts_ik - 1.0 + base_k + worth * t_ik) / np.maximum(n_i1 + worth, 1e-9)
        yield np.asarray(-counts_ik * np.log(np.where(counts_ik > 0, p_ik, 1.0)), dtype=np.float64)


def best_worth(loss_rs: Floats, without_rs: Floats) -> Floats:
    """Return the worth of the lowest loss in every row; 0 where it is not below the lowest without texts."""
    gains_r = loss_rs.min(axis=1) < (1.0 - NEGLIGIBLE) * without_rs.min(axis=1)
    return np.where(gains_r, WORTHS[loss_rs.argmin(axis=1)], 0.0)


# --- In an audit --------------------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """What the texts of an audit say.

    Parameters
    ----------
    facts
        For the manifest: see `weigh_texts`.
    item_priors
        By question, for `fit`.
    reading, rows, regressions
        The texts that were read, the item of each, and by question the regressions on words.
    """

    facts: dict[str, Any]
    item_priors: dict[str, ItemPrior]
    reading: Reading | None
    rows: Ints
    regressions: dict[str, list[Any]]


def weigh_texts(votes: Votes, use: str | None, *, advance: Advance = ignore) -> Evidence | None:
    """Measure what the texts of votes are worth, question by question.

    Parameters
    ----------
    votes
        The votes, with texts.
    use
        None to measure the worth with words on some of the items, and count nothing;
        "tfidf", "minilm" or a folder of an encoder for texts that count.
    advance
        Called with the share done.

    Returns
    -------
    Evidence
        Its facts: `model`, `texts`, `blank`, `repeated` (texts that nearly repeat another), `questions` (each with the
        figures of `measure_worth` and `counted`, the votes that its texts count for), and `sentence`. None where there
        are too few texts, and nothing was asked for.
    """
    ballots = [ballot for ballot in votes.ballots if not ballot.part]
    limit = max(2 * MOST_MEASURED // (1 + len(ballots)), MOST_MEASURED // 10) if use is None else votes.n_items
    rows = np.unique(np.linspace(0, votes.n_items - 1, min(limit, votes.n_items)).astype(np.int64))
    texts = [""] * len(rows) if votes.texts is None else votes.texts.gather(rows).fill_null("").to_list()
    rows, n_blank = rows[[bool(text.strip()) for text in texts]], sum(not text.strip() for text in texts)
    texts = [text for text in texts if text.strip()]
    facts: dict[str, Any] = {
        "model": use or TFIDF,
        "texts": len(rows),
        "blank": n_blank,
        "repeated": 0,
        "questions": [],
    }
    enough, encoder = len(rows) >= FEWEST_ITEMS, None if use in (None, TFIDF) else use
    reading = read_texts(texts, encoder, advance=advance) if enough else None
    if reading is None:
        problem = "no two share a word" if enough else f"{len(rows):,} items have one, {FEWEST_ITEMS} are the fewest"
        facts["sentence"] = f"Texts do not count: {problem}. Their column is named with --text COLUMN."
        return Evidence(facts, {}, None, rows, {}) if use else None
    facts["repeated"] = len(rows) - int(reading.group_i.max()) - 1
    priors, regressions = dict[str, ItemPrior](), {}
    for ballot in ballots:
        here = np.flatnonzero(np.isin(ballot.item_i, rows))
        at_i = np.searchsorted(rows, ballot.item_i[here])
        counts_ik = ballot.counts_ik[here]
        if (counts_ik.sum(axis=1) > 0).sum() < FEWEST_ITEMS or (counts_ik.sum(axis=0) > 0).sum() < 2:
            continue
        t_ik = np.full((ballot.n_items, ballot.n_labels), np.nan)
        t_ik[here], regressions[ballot.question] = cross_fit(reading, counts_ik, at_i)
        worth = measure_worth(counts_ik, t_ik[here], base_rates(ballot), reading.group_i[at_i])
        # Where nothing may be their worth, texts do not count.
        n_counted = min(worth["votes"], worth["most"]) if use is not None and worth["low"] > 0.0 else 0.0
        priors[ballot.question] = t_ik, n_counted
        facts["questions"].append({"question": ballot.question, **worth, "counted": n_counted})
    facts["sentence"] = _sentence(facts, use)
    return Evidence(facts, priors, reading, rows, regressions) if priors or use else None


def _sentence(facts: dict[str, Any], use: str | None) -> str:
    names = [f"{_in_votes(row)} ({row['question']})" for row in facts["questions"]]
    worth = f"A text is worth about {listed(names, most=6)}" if names else "The worth of texts could not be measured"
    repeats = f"; {facts['repeated']:,} of {facts['texts']:,} texts nearly repeat another" if facts["repeated"] else ""
    if not any(row["low"] for row in facts["questions"]):
        return f"{worth}{repeats}. Texts do not count in p."
    if use is None:
        return f"{worth}{repeats}. Texts do not count in p; --use-text {TFIDF} (or minilm) lets them."
    limit = min((row["most"] for row in facts["questions"] if row["counted"] < row["votes"]), default=0)
    limited = f", but at most {limit:.0f}" * bool(limit)
    return f"{worth}{repeats}. Texts count in p as that many votes{limited}; p_votes is p without them."


def _in_votes(row: dict[str, Any]) -> str:
    if not row["low"]:
        return "0 votes"
    worth = f"{row['votes']:.1f}" if row["votes"] < 3 else f"{row['votes']:.0f}"
    return f"{WORTHS[-1]:.0f} votes or more" if row["votes"] >= WORTHS[-1] else f"{worth} votes"


def text_tables(
    consensus: Consensus, evidence: Evidence, group_by_column: Mapping[str, tuple[Sequence[str], Ints]]
) -> tuple[dict[str, pl.DataFrame], list[Finding]]:
    """Return where votes and texts disagree, for whom and where texts are worth most, and what to say about it.

    Parameters
    ----------
    consensus
        The fits, which hold what the texts said.
    evidence
        The texts.
    group_by_column
        By column of annotators' groups their names, and the group of every annotator of the votes (-1 for none).
    """
    conflicts = [pl.DataFrame(schema=with_ids(SCHEMAS["text_conflicts"], item=consensus.votes.items.dtype))]
    worths, findings = [pl.DataFrame(schema=SCHEMAS["text_worth"])], []
    for row in evidence.facts["questions"]:
        [fit] = [fit for fit in consensus.fits if fit.question == row["question"]]
        table = _worth_rows(consensus.votes, fit, row, group_by_column)
        worths.append(table)
        findings += _worse_predicted(table)
        if row["low"] > 0.0:
            conflicts.append(_conflicts(consensus.votes, fit, row, evidence))
    return {"text_worth": pl.concat(worths), "text_conflicts": pl.concat(conflicts)}, findings


def _conflicts(votes: Votes, fit: QuestionFit, row: dict[str, Any], evidence: Evidence) -> pl.DataFrame:
    """Rank the items whose votes have another label than their texts: least likely label of the votes first."""
    ballot, t_ik = fit.ballot, np.asarray(fit.item_prior[0])  # type: ignore[index]
    p_ik = fit.p_ik if fit.p_votes_ik is None else fit.p_votes_ik
    n_i1 = ballot.votes_i[:, None] + 1.0
    worth = min(row["votes"], row["most"])
    combined_ik = (n_i1 * p_ik + worth * t_ik) / (n_i1 + worth)
    label_i, text_i = highest(p_ik), highest(np.nan_to_num(t_ik))
    p_both_i = combined_ik[np.arange(len(p_ik)), label_i]
    items = np.flatnonzero((label_i != text_i) & (ballot.votes_i > 0) & np.isfinite(p_both_i))
    items = items[np.argsort(tie_key(p_both_i[items]), kind="stable")][:CONFLICTS]
    names, at = pl.Series(ballot.labels, dtype=pl.String), (items, label_i[items])
    return pl.DataFrame(
        {
            "question": pl.repeat(ballot.question, len(items), eager=True, dtype=pl.String),
            "item": votes.items.gather(ballot.item_i[items]), "label": names.gather(label_i[items]),
            "p_votes": p_ik[at], "p_text": t_ik[at], "p_both": combined_ik[at], "n_votes": ballot.votes_i[items],
            "text_label": names.gather(text_i[items]),
            "words": [_speaking(evidence, ballot, int(item), int(text_i[item])) for item in items],
        },
        schema=with_ids(SCHEMAS["text_conflicts"], item=votes.items.dtype),
    )  # fmt: skip


def _speaking(evidence: Evidence, ballot: Ballot, item: int, label: int) -> str:
    """Return the words of a text that speak most for a label."""
    reading = evidence.reading
    at = int(np.searchsorted(evidence.rows, ballot.item_i[item]))
    regression = evidence.regressions[ballot.question][reading.fold_i[at]] if reading else None
    if reading is None or regression is None:
        return ""
    weight_f = regression.coef_[label] if len(regression.coef_) > 1 else regression.coef_[0] * (2 * label - 1)
    x_f = reading.x_if[[at]]
    part_f = x_f.data * weight_f[x_f.indices]
    best = [f for f in np.argsort(-part_f)[:WORDS_LISTED] if part_f[f] > 0]
    # Pairs of letters of scripts without blanks are words again.
    return re.sub(f"(?<={UNSPACED.pattern}) (?={UNSPACED.pattern})", "", ", ".join(reading.words[x_f.indices[best]]))


def _worth_rows(
    votes: Votes, fit: QuestionFit, row: dict[str, Any], group_by_column: Mapping[str, tuple[Sequence[str], Ints]]
) -> pl.DataFrame:
    """Return the worth over all votes, by domain, by group and by annotator: one row each."""
    text_ik = np.asarray(fit.item_prior[0])  # type: ignore[index]
    items = np.flatnonzero(np.isfinite(text_ik).all(axis=1))
    ballot, base_k, text_ik = fit.ballot.take(items), base_rates(fit.ballot), text_ik[items]
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    label_v, annotator_v = ballot.code_v % ballot.n_labels, ballot.annotator_a[ballot.code_v // ballot.n_labels]
    counts_ik, priors = ballot.counts_ik, (text_ik, np.broadcast_to(base_k, text_ik.shape))
    # The loss of one vote for a label: that of all such votes on the item over their number.
    with_vs, without_vs = (
        np.column_stack([(loss_ik / np.maximum(counts_ik, 1))[item_v, label_v] for loss_ik in
                         left_out_losses(counts_ik, prior_ik, base_k)]) for prior_ik in priors
    )  # fmt: skip
    gain_v = without_vs[:, without_vs.sum(axis=0).argmin()] - with_vs[:, with_vs.sum(axis=0).argmin()]
    likely_i = highest(text_ik)
    against_v, expected_v = label_v != likely_i[item_v], 1.0 - text_ik.max(axis=1)[item_v]
    keys: dict[str, tuple[Sequence[Any], Ints]] = {ALL: ([ALL], np.zeros(len(item_v), dtype=np.int64))}
    if len(votes.domains) > 1:
        keys["domain"] = votes.domains, votes.domain_i[ballot.item_i[item_v]]
    keys |= {column: (names, group_a[annotator_v]) for column, (names, group_a) in group_by_column.items()}
    if not votes.anonymous:
        keys["annotator"] = votes.annotators.cast(pl.String).to_list(), annotator_v
    rows = []
    for by, (names, bin_v) in keys.items():
        order = np.argsort(bin_v, kind="stable")
        for rows_v in np.split(order, np.flatnonzero(np.diff(bin_v[order])) + 1):
            if bin_v[rows_v[0]] >= 0 and (by != "annotator" or len(rows_v) >= FEWEST_VOTES):
                worth = best_worth(with_vs[rows_v].sum(axis=0)[None], without_vs[rows_v].sum(axis=0)[None])[0]
                figures = [row["votes"], row["low"], row["high"]] if by == ALL else [worth, None, None]
                rows.append((row["question"], by, str(names[bin_v[rows_v[0]]]), len(rows_v), *figures,
                             *mean_interval(gain_v[rows_v], item_v[rows_v]),
                             against_v[rows_v].mean(), expected_v[rows_v].mean()))  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMAS["text_worth"], orient="row")


def _worse_predicted(table: pl.DataFrame) -> list[Finding]:
    """Find groups and domains whose votes texts predict clearly less well than those of all."""
    overall = table.row(0, named=True)
    groups = table.filter(~pl.col("by").is_in([ALL, "annotator"]), pl.col("gain_high") < overall["gain_low"])
    return [
        Finding(
            "texts", "gain", row["gain"], question=row["question"], subject=f"{row['by']} {row['name']}",
            low=row["gain_low"], high=row["gain_high"], n=row["n_votes"], level="note",
            text=f"texts predict the votes of {row['by']} {row['name']} less well ({row['gain']:.3f} nats per vote, "
                 f"{overall['gain']:.3f} over all)",
            meaning="What texts say is learnt from all votes, and stands less for these.",
            remedy="Do not let texts count where this group matters, or audit it on its own.",
        )
        for row in groups.iter_rows(named=True) if overall["low"] > 0.0
    ]  # fmt: skip
