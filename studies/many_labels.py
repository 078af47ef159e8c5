"""Are drawn rows of many labels those of the posterior? Draws of the fit against NUTS, on simulated votes.

The Gaussian around the mode is wide, in logs, wherever a row of errors has hardly any votes, and of many labels most
are of that kind. Draws are therefore moved until their mean is the mode (`consensus/draws.py`). Here both are held
against sampling: how far the means of the chances to be right lie from sampled ones, and how wide they are.

That draws are moved only with more than two labels was chosen on these tables: with two labels it matters little.

Usage: many_labels.py [--dry]. Writes the part `rows of many labels` of docs/evidence/validation.md, in four minutes;
with --dry only prints.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from page import write_parts

import moral_entropy
from moral_entropy.checks.nuts_sampler import sample
from moral_entropy.consensus import draws
from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.table import Floats

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "validation.md"
DESIGNS = (
    (2, 6, 300, 3), (2, 12, 600, 3), (2, 12, 600, 5), (2, 20, 400, 4), (2, 60, 300, 3), (2, 150, 500, 4),
    (3, 10, 300, 3), (3, 15, 600, 4), (3, 30, 300, 2), (3, 110, 400, 3), (4, 12, 800, 4), (4, 20, 400, 3),
    (4, 30, 300, 2), (4, 110, 500, 4), (5, 20, 400, 3), (6, 30, 400, 3), (8, 15, 300, 3),
)  # fmt: skip
"""Labels, annotators, items, and votes per item. From 100 annotators on they are pooled."""

DRAWS, CHAINS, TUNE, STEPS, SEED = 1_000, 2, 300, 500, 1
HEAD = (
    "| labels | annotators | votes per row | R-hat | right: mode | NUTS | draws | draws, not moved "
    "| off NUTS: draws | not moved | spread, times NUTS's: draws | not moved |\n"
    "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def compare(n_labels: int, n_annotators: int, n_items: int, votes_per_item: int) -> str:
    """Fit, sample, and give the line of the table."""
    given = {"n_labels": n_labels, "n_annotators": n_annotators, "n_items": n_items, "votes_per_item": votes_per_item}
    votes = simulate_votes(**given, seed=SEED).votes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        one = fit(votes, draws=DRAWS, seed=SEED).fits[0]
    samples = sample(one, chains=CHAINS, tune=TUNE, draws=STEPS, seed=SEED)
    moved_sakv = np.log(one.confusion_sakv)
    if n_labels == 2:
        plain_sakv = moved_sakv.copy()
        draws.centre_rows(moved_sakv, np.log(one.confusion_akv))
    else:
        plain_sakv = _not_moved(votes)
    nuts_sak, moved_sak, plain_sak = map(_right, (samples.confusion_sakv, np.exp(moved_sakv), np.exp(plain_sakv)))
    off = [np.sqrt(((sak.mean(axis=0) - nuts_sak.mean(axis=0)) ** 2).mean()) for sak in (moved_sak, plain_sak)]
    spread = [(sak.std(axis=0) / nuts_sak.std(axis=0)).mean() for sak in (moved_sak, plain_sak)]
    right = [_right(one.confusion_akv).mean(), nuts_sak.mean(), moved_sak.mean(), plain_sak.mean()]
    cells = [
        f"{n_labels}", f"{n_annotators}", f"{n_items * votes_per_item / n_annotators / n_labels:.1f}",
        f"{samples.parameters.most_rhat:.3f}", *(f"{x:.3f}" for x in right), *(f"{x:.3f}" for x in off),
        *(f"{x:.2f}" for x in spread),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _not_moved(votes: moral_entropy.Votes) -> Floats:
    """Give the logs of rows drawn from the same Gaussian around the mode, not moved."""
    before, draws.SHIFTS = draws.SHIFTS, 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoralEntropyWarning)
            return np.log(fit(votes, draws=DRAWS, seed=SEED).fits[0].confusion_sakv)
    finally:
        draws.SHIFTS = before


def _right(row_akv: Floats) -> Floats:
    """Give the chances to be right."""
    return np.einsum("...akk->...ak", row_akv)


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="print the table and leave the page alone")
    dry = parser.parse_args().dry
    lines = [HEAD]
    for design in DESIGNS:
        print(f"  {design[0]} labels, {design[1]} annotators", file=sys.stderr, flush=True)
        lines.append(compare(*design))
    facts = (
        f"moral-entropy {moral_entropy.__version__}; {DRAWS:,} draws; "
        f"{CHAINS} chains of {TUNE} + {STEPS} steps, seed {SEED}."
    )
    text = "\n".join([facts, "", *lines])
    print(text)
    if not dry:
        write_parts(PAGE, "studies/many_labels.py", {"rows of many labels": text})


if __name__ == "__main__":
    main()
