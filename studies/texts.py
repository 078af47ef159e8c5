"""What are texts worth? Real votes cut to a few per item: left-out votes, or gold, predicted with texts and without.

Usage: texts.py [--data ../shared/data] [--texts 6000] [--seeds 40] [--only scores|shuffled|speed] [--dry]. Writes the
tables of docs/evidence/texts.md; with --dry only prints. Sets that are not there are left out, with a word. Where
cleanlab is installed its CROWDLAB stands beside ours, with the same text probabilities. Thin twins of the moral corpora
cannot show any of this: their texts are filler.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import polars as pl

from moral_entropy import fit, read_votes
from moral_entropy.checks.scores import auc, calibration_gap
from moral_entropy.model.fit import base_rates
from moral_entropy.train.texts import Reading, cross_fit, embed_texts, measure_worth, read_texts

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / ".." / "shared" / "data"
PAGE = ROOT / "docs" / "evidence" / "texts.md"
MFRC_LABELS, PANEL_LABELS = ("Care", "Equality", "Authority", "Non-Moral"), ("care", "fairness", "authority")
METHODS = ("share", "p without texts", "tf-idf", "MiniLM", "both", "CROWDLAB")
RANKINGS = ("all items", "lowest agreement", "lowest p", "p of votes less p of text", "lowest p with texts")
MISSING = -1


class Question(NamedTuple):
    """One yes/no question: votes by item and voter (-1 for none), how many are known, and gold where there is."""

    name: str
    vote_ia: np.ndarray
    known: tuple[int, ...]
    gold_i: np.ndarray | None = None
    anonymous: bool = False


def sets(data: Path, n_texts: int) -> Iterator[tuple[str, list[str], list[Question]]]:
    """Yield every set that is there: its name, its texts and its questions."""
    for name, read in {"mfrc_counts": _mfrc, "mfrc_llm_panel": _panel, "popquorn_offensiveness": _popquorn}.items():
        if not (data / name).is_dir():
            print(f"  {name} is not in {data.name}: left out", file=sys.stderr)
            continue
        print(f"  {name}", file=sys.stderr, flush=True)
        yield name, *read(data / name, n_texts)


def _mfrc(folder: Path, n_texts: int) -> tuple[list[str], list[Question]]:
    """Read counts of yes among three votes; who voted is not known."""
    table = pl.read_csv(folder / "counts_with_text.csv").filter(pl.col("text").str.strip_chars() != "")
    rng = np.random.default_rng(0)
    table = table[np.sort(rng.choice(table.height, min(n_texts, table.height), replace=False))]
    questions = []
    for label in MFRC_LABELS:
        yes_i = table[label].to_numpy().clip(0, 3)
        vote_ia = rng.permuted((np.arange(3) < yes_i[:, None]).astype(int), axis=1)
        questions.append(Question(label, vote_ia, (1, 2), anonymous=True))
    return table["text"].to_list(), questions


def _panel(folder: Path, n_texts: int) -> tuple[list[str], list[Question]]:
    """Read the votes of nine language models, with people's majority as gold."""
    items = pl.read_csv(folder / "items.csv").filter(pl.col("text").str.strip_chars() != "").head(n_texts)
    votes = pl.read_csv(folder / "votes.csv").join(items.select("item").with_row_index("row"), on="item")
    _, voter_v = np.unique(votes["annotator"].to_numpy(), return_inverse=True)
    questions = []
    for label in PANEL_LABELS:
        vote_ia = np.full((items.height, voter_v.max() + 1), MISSING)
        yes_v = votes["label"].fill_null("").str.split("|").list.contains(label).to_numpy()
        vote_ia[votes["row"].to_numpy(), voter_v] = yes_v
        gold_i = items["gold_multilabel"].fill_null("").str.split("|").list.contains(label).to_numpy().astype(float)
        questions.append(Question(label, vote_ia, (1, 3, 8, 9), gold_i))
    return items["text"].to_list(), questions


def _popquorn(folder: Path, n_texts: int) -> tuple[list[str], list[Question]]:
    """Read ratings from 1 to 5; offensive are 2 and more."""
    votes = pl.read_csv(folder / "ratings.csv")
    items = votes.group_by("item", maintain_order=True).agg(pl.col("text").first()).head(n_texts).with_row_index("row")
    votes = votes.join(items.select("item", "row"), on="item")
    _, voter_v = np.unique(votes["annotator"].to_numpy(), return_inverse=True)
    vote_ia = np.full((items.height, voter_v.max() + 1), MISSING)
    vote_ia[votes["row"].to_numpy(), voter_v] = votes["rating"].to_numpy() >= 2
    return items["text"].to_list(), [Question("offensive", vote_ia, (1, 2, 4))]


def cut(vote_ia: np.ndarray, n_known: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw the known votes of every item; the second table has those left out."""
    order_ia = np.random.default_rng(seed).random(vote_ia.shape) + 2.0 * (vote_ia == MISSING)
    rank_ia = order_ia.argsort(axis=1).argsort(axis=1)
    chosen_ia = (rank_ia < n_known) & (vote_ia != MISSING)
    return np.where(chosen_ia, vote_ia, MISSING), np.where(chosen_ia, MISSING, vote_ia)


def probabilities(question: Question, known_ia: np.ndarray, both: Reading) -> dict[str, np.ndarray]:
    """Return the probability of yes by method, and what the worth of the texts was."""
    item_v, voter_v = np.nonzero(known_ia != MISSING)
    frame = pl.DataFrame({"item": item_v, "annotator": voter_v, "label": known_ia[item_v, voter_v]})
    columns = {"anonymous": True} if question.anonymous else {"annotator": "annotator"}
    votes = read_votes(frame.drop("annotator") if question.anonymous else frame, item="item", label="label", **columns)
    [ballot] = votes.ballots
    counts_ik, n_i = ballot.counts_ik, ballot.votes_i
    base_k = base_rates(ballot)
    p = {"share": ((counts_ik + base_k) / (counts_ik.sum(axis=1, keepdims=True) + 1.0))[:, 1]}
    p["p without texts"] = fit(votes, draws=0).fits[0].p_ik[:, 1]
    words, encoder = both._replace(embedded=None), both._replace(x_if=both.embedded, piece_if=None, embedded=None)
    for name, reading in {"tf-idf": words, "MiniLM": encoder, "both": both}.items():
        t_ik, _ = cross_fit(reading, counts_ik)
        worth = measure_worth(counts_ik, t_ik, base_k, reading.group_i)
        counted = min(worth["votes"], worth["most"]) if worth["low"] > 0.0 else 0.0
        p[name] = ((n_i + 1.0) * p["p without texts"] + counted * t_ik[:, 1]) / (n_i + 1.0 + counted)
        p[f"worth, {name}"] = np.array([worth["votes"], worth["low"], worth["high"]])
    p["text"], p["counted"] = t_ik[:, 1], np.array(counted)
    p["CROWDLAB"] = crowdlab(known_ia, t_ik)
    return p


def crowdlab(known_ia: np.ndarray, t_ik: np.ndarray) -> np.ndarray:
    """Return the probability of yes by cleanlab's CROWDLAB; NaN where it is not installed or refuses these votes."""
    try:
        from cleanlab.multiannotator import get_label_quality_multiannotator

        votes = pl.DataFrame(np.where(known_ia == MISSING, np.nan, known_ia)).to_pandas()
        quality = get_label_quality_multiannotator(votes, t_ik, verbose=False)["label_quality"]
    except Exception as error:
        print(f"  no CROWDLAB: {type(error).__name__} {str(error)[:80]}", file=sys.stderr)
        return np.full(len(t_ik), np.nan)
    score_i, yes_i = quality["consensus_quality_score"].to_numpy(), quality["consensus_label"].to_numpy() == 1
    return np.where(yes_i, score_i, 1.0 - score_i)


def score(p_i: np.ndarray, yes_i: np.ndarray, n_i: np.ndarray) -> tuple[float, float, float]:
    """Return log loss, AUC and calibration error of p against votes, or against gold as one vote."""
    p_i, share_i = p_i.clip(1e-6, 1 - 1e-6), yes_i / np.maximum(n_i, 1)
    loss_i = -(yes_i * np.log(p_i) + (n_i - yes_i) * np.log(1 - p_i))
    return float(loss_i.sum() / n_i.sum()), auc(p_i, share_i, n_i), calibration_gap(p_i, share_i, n_i)


def study_predictions(data: Path, n_texts: int) -> tuple[list[str], list[str]]:
    """Return rows of the table of scores, and of that of label errors."""
    rows = []
    for name, texts, questions in sets(data, n_texts):
        both = read_texts(texts, "minilm")
        for question in questions:
            for n_known in question.known:
                rows.append(
                    _rows(f"{name}, {question.name}, {n_known}", question, *cut(question.vote_ia, n_known), both)
                )
                print(*rows[-1], sep="\n", file=sys.stderr, flush=True)
    return [row for row, _ in rows], [row for _, row in rows]


def _rows(place: str, question: Question, known_ia: np.ndarray, left_ia: np.ndarray, both: Reading) -> tuple[str, str]:
    """Return the rows of one question and number of votes."""
    p = probabilities(question, known_ia, both)
    left = (left_ia == 1).sum(axis=1).astype(float), (left_ia != MISSING).sum(axis=1).astype(float)
    target = left if question.gold_i is None else (question.gold_i, np.ones(len(question.gold_i)))
    scored = [score(p[name], *target) if np.isfinite(p[name]).all() else () for name in METHODS]
    cells = ["/".join(map(_short, figures)) or "–" for figures in scored]
    gaps = [score(p[name], *left)[2] for name in ("p without texts", "both")] if left[1].any() else []
    cells += [" → ".join(map(_short, gaps)) or "–", "{:.1f} ({:.1f} to {:.1f})".format(*p["worth, both"])]
    errors = label_errors(p, known_ia, *target)
    shares = [*(f"{share:.0%}" for share in errors), f"{errors[-1] / errors[1]:.1f}"]
    return f"| {place} | {' | '.join(cells)} |", f"| {place} | {' | '.join(shares)} |"


def _short(figure: float) -> str:
    return f"{figure:.3f}".replace("0.", ".")


def label_errors(p: dict[str, np.ndarray], known_ia: np.ndarray, yes_i: np.ndarray, n_i: np.ndarray) -> np.ndarray:
    """Return the share of wrong labels among all items, and among the first 100 by each of `RANKINGS`."""
    n_known_i = (known_ia != MISSING).sum(axis=1)
    label_i = p["p without texts"] >= 0.5
    sure_i = np.maximum(yes_i, n_i - yes_i) > n_i / 2
    wrong_i = label_i != (yes_i * 2 > n_i)
    by_votes_i = np.where(label_i, p["p without texts"], 1 - p["p without texts"])
    text_i = np.where(label_i, p["text"], 1 - p["text"])
    both_i = ((n_known_i + 1) * by_votes_i + p["counted"] * text_i) / (n_known_i + 1 + p["counted"])
    agreement_i = np.abs((known_ia == 1).sum(axis=1) / n_known_i - 0.5)
    shuffle_i = np.random.default_rng(0).random(len(wrong_i))
    shares = [wrong_i[sure_i].mean()]
    for order_i in (agreement_i, by_votes_i, text_i - by_votes_i, both_i):
        items = np.lexsort((shuffle_i, np.where(sure_i, order_i, np.inf)))[:100]
        shares.append(wrong_i[items].mean())
    return np.array(shares)


def study_shuffled(data: Path, seeds: int) -> list[str]:
    """Count how often the interval of the worth of shuffled texts excludes 0."""
    rows = []
    for name, texts, questions in sets(data, 1_500):
        reading, question = read_texts(texts), questions[0]
        excluded, points = 0, []
        for seed in range(seeds):
            known_ia, _ = cut(question.vote_ia, 2, seed)
            order = np.random.default_rng(seed).permutation(len(texts))
            counts_ik = np.column_stack([(known_ia == 0).sum(axis=1), (known_ia == 1).sum(axis=1)])[order]
            t_ik, _ = cross_fit(reading, counts_ik)
            base_k = (counts_ik.sum(axis=0) + 0.5) / (counts_ik.sum() + 1.0)
            worth = measure_worth(counts_ik, t_ik, base_k, reading.group_i)
            excluded += worth["low"] > 0.0
            points.append(worth["votes"])
        rows.append(f"| {name}, {question.name}, 2 | {seeds} | {excluded} | {np.mean(np.array(points) > 0):.0%} |")
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def study_speed(data: Path) -> list[str]:
    """Measure seconds of processor time per 10,000 texts; for MiniLM from every tenth of them, without the cache."""
    [(_, texts, questions), *_] = sets(data, 10_000)
    counts_ik = np.column_stack([(questions[0].vote_ia == k).sum(axis=1) for k in (0, 1)])
    read_texts(texts[:500])
    start = time.process_time()
    reading = read_texts(texts)
    t_ik, _ = cross_fit(reading, counts_ik)
    measure_worth(counts_ik, t_ik, counts_ik.mean(axis=0) / 3.0, reading.group_i)
    seconds = {"tf-idf, one question": time.process_time() - start}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"MORAL_ENTROPY_CACHE": folder}):
        embed_texts(texts[:1], "minilm")
        start = time.process_time()
        embed_texts(texts[::10], "minilm")
        seconds["MiniLM, every tenth text, times 10"] = 10.0 * (time.process_time() - start)
    return [f"| {name} | {value:.1f} |" for name, value in seconds.items()]


def _heads(*names: str) -> tuple[str, str]:
    return f"| {' | '.join(names)} |", "| --- " * len(names) + "|"


def main() -> None:
    """Make the tables, and put them between their marks on the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--texts", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--only", choices=("scores", "shuffled", "speed"))
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables: dict[str, list[str]] = {}
    if options.only in (None, "scores"):
        scores, errors = study_predictions(options.data, options.texts)
        heads = (*METHODS, "calibration error of left-out votes, without texts → with both", "worth of a text (both)")
        tables["scores"] = [*_heads("set, question, votes known", *heads), *scores]
        tables["errors"] = [*_heads("set, question, votes known", *RANKINGS, "times lowest agreement"), *errors]
    if options.only in (None, "shuffled"):
        heads = ("set, question, votes", "seeds", "interval above 0", "worth above 0")
        tables["shuffled"] = [*_heads(*heads), *study_shuffled(options.data, options.seeds)]
    if options.only in (None, "speed"):
        tables["speed"] = [*_heads("10,000 texts of MFRC", "processor seconds"), *study_speed(options.data)]
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() and not options.dry else ""
    for name, lines in tables.items():
        table = "\n".join(lines)
        print(table, end="\n\n")
        if name in ("scores", "errors") and not options.dry:
            rows = [line.strip("| ").split(" | ") for line in lines if "---" not in line]
            with (ROOT / "docs" / "data" / f"texts-{name}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
        page = re.sub(rf"(<!-- {name} -->\n\n)(\|.*\n)*\n*", lambda mark, table=table: f"{mark[1]}{table}\n\n", page)
    if page:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
