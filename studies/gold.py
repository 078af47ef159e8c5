"""Is the published p better than counting votes? Real sets of votes with gold, and twins of the moral corpora.

Usage: gold.py [--data ../shared/data] [--draws 400] [--dry]. Writes the tables of docs/evidence/real-votes.md; with
--dry only prints. Sets that are not there are left out, with a word. No gold is used in a fit. The six yes/no
questions of mfrc_llm_panel count as six sets.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import moral_entropy
from moral_entropy import Votes, fit, read_votes
from moral_entropy.corpora.twins import twin

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / ".." / "shared" / "data"
PAGE = ROOT / "docs" / "evidence" / "real-votes.md"
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


def study(name: str, votes: Votes, draws: int) -> dict[str, dict[str, Scores]]:
    """Fit both models to votes; return the scores of every method, by set and method. A question is a set."""
    with warnings.catch_warnings():
        # What the fits warn of is what the study measures.
        warnings.simplefilter("ignore")
        paper, default = fit(votes, model="paper", draws=draws), fit(votes, draws=draws)
    sets = {}
    for first, second in zip(paper.fits, default.fits, strict=True):
        counts_ik = np.asarray(second.counts_ik, dtype=float)
        rows = (second.ballot.gold_i >= 0) & (counts_ik.sum(axis=1) > 0)
        plurality_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
        p_ik = {
            SHARE: smoothed_share(counts_ik),
            "plurality": plurality_ik / plurality_ik.sum(axis=1, keepdims=True),
            "paper, mode": first.posterior_ik,
            "paper, mean": first.p_ik,
            "model alone": second.model_ik,
            PUBLISHED: second.p_ik,
        }
        key = f"{name}: {second.question}" if len(votes.ballots) > 1 else name
        gold_i = second.ballot.gold_i[rows].astype(int)
        sets[key] = {method: score(p_ik[method][rows], gold_i) for method in METHODS}
    return sets


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
    parser.add_argument("--draws", type=int, default=400, help="posterior draws per fit")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    arguments = parser.parse_args()
    sets: dict[str, dict[str, Scores]] = {}
    for name, votes in gold_votes(arguments.data):
        sets |= study(name, votes, arguments.draws)
    twins = {
        f"{t} twin": mean_of(list(study(t, read_votes(twin(t), gold="gold"), arguments.draws).values())) for t in TWINS
    }
    parts = [f"moral-entropy {moral_entropy.__version__}, {arguments.draws} draws, seed 0."]
    parts += [f"### Over {len(sets)} sets", summary_table(sets), "### By set", set_table(sets)] if sets else []
    parts += ["### Twins, domains known, mean over foundations", set_table(twins)]
    text = "\n\n".join(parts)
    print(text)
    if not arguments.dry:
        page = put(PAGE.read_text(encoding="utf-8"), "published p", "studies/gold.py", text)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
