"""Judged: a part together with what the fit says of its items, as a worker holds it once the parameters are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from moral_entropy.cluster.fit import Found, fit_of_part
from moral_entropy.cluster.parts import OwnRows, Part
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus
from moral_entropy.entropy.parts import EntropyParts, decompose_entropy
from moral_entropy.pipeline.frames import item_frames, posterior_frames
from moral_entropy.pipeline.vote_frames import text_frames, vote_frames
from moral_entropy.votes.table import Floats


@dataclass(frozen=True, eq=False)
class Judged:
    """Some items with their votes and what the consensus says of them.

    Parameters
    ----------
    consensus
        On the items of a part.
    own
        By ballot, the rows the part answers for.
    """

    consensus: Consensus
    own: tuple[OwnRows, ...]

    @cached_property
    def parts(self) -> EntropyParts:
        """The entropies of the items, of all fits one below the other."""
        return decompose_entropy(self.consensus)

    def only(self, b: int) -> Judged:
        """Keep one ballot."""
        fit, votes = self.consensus.fits[b], self.consensus.votes
        return Judged(replace(self.consensus, votes=replace(votes, ballots=(fit.ballot,)), fits=(fit,)), (self.own[b],))


def judge_part(part: Part, priors: Priors, settings: FitOptions, *found: Found) -> Judged:
    """Work out what the fits say of one part's items."""
    fits = tuple(fit_of_part(part, b, one, settings) for b, one in enumerate(found))
    return Judged(Consensus(part.votes, fits, priors, settings), part.own)


def items_frame(judged: Judged, b: int) -> pl.DataFrame:
    """Give the rows of items.parquet of one ballot."""
    one = judged.only(b)
    return _joined(list(item_frames(one.consensus, one.parts)))


def posterior_frame(judged: Judged, b: int) -> pl.DataFrame:
    """Give the rows of posterior.parquet of one ballot."""
    return _joined(list(posterior_frames(judged.only(b).consensus)))


def votes_frame(judged: Judged, b: int) -> pl.DataFrame:
    """Give the rows of votes.parquet of one ballot."""
    return _joined(list(vote_frames(judged.only(b).consensus.votes)))


def texts_frame(judged: Judged) -> pl.DataFrame:
    """Give the rows of texts.parquet."""
    return _joined(list(text_frames(judged.consensus.votes)))


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames) if frames else pl.DataFrame()


def entropy_sums(judged: Judged) -> tuple[Floats, ...]:
    """Add up the entropies of every fit by domain: `sum_df`, the last row for items of no domain.

    Columns: rows, items, total, aleatoric, epistemic, and items of more than half of the entropy there can be.
    """
    votes, parts, first, sums = judged.consensus.votes, judged.parts, 0, []
    for fit in judged.consensus.fits:
        rows = slice(first, first + fit.ballot.n_items)
        first += fit.ballot.n_items
        weight_i, domain_i = fit.ballot.count_i, votes.domain_i[fit.ballot.item_i]
        half = np.log(fit.ballot.n_labels) / 2
        values = (
            1.0,
            parts.total_i[rows],
            parts.aleatoric_i[rows],
            parts.epistemic_i[rows],
            parts.total_i[rows] > half,
        )
        place_i, n_places = domain_i % (len(votes.domains) + 1), len(votes.domains) + 1
        columns = [np.bincount(place_i, minlength=n_places)]
        columns += [np.bincount(place_i, weights=weight_i * value, minlength=n_places) for value in values]
        sums.append(np.column_stack(columns).astype(np.float64))
    return tuple(sums)
