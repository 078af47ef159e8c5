"""Is the published p better than counting votes? Real sets of votes with gold, and twins of the moral corpora.

Usage: gold.py [--data ../shared/data] [--draws 400] [--seeds 4] [--dry]. Writes the tables of
docs/evidence/real-votes.md; with --dry only prints. Sets that are not there are left out, with a word. No gold is used
in a fit. The six yes/no questions of mfrc_llm_panel count as six sets. The sets are fitted whole, and cut to 1, 2 and 3
votes per item; rates of rules are compared with gold on those of two labels.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import moral_entropy
from moral_entropy import Consensus, Votes, fit, read_votes
from moral_entropy.corpora.twins import twin
from moral_entropy.model.consensus import QuestionFit
from moral_entropy.votes.table import ballot_from_codes

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / ".." / "shared" / "data"
PAGE = ROOT / "docs" / "evidence" / "real-votes.md"
BY_SET = "[The table](../data/real-votes.csv): set, smoothed share, published p, ratio."
PANEL = "mfrc_llm_panel"
"""A set whose gold has several labels per item, in a file of its own."""

SETS = (
    "bluebird", "rte", "D_Product", "web", "S_Rel", "fact_eval", "ZenCrowd_all", "hate_paradigms", "labelme",
    "face_sentiment", "snow_temp", "dices350", "llmbar_natural", "trecrag24_9judges", PANEL,
)  # fmt: skip
TWINS = ("mftc", "mfrc", "emfd")
SHARE, PUBLISHED = "smoothed share", "published p"
METHODS = (SHARE, "plurality", "paper, mode", "paper, mean", "model alone", PUBLISHED)
FIGURES = ("accuracy", "log_loss", "ece")
CUTS = (1, 2, 3)
"""Votes per item that the sets are cut to."""

RULES = {"any": lambda yes_i, n_i: yes_i >= 1, "majority": lambda yes_i, n_i: 2 * yes_i >= n_i,
         "two votes": lambda yes_i, n_i: yes_i >= 2}  # fmt: skip
"""Rules whose rates are compared with gold, of the votes for yes and all votes."""

CLIP = 1e-6
"""No probability counts as less than this, lest one sure error make a log loss infinite."""

Scores = dict[str, float]


def gold_votes(data: Path) -> Iterator[tuple[str, Votes]]:
    """Read the sets that are there, one after the other; say which are not."""
    for name in SETS:
        gold = data / name / ("items.csv" if name == PANEL else "gold.csv")
        if not gold.is_file():
            print(f"  {name} is not in {data.name}: left out", file=sys.stderr)
            continue
        print(f"  {name}", file=sys.stderr, flush=True)
        several = {"gold": "gold_multilabel", "multilabel": "|"} if name == PANEL else {}
        yield name, read_votes(data / name / "votes.csv", gold_file=gold, on_repeat="count", **several)


def score(p_ik: np.ndarray, gold_i: np.ndarray) -> Scores:
    """Compare label probabilities with gold: accuracy, log loss in nats, Brier score (halved), calibration error.

    A tie of n labels is right to 1/n. The calibration error is that of the likeliest label, in 15 bins of equal width.
    What is no number counts as knowing nothing.

    Examples
    --------
    >>> scores = score(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]))
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'accuracy': 0.75, 'log_loss': 0.399, 'brier': 0.13, 'ece': 0.05}
    """
    p_ik = np.where(np.isfinite(p_ik).all(axis=1, keepdims=True), p_ik, 1.0 / p_ik.shape[1])
    rows = np.arange(len(gold_i))
    # Probabilities that differ by rounding are tied.
    top_ik = np.isclose(p_ik, p_ik.max(axis=1, keepdims=True), rtol=0.0, atol=1e-9)
    right_i = (top_ik / top_ik.sum(axis=1, keepdims=True))[rows, gold_i]
    sure_i = p_ik.max(axis=1)
    bin_i = np.minimum((15 * sure_i).astype(int), 14)
    gaps = [abs((right_i - sure_i)[bin_i == b].sum()) for b in range(15)]
    return {
        "accuracy": float(right_i.mean()),
        "log_loss": float(-np.log(np.maximum(p_ik[rows, gold_i], CLIP)).mean()),
        "brier": float(0.5 * ((p_ik - np.eye(p_ik.shape[1])[gold_i]) ** 2).sum(axis=1).mean()),
        "ece": float(np.sum(gaps) / len(gold_i)),
    }


def smoothed_share(counts_ik: np.ndarray) -> np.ndarray:
    """Return vote shares with half a vote added to every label."""
    return (counts_ik + 0.5) / (counts_ik + 0.5).sum(axis=1, keepdims=True)


def _fit(votes: Votes, **options: Any) -> Consensus:
    with warnings.catch_warnings():
        # What the fits warn of is what the study measures.
        warnings.simplefilter("ignore")
        return fit(votes, **options)


def _counted(fitted: QuestionFit) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return share and plurality of all items, which of them have votes and gold, and the gold of these."""
    counts_ik = np.asarray(fitted.counts_ik, dtype=float)
    rows = (fitted.ballot.gold_i >= 0) & (counts_ik.sum(axis=1) > 0)
    plurality_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    plurality_ik = plurality_ik / plurality_ik.sum(axis=1, keepdims=True)
    return smoothed_share(counts_ik), plurality_ik, rows, fitted.ballot.gold_i[rows].astype(int)


def study(name: str, votes: Votes, draws: int) -> dict[str, dict[str, Scores]]:
    """Fit both models to votes; return the scores of every method, by set and method. A question is a set."""
    paper, default = _fit(votes, model="paper", draws=draws), _fit(votes, draws=0)
    sets = {}
    for first, second in zip(paper.fits, default.fits, strict=True):
        share_ik, plurality_ik, rows, gold_i = _counted(second)
        p_ik = {
            SHARE: share_ik,
            "plurality": plurality_ik,
            "paper, mode": first.posterior_ik,
            "paper, mean": first.p_ik,
            "model alone": second.model_ik,
            PUBLISHED: second.p_ik,
        }
        key = f"{name}: {second.question}" if len(votes.ballots) > 1 else name
        sets[key] = {method: score(p_ik[method][rows], gold_i) for method in METHODS}
    return sets


def cut(votes: Votes, most: int, seed: int) -> Votes:
    """Keep at most so many votes per item, drawn at random; questions are cut one by one."""
    rng, ballots = np.random.default_rng(seed), []
    for ballot in votes.ballots:
        item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
        order_v = np.lexsort((rng.random(len(item_v)), item_v))
        rank_v = np.arange(len(item_v)) - ballot.start_i[item_v]
        v = np.sort(order_v[rank_v < most])
        annotator_v, label_v = np.divmod(ballot.code_v[v], ballot.n_labels)
        voter_a, annotator_v = np.unique(annotator_v, return_inverse=True)
        ballots.append(ballot_from_codes(
            ballot.question, ballot.labels, item_v=item_v[v], annotator_v=annotator_v, label_v=label_v,
            item_i=ballot.item_i, annotator_a=ballot.annotator_a[voter_a], positive=ballot.positive,
            gold_i=ballot.gold_i,
        ))  # fmt: skip
    return replace(votes, ballots=tuple(ballots))


def cut_scores(name: str, votes: Votes, seeds: int) -> dict[int, dict[str, tuple[float, float]]]:
    """Fit the default model to cut votes: by number of votes and set, ratio of log losses and gain in accuracy."""
    scores: dict[int, dict[str, tuple[float, float]]] = {}
    for most in CUTS:
        by_seed: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            for fitted in _fit(cut(votes, most, seed), draws=0).fits:
                share_ik, plurality_ik, rows, gold_i = _counted(fitted)
                share, vote, own = (score(p_ik[rows], gold_i) for p_ik in (share_ik, plurality_ik, fitted.p_ik))
                key = f"{name}: {fitted.question}" if len(votes.ballots) > 1 else name
                pair = (float(np.log(own["log_loss"] / share["log_loss"])), own["accuracy"] - vote["accuracy"])
                by_seed.setdefault(key, []).append(pair)
        scores[most] = {
            key: (float(np.exp(np.mean([x for x, _ in pairs]))), float(np.mean([gain for _, gain in pairs])))
            for key, pairs in by_seed.items()
        }
    return scores


def cut_table(cuts: Sequence[dict[int, dict[str, tuple[float, float]]]]) -> str:
    """Lay out means over sets by number of votes: ratio of log losses, gain in accuracy, each with the worst set."""
    lines = [
        "| votes per item | ratio of log losses | worst | accuracy minus the vote's, points | worst |",
        "| ---: | ---: | --- | ---: | --- |",
    ]
    for most in CUTS:
        pairs = {name: pair for scores in cuts for name, pair in scores[most].items()}
        ratios, gains = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
        high, low = max(ratios, key=ratios.__getitem__), min(gains, key=gains.__getitem__)
        mean, gain = float(np.exp(np.mean(np.log(list(ratios.values()))))), 100 * float(np.mean(list(gains.values())))
        lines.append(
            f"| {most} | {number(mean)} | {number(ratios[high], 2)} ({high}) | {gain:+.1f} "
            f"| {100 * gains[low]:+.1f} ({low}) |"
        )
    return "\n".join(lines)


def rate_errors(votes: Votes) -> dict[str, list[tuple[float, float]]]:
    """Compare the expected rates of rules with gold: by rule, errors of FPR and of FNR, one pair per question.

    Questions of more than two labels, or without gold of both labels, are left out.
    """
    errors: dict[str, list[tuple[float, float]]] = {}
    for fitted in _fit(votes, draws=0).fits:
        ballot = fitted.ballot
        rows = (ballot.gold_i >= 0) & (ballot.votes_i > 0)
        truth_i = ballot.gold_i[rows] == ballot.positive
        if ballot.n_labels != 2 or not 0 < truth_i.sum() < len(truth_i):
            continue
        p_i, yes_i = fitted.p_ik[rows, ballot.positive], fitted.counts_ik[rows, ballot.positive]
        for name, rule in RULES.items():
            said_i = rule(yes_i, fitted.counts_ik[rows].sum(axis=1))
            pairs = [(said_i, 1.0 - p_i, ~truth_i), (~said_i, p_i, truth_i)]
            fpr, fnr = (
                abs(wrong_i @ chance_i / chance_i.sum() - wrong_i[is_i].mean()) for wrong_i, chance_i, is_i in pairs
            )
            errors.setdefault(name, []).append((float(fpr), float(fnr)))
    return errors


def rate_table(errors: dict[str, dict[str, list[tuple[float, float]]]]) -> str:
    """Lay out the mean error of expected FPR/FNR, by rule and over all, one column per group of sets."""
    lines = [f"| rule | {' | '.join(errors)} |", f"| --- |{' ---: |' * len(errors)}"]
    for name in (*RULES, "all"):
        cells = []
        for by_rule in errors.values():
            pairs = [pair for rule, pairs in by_rule.items() if name in (rule, "all") for pair in pairs]
            cells.append("/".join(number(float(np.mean(column))) for column in zip(*pairs, strict=True)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _merged(errors: Sequence[dict[str, list[tuple[float, float]]]]) -> dict[str, list[tuple[float, float]]]:
    return {name: [pair for by_rule in errors for pair in by_rule.get(name, [])] for name in RULES}


def ratio(scores: dict[str, Scores], method: str) -> float:
    """Return a method's log loss as a ratio to that of the smoothed share."""
    return scores[method]["log_loss"] / scores[SHARE]["log_loss"]


def number(value: float, digits: int = 3) -> str:
    """Write a number as the tables do: .123, 1.234."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def mean_of(sets: Sequence[dict[str, Scores]]) -> dict[str, Scores]:
    """Average the scores of several sets, method by method."""
    return {m: {f: float(np.mean([s[m][f] for s in sets])) for f in sets[0][m]} for m in METHODS}


def set_table(sets: dict[str, dict[str, Scores]]) -> str:
    """Lay out accuracy, log loss and calibration error of the share and the published p on every set, and the ratio."""
    lines = [f"| set | {SHARE} | {PUBLISHED} | ratio |", "| --- | ---: | ---: | ---: |"]
    for name, scores in sets.items():
        cells = ["/".join(number(scores[method][figure]) for figure in FIGURES) for method in (SHARE, PUBLISHED)]
        lines.append(f"| {name} | {' | '.join(cells)} | {number(ratio(scores, PUBLISHED))} |")
    return "\n".join(lines)


def summary_table(sets: dict[str, dict[str, Scores]]) -> str:
    """Lay out means over the sets: ratio of log losses (geometric) and the worst one, accuracy, calibration."""
    lines = ["| method | ratio of log losses | worst | accuracy | ECE |", "| --- | ---: | --- | ---: | ---: |"]
    means = mean_of(list(sets.values()))
    for method in METHODS:
        ratios = {name: ratio(scores, method) for name, scores in sets.items()}
        worst = max(ratios, key=lambda name: ratios[name])
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        lines.append(
            f"| {method} | {number(mean)} | {number(ratios[worst], 2)} ({worst}) "
            f"| {number(means[method]['accuracy'])} | {number(means[method]['ece'])} |"
        )
    return "\n".join(lines)


def put(page: str, part: str, script: str, text: str) -> str:
    """Put text between the markers of one part of a page; the prose around them stays.

    Examples
    --------
    >>> put("a <!-- x: written by y.py --> old <!-- end of x --> b", "x", "y.py", "new").split()[-7:]
    ['new', '<!--', 'end', 'of', 'x', '-->', 'b']
    """
    begin, end = f"<!-- {part}: written by {script} -->", f"<!-- end of {part} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not between.search(page):
        msg = f"the page has no place for the tables: {begin} … {end}"
        raise ValueError(msg)
    return between.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def main() -> None:
    """Run the study and write its part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--draws", type=int, default=400, help="posterior draws per fit of the paper's model")
    parser.add_argument("--seeds", type=int, default=4, help="seeds 0, 1, … of the votes that are kept in a cut")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    arguments = parser.parse_args()
    sets: dict[str, dict[str, Scores]] = {}
    cuts, errors = [], []
    for name, votes in gold_votes(arguments.data):
        sets |= study(name, votes, arguments.draws)
        cuts.append(cut_scores(name, votes, arguments.seeds))
        errors.append(rate_errors(votes))
    twins, twin_errors = {}, []
    for name in TWINS:
        votes = read_votes(twin(name))
        twins[f"{name} twin"] = mean_of(list(study(name, votes, arguments.draws).values()))
        twin_errors.append(rate_errors(votes))
    parts = [f"moral-entropy {moral_entropy.__version__}, {arguments.draws} draws, seed 0."]
    if sets:
        parts += [f"### Over {len(sets)} sets", summary_table(sets), "### By set", BY_SET]
        parts += [f"### The same sets cut, mean over {arguments.seeds} seeds", cut_table(cuts)]
    parts += ["### Twins, domains known, mean over foundations", set_table(twins)]
    rates = {"sets of two labels": _merged(errors)} if sets else {}
    rates |= {f"{name} twin": by_rule for name, by_rule in zip(TWINS, twin_errors, strict=True)}
    parts += ["### Expected FPR/FNR of rules, mean distance from gold", rate_table(rates)]
    text = "\n\n".join(parts)
    print(text)
    if not arguments.dry:
        page = put(PAGE.read_text(encoding="utf-8"), "published p", "studies/gold.py", text)
        PAGE.write_text(page, encoding="utf-8")
        rows = [line.strip("| ").split(" | ") for line in set_table(sets).splitlines() if "---" not in line]
        with (ROOT / "docs" / "data" / "real-votes.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
