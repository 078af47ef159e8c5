"""Votes in parts → one consensus: the climb and the draws here, every pass over the votes with the workers.

`fit_votes` is `fit` for votes at hand, `fit_parts` for votes nobody has whole. Either gives what one machine gives, up
to rounding: the same starts, the same steps, the same random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.exponent import choose_spread_exponent
from moral_entropy.cluster.parts import Part, cut_votes, likelihood_of, make_part, pool_part
from moral_entropy.cluster.posterior import SpreadLogPosterior, no_rows, size_of
from moral_entropy.cluster.rows import agree_on_rows
from moral_entropy.consensus.drawing import draw
from moral_entropy.consensus.fit import as_climb, find_best_mode, for_all, share_of_progress, summary_of
from moral_entropy.consensus.ground import Ground
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.modes import Rival
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.pooling import pooled_prior
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, DrawSummary, QuestionFit
from moral_entropy.consensus.temper import tempered
from moral_entropy.consensus.warn import warn_about_fit
from moral_entropy.errors import UsageError
from moral_entropy.progress import Progress, silent
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import Ballot, Floats, Votes

if TYPE_CHECKING:
    from distributed import Client, Future

VOTES_A_PART = 400_000
"""Votes that travel to a worker as one part: few enough bytes for one task."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a fit says of the parameters of one ballot, and nothing of its items.

    Parameters
    ----------
    at, drawn
        Parameters at the mode, and draws of them; one matrix where it was fitted for all.
    rest
        What else a `QuestionFit` knows of them, by name of its field.
    rival
        The highest mode that is not the best one.
    """

    at: Parameters
    drawn: Parameters
    rest: Mapping[str, Any]
    rival: Rival | None

    @property
    def power(self) -> float:
        """The exponent on each item's likelihood."""
        return float(self.rest["exponent"].value)

    def of_items(self, ballot: Ballot, patterns: Patterns, posterior_ik: Floats, summary: DrawSummary) -> QuestionFit:
        """Complete it with what follows for some items."""
        at, drawn = for_all(self.at, ballot), for_all(self.drawn, ballot)
        return QuestionFit(
            ballot=ballot,
            patterns=patterns,
            prevalence_k=at.prevalence_k,
            confusion_akv=at.confusion_akv,
            posterior_ik=posterior_ik,
            prevalence_sk=drawn.prevalence_k,
            confusion_sakv=drawn.confusion_akv,
            summary=summary,
            **{**self.rest, "beta_akv": np.broadcast_to(self.rest["beta_akv"], at.confusion_akv.shape)},
        )


def fit_votes(
    votes: Votes, client: Client, *, priors: Priors | None = None, n_parts: int | None = None, **options: Any
) -> Consensus:
    """Fit the consensus to votes at hand, with the workers of a Dask cluster.

    Parameters
    ----------
    votes
        What was voted.
    client
        A connected Dask client.
    priors
        As in `fit`.
    n_parts
        Parts to cut the items into; by default as many as tasks can run at once, and more of very many votes.
    options
        All others of `fit`. Adam and partial pooling need one machine.
    """
    return fit_with(Crew(client), votes, priors or Priors(), n_parts=n_parts, **options)


def fit_with(
    crew: Crew,
    votes: Votes,
    priors: Priors,
    *,
    n_parts: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Consensus:
    """Fit the consensus to votes at hand, with a crew: see `fit_votes`."""
    settings = checked_settings(**options)
    wanted = n_parts or max(crew.n_threads, -(-votes.n_votes // VOTES_A_PART))
    # Texts stay here: a fit has no use for them.
    bare = replace(votes, texts=None, extra={})
    parts = [crew.ask(make_part, cut, settings.use_gold) for cut in cut_votes(bare, wanted)]
    parts = agree_on_rows(crew, parts)
    fits = []
    for b, found in enumerate(fit_parts(crew, parts, votes, priors, settings, progress)):
        ballot = votes.ballots[b]
        patterns = collapse(ballot, use_gold=settings.use_gold)
        made = list(crew.in_order(items_of_part, parts, b, send_found(crew, found), settings))
        posterior_ik, *columns = (np.concatenate(column) for column in zip(*made, strict=True))
        fits.append(found.of_items(ballot, patterns, posterior_ik, DrawSummary(*columns)))
        warn_about_fit(fits[-1], votes, found.rival)
    return Consensus(votes, tuple(fits), priors, settings)


def checked_settings(**options: Any) -> FitOptions:
    """Give the settings, or say which of them a cluster does not know."""
    settings = FitOptions(**options)
    refused = {
        "solver='adam'": settings.solver == "adam",
        f"pooling={settings.pooling!r}": settings.pooling == "partial",
    }
    for what, is_asked in refused.items():
        if is_asked:
            msg = f"{what} needs one machine. Leave it out, or fit without a cluster."
            raise UsageError(msg)
    return settings


def fit_parts(
    crew: Crew,
    parts: Sequence[Future[Any]],
    votes: Votes,
    priors: Priors,
    settings: FitOptions,
    progress: Progress | None = None,
) -> list[Found]:
    """Find the mode of every ballot, and draw around it.

    Parameters
    ----------
    crew, parts
        Who holds the votes, and the parts they hold.
    votes
        Votes with the same questions, labels and annotators; its items are not looked at.
    priors, settings
        As in `fit`.
    progress
        Called with the name of a stage and the share of it done.
    """
    found = []
    if settings.pooling == "full":
        parts = crew.each(pool_part, parts)
    for b, ballot in enumerate(votes.ballots):
        advance = share_of_progress(progress, b, len(votes.ballots))
        found.append(_fit_ballot(crew, parts, b, votes, ballot, priors, settings, advance))
    return found


def _fit_ballot(
    crew: Crew,
    parts: Sequence[Future[Any]],
    b: int,
    votes: Votes,
    ballot: Ballot,
    priors: Priors,
    settings: FitOptions,
    advance: Progress,
) -> Found:
    alpha_k, beta_akv = priors.alpha_k(ballot), priors.beta_akv(ballot, votes)
    if settings.pooling == "full":
        beta_akv = pooled_prior(priors.row_kv(ballot), beta_akv)
    simplex = SpreadLogPosterior(
        no_rows(ballot, len(beta_akv)),
        alpha_k - 1.0,
        beta_akv - 1.0,
        settings.threads,
        settings.better_than_chance,
        crew=crew,
        parts=parts,
        b=b,
        sizes=crew.fetch_all(crew.each(size_of, parts, b)),
    )
    ground = Ground(simplex, replace(simplex, pseudo_k=alpha_k, pseudo_akv=beta_akv))
    mode = find_best_mode(simplex, settings, advance)
    curvature, drawn, log_density_s = draw(ground, mode.summit.at, ballot, settings)
    rest = {
        "climb": as_climb(mode, settings.solver),
        "curvature": curvature,
        "alpha_k": alpha_k,
        "beta_akv": beta_akv,
        "exponent": choose_spread_exponent(simplex, mode.summit.at, ballot, settings.temper),
        "log_density_s": log_density_s,
        "options": settings,
    }
    return Found(mode.summit.at, drawn, rest, mode.rival)


def send_found(crew: Crew, found: Found) -> Any:
    """Make what was found known to the workers; the draws in pieces, as they can be large."""
    drawn = found.drawn
    no_draws = Parameters(drawn.log_prevalence_k, drawn.log_confusion_akv[:0])
    return crew.ask(_with_draws, replace(found, drawn=no_draws), crew.send(drawn.log_confusion_akv))


def _with_draws(found: Found, log_confusion_sakv: Floats) -> Found:
    return replace(found, drawn=Parameters(found.drawn.log_prevalence_k, log_confusion_sakv))


def fit_of_part(part: Part, b: int, found: Found, settings: FitOptions) -> QuestionFit:
    """Give what the fit of a ballot says of one part's items."""
    ballot, patterns, power = part.votes.ballots[b], part.patterns[b], found.power
    at, drawn = (tempered(for_all(one, ballot), power) for one in (found.at, found.drawn))
    posterior_ik = patterns.spread(settle_halves(likelihood_of(patterns).posterior_rk(at)))
    single = replace(settings, threads=1)
    summary = summary_of(patterns, drawn, posterior_ik, ballot, single, silent)
    return found.of_items(ballot, patterns, posterior_ik, summary)


def items_of_part(part: Part, b: int, found: Found, settings: FitOptions) -> tuple[Floats, ...]:
    """Give the same as plain arrays, an entry an item."""
    fit = fit_of_part(part, b, found, settings)
    summary = fit.summary
    return fit.posterior_ik, summary.mean_ik, summary.low_i, summary.high_i, summary.expected_entropy_i
