"""Check annotations: who agrees, which labels are safe, what to ask next.

>>> import moral_entropy as me
>>> votes = me.simulate_votes(n_items=50, n_annotators=5, votes_per_item=3, seed=1).votes
>>> run = me.audit(votes, draws=100)  # a path or a dataframe serves as well
>>> run.items.columns[:3]
['question', 'item', 'domain']
>>> consensus = me.fit(votes, draws=100)
>>> parts = me.decompose_entropy(consensus)
>>> table = me.audit_rules(votes, consensus)

Names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moral_entropy.corpora.simulate import simulate_votes
    from moral_entropy.errors import MoralEntropyError
    from moral_entropy.items.agreement import agreement
    from moral_entropy.judges.score import score
    from moral_entropy.model.consensus import Consensus
    from moral_entropy.model.entropy import EntropyParts, decompose_entropy
    from moral_entropy.model.fit import fit, refit
    from moral_entropy.model.priors import Priors
    from moral_entropy.pipeline import audit
    from moral_entropy.rules.rules import Rule
    from moral_entropy.rules.table import AuditTable, audit_rules
    from moral_entropy.runs.run import Run, read_run
    from moral_entropy.verification import verify
    from moral_entropy.votes.read import read_votes
    from moral_entropy.votes.table import Ballot, Votes

__version__ = "0.2.0"

__all__ = [
    "AuditTable",
    "Ballot",
    "Consensus",
    "EntropyParts",
    "MoralEntropyError",
    "Priors",
    "Rule",
    "Run",
    "Votes",
    "__version__",
    "agreement",
    "audit",
    "audit_rules",
    "decompose_entropy",
    "fit",
    "read_run",
    "read_votes",
    "refit",
    "score",
    "simulate_votes",
    "verify",
]

_HOME = {
    "AuditTable": "moral_entropy.rules.table",
    "Ballot": "moral_entropy.votes.table",
    "Consensus": "moral_entropy.model.consensus",
    "EntropyParts": "moral_entropy.model.entropy",
    "MoralEntropyError": "moral_entropy.errors",
    "Priors": "moral_entropy.model.priors",
    "Rule": "moral_entropy.rules.rules",
    "Run": "moral_entropy.runs.run",
    "Votes": "moral_entropy.votes.table",
    "agreement": "moral_entropy.items.agreement",
    "audit": "moral_entropy.pipeline",
    "audit_rules": "moral_entropy.rules.table",
    "decompose_entropy": "moral_entropy.model.entropy",
    "fit": "moral_entropy.model.fit",
    "read_run": "moral_entropy.runs.run",
    "read_votes": "moral_entropy.votes.read",
    "refit": "moral_entropy.model.fit",
    "score": "moral_entropy.judges.score",
    "simulate_votes": "moral_entropy.corpora.simulate",
    "verify": "moral_entropy.verification",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
