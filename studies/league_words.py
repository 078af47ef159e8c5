"""What the page of the league says in words: how to read it, and how its figures came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from league_runs import MEMORY_GB
from league_scores import CLIP

OPENING = """\
Our models and the public aggregators of votes, on every real set with gold at hand and on the three
[twins](../how-to/corpora.md) of moral corpora. No method sees gold, and all run with their defaults.

```
make league    # installs the other tools into .venv-peers, goes on where it was stopped, writes this page
```"""
READING = """\
*Ratio* is the log loss over that of the smoothed vote share, (n_k + ½)/(n + K/2), as a geometric mean over sets: below
1 the probabilities are better than counting votes. *Place* is that of our published p among the methods that answered
on all sets of the kind. A kind with few sets decides little. Kinds overlap: a set with many labels is also one of
people or of LLMs."""
LEGEND = """\
Mean rank by accuracy among all methods (1 is best, ties share, no answer is last) / mean accuracy / ratio of log
losses. Best accuracies and ratios are bold. A method that did not answer on every set of a kind has no means there; how
many sets it answered is in brackets. *CPU s* is the median over sets."""
HEAD_TO_HEAD = """\
On the real sets that the other method answered: on how many the published p is right more often, as often and less
often, how many points its accuracy is ahead on average, and its log loss over the other's, as a geometric mean: below 1
ours is better."""
CAVEAT = """\
- **Home ground**: how the published p pools model and votes was chosen with these real sets in view, so its lead on
  them flatters it. No other tool was chosen so."""
METHOD = """\
- Versions: {versions}; Python {python}; {processor}, {cores} cores.
- *CPU s* are CPU seconds of the call in one thread, without importing, compiling and bringing votes into a tool's
  format; other work on the machine hardly moves them. A method has {seconds:g} of them per set, all its questions
  together, and {memory:g} GB; one that needs more is a line that says so. `studies/league.py --seconds 600` gives more.
- *Log loss* is in nats per item with gold. No probability counts as less than {clip:g}, for all methods alike, and
  *clipped* counts the items where that happened. *Brier* is half the squared distance, summed over labels. *ECE* is
  that of the likeliest label, in 15 bins of equal width. A tie of n labels is right to 1/n.
- *Published p* and *p_model* are the columns `p` and `p_model` of an audit with its defaults; *the paper's model* is
  `--model paper`. Ours are told the domains of items where a set has them (mfrc_llm_panel and the twins); other tools
  have no place for them.
- CROWDLAB is made for votes with a classifier. Here there is none: it gets the share of each label among all votes.
- crowd-kit's Wawa and ZeroBasedSkill are called without their check that they are fitted, which fails under the
  scikit-learn of `benchmarks/peers.txt`. crowd-kit's MMSR and peerannot's IWMV give labels only.
- Where an annotator voted twice on an item (S_Rel, fact_eval, ZenCrowd_all), ours and crowd-kit count both votes;
  peerannot, cleanlab and snorkel have one cell for them and get one of the two.
- A twin's figures are means over its five foundations, its seconds their sum. Twins are simulated and know nothing of
  the ways of real annotators that we did not put in: trust the real sets more.
- Above each table is one standard error of an accuracy: a lead of less than two of them may be chance."""


@dataclass(frozen=True)
class Facts:
    """What the page says of the run: versions by tool, the machine, CPU seconds per set, sets without ours."""

    versions: dict[str, str]
    machine: dict[str, Any]
    seconds: float
    left_out: tuple[str, ...] = ()


def measured(facts: Facts) -> str:
    """Say how the figures came about."""
    versions = ", ".join(f"{tool.replace('_', '-')} {version}" for tool, version in sorted(facts.versions.items()))
    return METHOD.format(
        versions=versions.replace("crowdkit", "crowd-kit"),
        seconds=facts.seconds,
        memory=MEMORY_GB,
        clip=CLIP,
        **{name: facts.machine[name] for name in ("processor", "cores", "python")},
    )
