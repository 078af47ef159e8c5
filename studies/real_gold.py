"""Is the published p better than counting votes? Twenty sets of real votes with gold, and twins of moral corpora.

Usage: real_gold.py [--data ../shared/data] [--draws 400] [--dry]. Writes the part `published p` of
docs/evidence/real-votes.md; with --dry only prints. Sets that are not there are left out, with a word. No gold is
used in a fit. Six yes/no questions of mfrc_llm_panel count as six sets; snow_valence and snow_anger ask for numbers and
are not among them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gold_sets import ALL_SETS, ROOT, asked_for, facts, gold_votes
from page import put

from moral_entropy.checks.gold import items_with_gold
from moral_entropy.checks.scores import accuracy, calibration_gap, log_losses
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Floats, Ints, Votes

PAGE = ROOT / "docs" / "evidence" / "real-votes.md"
TWINS = ("mftc", "mfrc", "emfd")
SHARE, PLURALITY, PUBLISHED = "smoothed share", "plurality", "published p"
METHODS = (SHARE, PLURALITY, "paper, mode", "paper, mean", "mixed alone", PUBLISHED)


@dataclass(frozen=True)
class Scored:
    """How good one method's probabilities are: `ece` is that of the likeliest label, in 15 bins of equal width."""

    accuracy: float
    log_loss: float
    ece: float


@dataclass(frozen=True)
class GoldSet:
    """One set with gold, and the scores of every method on it."""

    name: str
    n_labels: int
    n_gold: int
    scores: dict[str, Scored]

    def ratio(self, method: str) -> float:
        """Return the method's log loss as a ratio to that of the smoothed share."""
        return self.scores[method].log_loss / self.scores[SHARE].log_loss


def score(log_p_ik: Floats, gold_i: Ints, weight_i: Floats) -> Scored:
    """Score log probabilities against gold; a tie of n labels is right to 1/n.

    Examples
    --------
    >>> found = score(np.log([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]), np.ones(2))
    >>> found.accuracy, round(found.log_loss, 3), round(found.ece, 3)
    (0.75, 0.399, 0.05)
    """
    p_ik = np.exp(log_p_ik)
    top_ik = p_ik >= p_ik.max(axis=1, keepdims=True) - 1e-9
    right_i = np.take_along_axis(top_ik / top_ik.sum(axis=1, keepdims=True), gold_i[:, None].astype(int), axis=1)[:, 0]
    return Scored(
        accuracy=accuracy(p_ik, gold_i, weight_i),
        log_loss=float(np.average(log_losses(p_ik, gold_i), weights=weight_i)),
        ece=calibration_gap(p_ik.max(axis=1), right_i, weight_i),
    )


def study_votes(name: str, votes: Votes, draws: int) -> list[GoldSet]:
    """Fit both models to some votes, and score every method against gold: one set per question."""
    with warnings.catch_warnings():
        # What they warn of is what the study measures.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        fits = [fit(votes, model=model, draws=draws).fits for model in ("paper", "mixed")]
    several = len(votes.ballots) > 1
    return [
        study_question(f"{name}: {paper.question}" if several else name, paper, mixed)
        for paper, mixed in zip(*fits, strict=True)
    ]


def study_question(name: str, paper: QuestionFit, mixed: QuestionFit) -> GoldSet:
    """Score every method on the items of one question that have gold."""
    item_i, ballot = items_with_gold(mixed), mixed.ballot
    counts_ik = ballot.counts_ik[item_i]
    top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_p = {
            SHARE: np.log(smoothed_share(counts_ik)),
            PLURALITY: np.log(top_ik / top_ik.sum(axis=1, keepdims=True)),
            "paper, mode": np.log(paper.posterior_ik[item_i]),
            "paper, mean": np.log(paper.summary.mean_ik[item_i]),
            "mixed alone": np.log(mixed.summary.mean_ik[item_i]),
            PUBLISHED: np.log(mixed.p_ik[item_i]),
        }
    scores = {method: score(log_p[method], ballot.gold_i[item_i], ballot.count_i[item_i]) for method in METHODS}
    return GoldSet(name, ballot.n_labels, len(item_i), scores)


def study_twin(name: str, draws: int) -> GoldSet:
    """Score every method on a twin, whose truth and domains are known: means over its questions."""
    sets = study_votes(name, read_votes(twin(name)), draws)
    means = {
        method: Scored(*(mean(sets, lambda one, m=method, f=figure: getattr(one.scores[m], f)) for figure in FIGURES))
        for method in METHODS
    }
    return GoldSet(f"{name} twin", sets[0].n_labels, sets[0].n_gold, means)


FIGURES = ("accuracy", "log_loss", "ece")


def mean(sets: Sequence[GoldSet], value: Callable[[GoldSet], float]) -> float:
    """Average a figure over sets."""
    return float(np.mean([value(one) for one in sets]))


def geometric_mean(sets: Sequence[GoldSet], method: str) -> float:
    """Return the geometric mean over sets of the ratio to the smoothed share."""
    return float(np.exp(np.mean([np.log(one.ratio(method)) for one in sets])))


def number(value: float, digits: int = 3) -> str:
    """Write a number as the tables do: .123, 1.234, ∞."""
    if np.isinf(value):
        return "∞"
    return f"{value:.{digits}f}".removeprefix("0") if abs(value) < 1 else f"{value:.{digits}f}"


def set_table(sets: Sequence[GoldSet]) -> str:
    """Lay out accuracy, log loss and ECE of every method on every set, and the ratio of the published p."""
    lines = [
        f"| set | labels | gold | {' | '.join(METHODS)} | ratio |",
        "| --- | ---: | ---: |" + " ---: |" * (len(METHODS) + 1),
    ]
    for one in sets:
        cells = ["/".join(number(getattr(one.scores[method], figure)) for figure in FIGURES) for method in METHODS]
        lines.append(
            f"| {one.name} | {one.n_labels} | {one.n_gold:,} | {' | '.join(cells)} | {number(one.ratio(PUBLISHED))} |"
        )
    return "\n".join(lines)


def summary_table(sets: Sequence[GoldSet]) -> str:
    """Lay out means over the sets: ratio of log losses (geometric), the worst one and its set, accuracy and ECE."""
    lines = ["| method | ratio of log losses | worst | accuracy | ECE |", "| --- | ---: | --- | ---: | ---: |"]
    for method in METHODS:
        worst = max(sets, key=lambda one, m=method: one.ratio(m))
        lines.append(
            f"| {method} | {number(geometric_mean(sets, method))} | {number(worst.ratio(method), 2)} ({worst.name}) "
            f"| {number(mean(sets, lambda one, m=method: one.scores[m].accuracy))} "
            f"| {number(mean(sets, lambda one, m=method: one.scores[m].ece))} |"
        )
    return "\n".join(lines)


TEXT = (
    "Accuracy / log loss in nats per item / ECE of the likeliest label (15 bins). *Ratio*: log loss of the published p "
    "over that of the smoothed vote share, (n_k + ½)/(n + K/2); below 1 the model earns its place. Nothing is clipped, "
    "and no gold is used in a fit. *Paper* is `--model paper`; *mixed alone* is the default model's own posterior "
    "mean, and the *published p* pools it with the share, more so where an item seems to lie between labels."
)


def page_part(sets: Sequence[GoldSet], twins: Sequence[GoldSet]) -> str:
    """Return the text of the page's part."""
    parts = [TEXT]
    if sets:
        parts += [f"### Over {len(sets)} sets", summary_table(sets), "### By set", set_table(sets)]
    if twins:
        parts += ["### Twins, domains known, mean over foundations", set_table(twins)]
    return "\n\n".join(parts)


def with_part(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "published p", "studies/real_gold.py", text)


def main() -> None:
    """Run the study and write its part of the page."""
    asked = asked_for(__doc__)
    sets: list[GoldSet] = []
    for name, votes in gold_votes(asked.data, ALL_SETS):
        sets += study_votes(name, votes, asked.draws)
    twins = [study_twin(name, asked.draws) for name in TWINS]
    text = f"{facts(asked.draws)} {page_part(sets, twins)}"
    print(text)
    if not asked.dry:
        PAGE.write_text(with_part(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
