"""Densities: the log posterior of a ballot, on the simplex and in log-ratio coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from moral_entropy.consensus.common_rows import CommonRows
from moral_entropy.consensus.domain_prior import DomainPrior
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.nested import NestedMode
from moral_entropy.votes.table import Floats


@dataclass(frozen=True, eq=False)
class Densities:
    """The log posterior of one ballot, in both coordinates.

    Parameters
    ----------
    simplex
        The density on the simplex, whose mode the paper searches; with common rows, the density in log ratios.
    log_ratio
        The density in log-ratio coordinates.
    rows, nested
        The rows annotators were found to have in common, and the nested approximation they come from; None where
        annotators were not pooled, or common rows were learnt otherwise.
    domain_prior
        What domains were found to have in common, under the mixed model; None where domains are not told apart.
    """

    simplex: LogPosterior
    log_ratio: LogPosterior
    rows: CommonRows | None = None
    nested: NestedMode | None = None
    domain_prior: DomainPrior | None = None

    @property
    def alpha_g(self) -> Floats:
        """Dirichlet prior of the weights: of the prevalence, under the paper's model."""
        return self.log_ratio.pseudo_g

    @property
    def beta_akv(self) -> Floats:
        """Dirichlet prior of every annotator's rows."""
        return self.log_ratio.pseudo_akv
