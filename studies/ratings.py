"""Do ordered labels gain by graded rows? Left-out votes, gold, scores and simulated raters.

Usage: ratings.py [--data ../shared/data] [--seeds 1 2 3 4 5] [--dry] [--million]. With --million, only what an audit of
1,000,000 simulated ratings takes. Seeds from 1 on: seed 0 chose a constant. Writes
docs/data/ratings.csv and the tables of docs/evidence/ratings.md; with --dry only prints. One vote per item with two or
more is left out, the rest fitted, and the vote predicted from its item and its rater's rows: with rows of their own
prior alone (nominal, c = 0), with rows drawn to the common row (nominal, the default for names), with graded rows, by
the share of the item's other votes, and by their mean with normal noise of all votes' spread.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from scipy.special import ndtr

from moral_entropy import Votes, audit, fit, read_votes
from moral_entropy.checks.heldout import _predict, _without
from moral_entropy.corpora.simulate import write_simulated
from moral_entropy.items.ratings import fit_raters, rater_frame, score_frame
from moral_entropy.model import fit as fitting
from moral_entropy.ties import labels_of
from moral_entropy.votes.table import Ballot, ballot_from_codes

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE, TABLE = ROOT / ".." / "shared" / "data", ROOT / "docs/evidence/ratings.md", ROOT / "docs/data/ratings.csv"
SETS = ("trecrag24_9judges", "web", "popquorn_offensiveness", "moralstrength_strength9", "nflx_video", "cebab_stars",
        "summeval", "mega_veridicality", "paraphrase")  # fmt: skip
METHODS = ("own", "common", "graded", "share", "mean")
ROWS = {
    "own": (0.0, 1.0, False),
    "common": (fitting.COMMON, fitting.OWN, False),
    "graded": (fitting.COMMON, fitting.OWN, True),
}
"""Weight of the common row, of the own prior, and whether rows are graded, whose weight is learnt."""


def ordered_ballots(data: Path) -> Iterator[tuple[str, str, Votes, Ballot]]:
    """Read the questions of every set, in the order of their scales."""
    for name in SETS:
        file, columns = data / name / ("ratings.csv" if "popquorn" in name else "votes.csv"), {}
        if not file.is_file():
            print(f"  {name} is not in {data.name}: left out", file=sys.stderr)
            continue
        source: Path | pl.DataFrame = file
        if name == "summeval":
            source = pl.read_csv(file).with_columns(question=pl.col("item").str.split("__").list.last())
            columns["question"] = "question"
        elif name == "mega_veridicality":
            columns["questions"] = ("veridicality", "acceptability")
        elif name == "moralstrength_strength9":
            columns["domain"] = ""
        if (data / name / "gold.csv").is_file():
            columns["gold_file"] = data / name / "gold.csv"
        votes = read_votes(source, on_repeat="count", **columns)
        for ballot in votes.ballots:
            yield name, ballot.question, votes, ballot


def fitted_with(rows: str, votes: Votes, ballot: Ballot) -> tuple[object, Ballot]:
    """Fit one ballot with one kind of rows."""
    common, own, graded = ROWS[rows]
    ballot = ballot if graded else replace(ballot, levels=None)
    before = fitting.COMMON, fitting.OWN
    fitting.COMMON, fitting.OWN = common, own
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fit(replace(votes, ballots=(ballot,)), draws=0, domain_prevalence="off").fits[0], ballot
    finally:
        fitting.COMMON, fitting.OWN = before


def rps(p_vk: np.ndarray, label_v: np.ndarray) -> float:
    """Compute the mean ranked probability score."""
    below_vk = np.arange(p_vk.shape[1]) >= label_v[:, None]
    return float(((p_vk.cumsum(axis=1) - below_vk) ** 2).sum(axis=1).mean())


def left_out(votes: Votes, ballot: Ballot, seed: int) -> dict[str, tuple[float, float]]:
    """Predict one vote per item; return log score and RPS by method."""
    rng, items = np.random.default_rng(seed), np.flatnonzero(ballot.votes_i > 1)
    out_v = ballot.start_i[items] + (rng.random(len(items)) * ballot.votes_i[items]).astype(int)
    rest, scores = _without(ballot, out_v), {}
    annotator_v, label_v = np.divmod(ballot.code_v[out_v], ballot.n_labels)
    p_vk = {"mean": around_means(rest, items)}
    for rows in ROWS:
        fitted, cut = fitted_with(rows, votes, rest)
        p_vk[rows], p_vk["share"], _ = _predict(fitted, cut, items, annotator_v)
    for name in METHODS:
        loss = -np.log(np.maximum(p_vk[name][np.arange(len(label_v)), label_v], 1e-6)).mean()
        scores[name] = (float(loss), rps(p_vk[name], label_v))
    return scores


def around_means(ballot: Ballot, items: np.ndarray) -> np.ndarray:
    """Predict a further vote by the mean of an item's votes, with the spread of all votes around their items' means."""
    rank_k, counts_ik, n_i = np.arange(ballot.n_labels), ballot.counts_ik, ballot.votes_i
    mean_i = counts_ik @ rank_k / np.maximum(n_i, 1)
    square = (counts_ik * (rank_k - mean_i[:, None]) ** 2).sum() / max(int((n_i - 1).clip(min=0).sum()), 1)
    spread_i = np.sqrt(max(square, 0.01) * (1.0 + 1.0 / np.maximum(n_i[items], 1)))
    bound_b = np.concatenate([[-np.inf], rank_k[1:] - 0.5, [np.inf]])
    return np.diff(ndtr((bound_b - mean_i[items, None]) / spread_i[:, None]), axis=1)


def qwk(first_i: np.ndarray, second_i: np.ndarray) -> float:
    """Compute quadratically weighted kappa."""
    apart = float(((first_i - second_i) ** 2).mean())
    return 1.0 - apart / float(first_i.var() + second_i.var() + (first_i.mean() - second_i.mean()) ** 2)


def against_gold(votes: Votes, ballot: Ballot) -> dict[str, tuple[float, float, float]]:
    """Return accuracy, MAE and QWK of the median of p, and of the votes' median."""
    known_i = (ballot.gold_i >= 0) & (ballot.votes_i > 0)
    gold_i, scores = ballot.gold_i[known_i].astype(float), {}
    p_ik = {rows: fitted_with(rows, votes, ballot)[0].p_ik for rows in ("common", "graded")}
    p_ik["votes' median"] = ballot.counts_ik / np.maximum(ballot.votes_i, 1)[:, None]
    for name, probability_ik in p_ik.items():
        label_i = labels_of(probability_ik, None, ordered=True)[known_i].astype(float)
        scores[name] = (float((label_i == gold_i).mean()), float(np.abs(label_i - gold_i).mean()), qwk(label_i, gold_i))
    return scores


def simulated(
    seed: int, *, levels: bool, reverse: bool = False, bias: float = 0.5
) -> tuple[Ballot, np.ndarray, np.ndarray]:
    """Simulate 12 raters, 5 of them on each of 200 items, with biases and spreads; levels 1 to 5 or scores."""
    rng = np.random.default_rng(seed)
    truth_i, bias_a = rng.normal(3.0, 1.1, 200), rng.normal(0.0, bias, 12)
    spread_a = np.exp(rng.normal(np.log(0.7), 0.3 if bias else 0.0, 12))
    item_v, rater_v = np.repeat(np.arange(200), 5), np.concatenate([rng.permutation(12)[:5] for _ in range(200)])
    facing_v = np.where((rater_v == 0) & reverse, 6.0 - truth_i[item_v], truth_i[item_v] + bias_a[rater_v])
    score_v = facing_v + spread_a[rater_v] * rng.normal(size=len(item_v))
    label_v = np.clip(np.round(score_v), 1, 5).astype(int) - 1
    ballot = ballot_from_codes("q", tuple("12345"), item_v=item_v, annotator_v=rater_v, label_v=label_v)
    ballot = replace(ballot, levels=(1.0, 2.0, 3.0, 4.0, 5.0))
    if not levels:
        ballot = replace(ballot, score_v=score_v[np.lexsort((label_v, rater_v, item_v))])
    return ballot, bias_a - np.average(bias_a, weights=np.bincount(rater_v)), spread_a


def raters_recovered(n_seeds: int) -> list[str]:
    """Say how often intervals hold bias and spread, and how often roles are right."""
    names, lines = pl.Series([f"r{a}" for a in range(12)]), []
    for levels in (True, False):
        held, n_reversed, n_clean = np.zeros(2), 0, 0
        for seed in range(n_seeds):
            ballot, bias_a, spread_a = simulated(seed, levels=levels)
            frame = rater_frame(names, ballot, fit_raters(ballot), 0.9)
            for at, (figure, truth_a) in enumerate((("bias", bias_a), ("spread", spread_a))):
                low_a, high_a = (frame[f"{figure}_{end}"].to_numpy() for end in ("low", "high"))
                held[at] += ((low_a <= truth_a) & (truth_a <= high_a)).mean() / n_seeds
            turned = simulated(seed, levels=levels, reverse=True, bias=0.3)[0]
            n_reversed += rater_frame(names, turned, fit_raters(turned), 0.9)["role"][0] == "reversed"
            clean = simulated(seed, levels=levels, bias=0.0)[0]
            n_clean += (rater_frame(names, clean, fit_raters(clean), 0.9)["role"] != "").any()
        kind = "levels" if levels else "scores"
        lines.append(
            f"| {kind} | {held[0]:.0%} | {held[1]:.0%} | {n_reversed / n_seeds:.0%} | {n_clean / n_seeds:.0%} |"
        )
    return lines


def p910_scores(ballot: Ballot) -> np.ndarray:
    """Compute items' scores as ITU-T P.910 does: viewers' biases taken off, votes weighted by their inconsistency.

    Alternates between items' scores, viewers' biases, and the spread of what is left of each viewer's votes, until no
    score moves; the published algorithm, written anew from its formulas.
    """
    item_v, rater_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i), ballot.code_v // ballot.n_labels
    vote_v, n_a = np.array(ballot.levels)[ballot.code_v % ballot.n_labels], ballot.votes_a
    score_i = np.bincount(item_v, weights=vote_v) / ballot.votes_i
    for _ in range(1_000):
        before_i, bias_a = score_i, np.bincount(rater_v, weights=vote_v - score_i[item_v]) / n_a
        left_v = vote_v - score_i[item_v] - bias_a[rater_v]
        weight_v = (n_a / np.bincount(rater_v, weights=left_v**2))[rater_v]
        score_i = np.bincount(item_v, weights=weight_v * (vote_v - bias_a[rater_v]))
        score_i /= np.bincount(item_v, weights=weight_v)
        if np.abs(score_i - before_i).max() < 1e-10:
            break
    return score_i


def continuous(data: Path) -> list[str]:
    """Compare means of scores with gold, and means of levels with the scores of P.910."""
    lines = []
    for name in ("snow_valence", "snow_anger", "nflx_video"):
        file, gold = data / name / "votes.csv", data / name / "gold.csv"
        if not file.is_file():
            continue
        votes = read_votes(file, **({"gold_file": gold} if gold.is_file() else {}))
        fitted = fit(votes, draws=0).fits[0]
        frame = score_frame(votes.items, fitted, fit_raters(fitted.ballot), 0.9)
        if frame["gold"].null_count() < frame.height:
            errors = [float(((frame[column] - frame["gold"]) ** 2).mean()) ** 0.5 for column in ("mean", "mean_votes")]
            lines.append(f"| {name} | RMSE {errors[0]:.2f} | {errors[1]:.2f} |")
            continue
        frame = frame.with_columns(p910=pl.Series(p910_scores(fitted.ballot)))
        ranks = [frame.select(pl.corr(column, "p910", method="spearman")).item() for column in ("mean", "mean_votes")]
        lines.append(f"| {name} | rank correlation with P.910's scores {ranks[0]:.4f} | {ranks[1]:.4f} |")
    return lines


def left_out_lines(table: pl.DataFrame) -> list[str]:
    """Return the table of left-out votes, a row per set; of sets with several questions the geometric mean."""
    figures = table.group_by("set", "method", maintain_order=True).agg(pl.col("log_score", "rps").log().mean().exp())
    wide = figures.pivot("method", index="set", values=["log_score", "rps"])
    heads = ["own rows", "common row", "graded", "share", "item mean"]
    lines = [f"| set | {' | '.join(heads)} | graded / own | graded / common |", "| --- |" + " --- |" * 7]
    for row in wide.iter_rows(named=True):
        cells = [f"{row[f'log_score_{method}']:.3f} ({row[f'rps_{method}']:.3f})" for method in METHODS]
        ratios = [row["log_score_graded"] / row[f"log_score_{method}"] for method in ("own", "common")]
        lines.append(f"| {row['set']} | {' | '.join(cells)} | {ratios[0]:.3f} | {ratios[1]:.3f} |")
    for score, title in (
        ("log_score", f"geometric mean (worst) of {wide.height} sets"),
        ("rps", "the same of the RPS"),
    ):
        cells = []
        for method in ("own", "common"):
            ratio_s = (wide[f"{score}_graded"] / wide[f"{score}_{method}"]).to_numpy()
            cells.append(f"{np.exp(np.log(ratio_s).mean()):.3f} ({ratio_s.max():.3f})")
        lines.append(f"| {title} |{' |' * 5} {' | '.join(cells)} |")
    return lines


def million() -> None:
    """Audit 1,000,000 ratings of 5 levels by 500 raters, and print processor time and peak memory."""
    with TemporaryDirectory() as folder:
        votes, before = Path(folder) / "votes.parquet", time.process_time()
        write_simulated(votes, n_items=200_000, n_annotators=500, votes_per_item=5, n_labels=5, seed=1, ordered=True)
        start = time.process_time()
        audit(votes, Path(folder) / "run", gold="gold")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"simulated in {start - before:.0f} s; audit {time.process_time() - start:.0f} s of processor time, ",
            end="",
        )
        print(f"{memory:.2f} GB at most")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--million", action="store_true")
    options = parser.parse_args()
    if options.million:
        million()
        return
    rows, gold_lines = [], []
    for name, question, votes, ballot in ordered_ballots(options.data):
        runs = [left_out(votes, ballot, seed) for seed in options.seeds]
        for method in METHODS:
            loss, ranked = np.mean([run[method] for run in runs], axis=0)
            rows.append({"set": name, "question": question, "method": method, "log_score": loss, "rps": ranked})
        print(name, question, [(row["method"], round(row["log_score"], 3)) for row in rows[-5:]], flush=True)
        if (ballot.gold_i >= 0).any():
            gold_lines += [
                f"| {name} | {method} | {accuracy:.3f} | {mae:.3f} | {kappa:.3f} |"
                for method, (accuracy, mae, kappa) in against_gold(votes, ballot).items()
            ]
    table = pl.DataFrame(rows)
    rater_heads = "| votes | bias held | spread held | reversed named | clean crowds with a word |"
    parts = {
        "left-out": left_out_lines(table),
        "gold": ["| set | median of | accuracy | MAE | QWK |", "| --- |" + " --- |" * 4, *gold_lines],
        "scores": ["| set | ours | plain mean |", "| --- | --- | --- |", *continuous(options.data)],
        "raters": [rater_heads, "| --- |" + " --- |" * 4, *raters_recovered(40)],
    }
    for name, part in parts.items():
        print(f"\n{name}\n" + "\n".join(part))
    if not options.dry:
        table.write_csv(TABLE, float_precision=4)
        page = PAGE.read_text()
        for name, part in parts.items():
            pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
            text = "\n".join(part)
            page = re.sub(pattern, lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page, flags=re.DOTALL)
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
