"""The audit of consensus rules: what it adds to a run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import data
from measure import Measurement, say

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Votes

TWINS = ("mftc", "mfrc", "emfd")
PRIORS = Priors(prevalence=(80, 20))


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Measure the audit of the three twins, and of items that all have their own votes."""
    say("the audit of rules on three twins")
    # The first audit loads the compiled kernels.
    twins = [_seconds(read_votes(twin(name, scale=sizes.scale))) for name in ("mfrc", *TWINS)][1:]
    each = ", ".join(f"{name} {seconds:.2g} s" for name, seconds in zip(TWINS, twins, strict=True))
    how = f"all rules, against the consensus and gold; {each}"
    yield Measurement("audit of rules on the three twins", sum(twins), "s", how, at_most=5.0)
    large = data.large(sizes.items)
    say(f"the audit of rules on {large.n_items:,} items")
    how = "1,000 draws, all rules, against the consensus and gold"
    yield Measurement(f"audit of rules on {large.n_items:,} items", _seconds(large), "s", how, at_most=20.0)


def _seconds(votes: Votes) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(votes, priors=PRIORS)
    start = time.perf_counter()
    audit_rules(votes, consensus)
    return time.perf_counter() - start
