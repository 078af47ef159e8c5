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
from typing import Any

__version__ = "0.3.0"

_HOME = {
    "AuditTable": "rules.table",
    "Ballot": "votes.table",
    "Consensus": "model.consensus",
    "EntropyParts": "model.entropy",
    "MoralEntropyError": "errors",
    "Priors": "model.priors",
    "Rule": "rules.rules",
    "Run": "runs.run",
    "Votes": "votes.table",
    "agreement": "items.agreement",
    "audit": "pipeline",
    "audit_rules": "rules.table",
    "compare": "comparison",
    "decompose_entropy": "model.entropy",
    "fit": "model.fit",
    "read_run": "runs.run",
    "read_votes": "votes.read",
    "refit": "model.fit",
    "score": "judges.score",
    "simulate_votes": "corpora.simulate",
    "train": "train",
    "verify": "verification",
}
"""Where each public name is defined."""

__all__ = sorted(["__version__", *_HOME])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = import_module(f"{__name__}.{_HOME[name]}")
    # A package that is called as the name is the name: Python binds it here whenever it is imported.
    value = module if _HOME[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
