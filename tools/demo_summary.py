"""Sum up the audits of the twins: `python tools/demo_summary.py demo/mftc demo/mfrc …`.

Next to every run folder lie its votes, as `demo/mftc.parquet`: the paper's model is fitted to them once more. Prints a
line per question, who comes closest to the known truth, and the paper's headline rates beside ours.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

import polars as pl

from moral_entropy.corpora.published import CORPORA, Published, read_published, spell
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.model.fit import fit
from moral_entropy.names import ALL, MEAN
from moral_entropy.rules.table import audit_rules
from moral_entropy.runs.folder import read_manifest, read_table
from moral_entropy.votes.read import read_votes

COLUMNS = ("run", "question", "items", "share of yes", "entropy", "any: fpr", "any: fdr", "majority: fnr", "converged")
RATES = (("any", "expected_fpr"), ("any", "expected_fdr"), ("majority", "expected_fnr"))
RULES = ("any", "majority", "two-vote", "smoothed-share")
P, VOTE, PAPER = "published p", "plain vote", "paper's model"
METHODS = (P, VOTE, PAPER)


@dataclass(frozen=True)
class Score:
    """How close a method comes to the truth: log loss in nats, and the share of labels that are right."""

    log_loss: float
    right: float


def main(runs: list[str]) -> None:
    """Print a line per question, the scores against the truth, the headline rates, then where the reports are."""
    folders = [Path(run) for run in runs]
    ours = {folder.name: read_table(folder, "audit") for folder in folders}
    papers = {folder.name: paper_figures(folder.with_suffix(".parquet")) for folder in folders}
    print_questions(folders, ours)
    print_scores({name: scores(ours[name], papers[name]) for name in ours})
    print_headline(ours, papers)
    print("\nThe reports:")
    for run in runs:
        seconds = sum(read_manifest(run)["seconds"].values())
        print(f"  {run}/report.html  ({seconds:.1f} s)")


def paper_figures(votes_file: Path) -> pl.DataFrame:
    """Grade rules by the paper's model: a table as `audit.parquet`."""
    with warnings.catch_warnings():
        # The audit of the same votes has said it all.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        votes = read_votes(votes_file, gold="gold")
        consensus = fit(votes, model="paper")
        return audit_rules(votes, consensus, rules=RULES, reference="both").frame


def print_questions(folders: Sequence[Path], figures: Mapping[str, pl.DataFrame]) -> None:
    """Print a line per run and question."""
    print("\n" + _line(COLUMNS))
    for folder in folders:
        means = read_table(folder, "entropy").filter(pl.col("domain") == ALL)
        fits = {fit["question"]: fit for fit in read_manifest(folder)["questions"]}
        for question, n_items, total in means.select("question", "n_items", "total").iter_rows():
            asked = {"question": question, "domain": ALL, "reference": "consensus"}
            shares = [
                _percent(value_of(figures[folder.name], rule=rule, metric=metric, **asked)) for rule, metric in RATES
            ]
            fitted = fits[question]
            prevalence = f"{fitted['prevalence'][fitted['positive']]:.1%}"
            converged = "yes" if fitted["converged"] else "NO"
            print(_line((folder.name, question, f"{n_items:,}", prevalence, f"{total:.3f}", *shares, converged)))
    print("Mean entropy in nats; expected rates of the rules: a text counts as yes with its p.")


def value_of(figures: pl.DataFrame, **place: Any) -> float | None:
    """Return the one figure of a place; None if it has no value."""
    value: float | None = figures.filter(**place)["value"].item()
    return value


def scores(ours: pl.DataFrame, papers: pl.DataFrame) -> dict[str, Score]:
    """Return how close each method comes to gold, all questions and domains pooled."""
    found = {}
    for method, figures, rule in (
        (P, ours, "consensus"),
        (VOTE, ours, "smoothed-share"),
        (PAPER, papers, "consensus"),
    ):
        place = {"question": ALL, "domain": ALL, "reference": "gold", "rule": rule}
        loss, wrong = (value_of(figures, metric=metric, **place) for metric in ("log_loss", "disagreement"))
        if loss is None or wrong is None:
            msg = f"there is no gold to hold the {method} against."
            raise ValueError(msg)
        found[method] = Score(loss, 1 - wrong)
    return found


def print_scores(found: Mapping[str, Mapping[str, Score]]) -> None:
    """Print a line per twin: log loss and share of right labels of every method; then who wins."""
    print("\nAgainst the known truth: log loss in nats, and labels that are right")
    print(f"{'':<6}" + "".join(f"{method:>18}" for method in METHODS))
    for name, by_method in found.items():
        cells = (f"{by_method[method].log_loss:.3f}  {by_method[method].right:.1%}" for method in METHODS)
        print(f"{name:<6}" + "".join(f"{cell:>18}" for cell in cells))
    print("The plain vote: (yes + ½) / (votes + 1); its labels are those of the majority.")
    print(fill(who_wins(found), 100))


def who_wins(found: Mapping[str, Mapping[str, Score]]) -> str:
    """Say which method has the lowest log loss on which twin, and where labels of another are right more often.

    Examples
    --------
    >>> made = {P: Score(0.2, 0.9), VOTE: Score(0.3, 0.8), PAPER: Score(0.25, 0.9)}
    >>> who_wins({"mftc": made, "mfrc": {**made, PAPER: Score(0.1, 0.95)}})  # doctest: +NORMALIZE_WHITESPACE
    "By log loss the published p wins on MFTC (0.200; plain vote 0.300, paper's model 0.250); the paper's model wins on
    MFRC (0.100; published p 0.200, plain vote 0.300). No other has more right labels than the published p, except on
    MFRC."
    """
    won: dict[str, list[str]] = {}
    beaten = []
    for name, by_method in found.items():
        best = min(METHODS, key=lambda method: round(by_method[method].log_loss, 3))
        rest = ", ".join(f"{method} {by_method[method].log_loss:.3f}" for method in METHODS if method != best)
        won.setdefault(best, []).append(f"{CORPORA.get(name, name)} ({by_method[best].log_loss:.3f}; {rest})")
        if max(round(score.right, 3) for score in by_method.values()) > round(by_method[P].right, 3):
            beaten.append(CORPORA.get(name, name))
    said = [f"the {best} wins on {' and '.join(where)}" for best, where in won.items()]
    but = f", except on {' and '.join(beaten)}" if beaten else ""
    return f"By log loss {'; '.join(said)}. No other has more right labels than the published p{but}."


def print_headline(ours: Mapping[str, pl.DataFrame], papers: Mapping[str, pl.DataFrame]) -> None:
    """Print the paper's rates of rules beside those on the twins: means over domains and foundations."""
    heads = ("the paper", "its model", "published p", "truth")
    print("\nThe paper's headline rates, and those on the twins")
    print(_row("", heads))
    ours, papers = ({ALL: pl.concat(each.values()), **each} for each in (ours, papers))
    for figure in headline():
        if figure.corpus not in ours:
            continue
        cells = [
            cell_mean(papers[figure.corpus], figure, figure.reference),
            cell_mean(ours[figure.corpus], figure, figure.reference, expected="expected_"),
            cell_mean(ours[figure.corpus], figure, "gold"),
        ]
        where = f"{CORPORA.get(figure.corpus, 'all'):<5}{figure.rule} {figure.metric}"
        print(_row(where, (figure.printed, *map(_percent, cells))))
    print(
        "its model: the paper's, on these twins, yes-or-no rates as in the paper; published p: expected\n"
        "rates; eMFD: against gold, as in the paper."
    )


def headline() -> list[Published]:
    """Return the paper's rates of rules, read as means over domains and foundations."""
    return [figure for figure in read_published() if figure.section == "audit" and figure.reading == "cells"]


def cell_mean(figures: pl.DataFrame, figure: Published, reference: str, expected: str = "") -> float | None:
    """Return the mean over domains and questions of a rule's rate; those without a denominator are left out."""
    metric = figure.metric if reference == "gold" else f"{expected}{figure.metric}"
    cells = figures.filter(rule=figure.rule, metric=metric, reference=reference).filter(
        ~pl.col("domain").is_in([ALL, MEAN]) & ~pl.col("question").is_in([ALL, MEAN])
    )["value"]
    found = cells.drop_nulls().to_list()
    return fmean(found) if found else None


def _percent(value: float | None) -> str:
    return "–" if value is None else spell("fpr", value)


def _row(where: str, cells: Sequence[str]) -> str:
    return f"{where:<23}{cells[0]:>16}" + "".join(f"{cell:>13}" for cell in cells[1:])


def _line(cells: tuple[str, ...]) -> str:
    run, question, *rest = cells
    return f"{run:<6}{question:<11}" + "".join(
        f"{cell:>{len(name) + 2}}" for cell, name in zip(rest, COLUMNS[2:], strict=True)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
