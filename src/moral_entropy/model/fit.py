"""Votes → Consensus: count copies once, find the mode, draw around it, and read off every item's probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import entr

from moral_entropy.errors import FitError
from moral_entropy.findings import sentences_of
from moral_entropy.model.consensus import (
    ANNOTATORS_AT_ONCE,
    Consensus,
    QuestionFit,
    Search,
    surely_below_chance,
    youden,
)
from moral_entropy.model.copies import Groups, count_once, find_copies, first_of, joined
from moral_entropy.model.draws import draw, summarise
from moral_entropy.model.findings import CATEGORIES
from moral_entropy.model.patterns import Patterns, collapse
from moral_entropy.model.posterior import Parameters, Posterior, score
from moral_entropy.model.priors import Priors
from moral_entropy.model.search import ROUGH, SAMPLE_PASSES, SAMPLE_VOTES, Optimum, answers_start, find_mode, maximise
from moral_entropy.model.states import States, between_labels
from moral_entropy.option_fields import lists_options
from moral_entropy.options import FitOptions
from moral_entropy.progress import Progress, share_of_progress
from moral_entropy.ties import labels_of, settle_halves
from moral_entropy.votes.layouts import merged_annotators
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

COMMON, OWN = 2.0, 0.0
"""Votes' weight with which rows are drawn to the common row, and the weight of their own prior. Of (1, 0) to (3, 0),
(2, 0.1), (3, 0.25), (3, 0.5), (3, 1) and (1, 1) these do best, by geometric mean, on twenty sets with gold as they are
and cut to two and three votes per item (seeds 0 to 3)."""

LEAST_SHARE, MOST_SHARE, THIN, UNKNOWN_VOTER = 0.3, 0.7, 1.5, 12.0
"""Weight of the vote share in p where the item is surely one label, where it lies between or the model contradicts the
share, and, over the number of its votes, at least: with one vote p is the share alone. And the votes of an annotator at
which half of the weight is the share's: of 5,000 simulated annotators with 3 votes each the model knows little."""

APART, DOUBT = 0.3, 0.4
"""Distance of the model from the share beyond which the share weighs more, and how much more per unit of distance: with
more, p could fall where the model's own probability rises. Both, and the weight of .7 at most, were chosen on nineteen
sets with gold, whole and cut to two and three votes (seeds 0 to 3), among some forty combinations that differ little.
Without them one set of three votes is 4.5 points below the vote, with them none more than 2.4."""

LEAST_LEVEL, FEWEST_ITEMS = 0.01, 5.0
"""A level of a scale that is the median of the votes on this share of the items, and on so many, is the label of half
as many at least: with few votes per rater the model knows only some levels (1, 5 and 9 of moralstrength_strength9)."""

MOST_RATES = 1 << 24
"""Most error rates (annotators × labels × labels) of one fit; a search holds some twenty arrays of this size."""

DRAWN_NUMBERS, ALL_DRAWN_NUMBERS, LEAST_DRAWS, MOST_NUMBERS = 1 << 24, 1 << 28, 100, 1 << 27
"""Most numbers in the draws of one fit and of all fits together, 128 megabytes and two gigabytes; draws at least, as
long as they have no more numbers than the last: one gigabyte."""

ITEM_COLUMNS = (
    "p_ik", "posterior_ik", "model_ik", "share_weight_i", "low_i", "high_i", "epistemic_i", "interior_i", "ambiguity_i"
)  # fmt: skip
"""What `read_off` computes of every item: fields of a `QuestionFit`."""

ItemPrior = tuple[Floats, Floats | float]
"""Label probabilities of items from elsewhere, `t_ik`, and the votes that they are worth, for all or item by item."""

ItemPriors = Mapping[str, ItemPrior]
"""The same by question."""


@lists_options(FitOptions)
def fit(
    votes: Votes | Any,
    options: FitOptions | None = None,
    *,
    priors: Priors | None = None,
    item_priors: ItemPriors | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Consensus:
    """Fit the Bayesian consensus to votes: its mode, and draws from the Laplace approximation there.

    Parameters
    ----------
    votes
        What was voted: `Votes`, or a file or dataframe that `read_votes` reads without being told how.
    options
        All options as one object; keywords change some of them.
    priors
        Flat prevalence and the paper's confusion rows (1.8 right, 1.2 wrong) by default.
    item_priors
        By question, label probabilities of its items from elsewhere, and the number of votes that they are worth; with
        0 votes the fit is the same to the bit.
    progress
        Called with the name of a stage and the share of it done.
    **changes
        Options by name.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes, draws=200)
    >>> consensus.converged
    True
    """
    options, priors = (options or FitOptions()).changed(changes, "fit"), priors or Priors()
    votes = votes if isinstance(votes, Votes) else read_votes(votes)
    n_ballots, item_priors = len(votes.ballots), item_priors or {}
    fits = tuple(
        fit_ballot(votes, ballot, priors, options, item_priors.get(ballot.question),
                   share_of_progress(progress, b, n_ballots))
        for b, ballot in enumerate(votes.ballots)
    )  # fmt: skip
    consensus = Consensus(votes, fits, priors, options)
    for finding in consensus.findings:
        if finding.is_warning and finding.metric in CATEGORIES:
            warnings.warn(sentences_of(finding, ()), CATEGORIES[finding.metric], stacklevel=2)
    return consensus


def refit(
    consensus: Consensus,
    *,
    votes: Votes | None = None,
    priors: Priors | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Consensus:
    """Fit again with the votes, priors and options of an earlier fit, except for what is named.

    Parameters
    ----------
    consensus
        The earlier fit.
    votes, priors
        Other votes, other priors; those of the earlier fit when not given.
    progress
        As in `fit`.
    **changes
        Options of `fit` that should differ from the earlier ones.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes
    >>> refit(fit(votes, draws=200, seed=3), draws=0).options.seed
    3
    """
    if votes is None and any(fit.item_prior for fit in consensus.fits):
        changes = {"item_priors": {fit.question: fit.item_prior for fit in consensus.fits if fit.item_prior}} | changes
    priors, votes = priors or consensus.priors, votes or consensus.votes
    return fit(votes, consensus.options, priors=priors, progress=progress, **changes)


def fit_ballot(
    votes: Votes, ballot: Ballot, priors: Priors, options: FitOptions, item_prior: ItemPrior | None, advance: Progress
) -> QuestionFit:
    """Fit one ballot."""
    n_draws = affordable_draws(ballot, options.draws, len(votes.ballots))
    texts = None if item_prior is None or not np.any(item_prior[1]) else _worth(ballot, *item_prior)
    domains_from = votes if options.by_domain else None
    cast = collapse(ballot, use_gold=options.use_gold, domains_from=domains_from, whole=texts is not None)
    groups = with_named(find_copies(cast) if options.mixed else [], votes, ballot, options)
    patterns = count_once(cast, groups) if groups else cast
    posterior = log_posterior(votes, ballot, patterns, priors, options)
    fitted = fit_parameters(posterior, ballot, groups, n_draws, options, advance)
    items: dict[str, Any] = read_off(
        ballot, patterns, posterior.states, fitted["mode"], fitted["drawn"], options, texts, advance
    )
    return QuestionFit(ballot=ballot, patterns=patterns, options=options, item_prior=item_prior, **fitted, **items)


def fit_parameters(
    posterior: Posterior, ballot: Ballot, groups: Groups, n_draws: int, options: FitOptions, advance: Progress
) -> dict[str, Any]:
    """Find the mode of a log posterior, and draw around it: what a `QuestionFit` holds besides its items.

    Annotators who were counted with others get the confusion rows of the one who stands for them.
    """
    if options.solver == "adam":
        optimum, second = _adam(posterior, options, advance), None
        modes = {"adam": optimum.objective}
    else:
        # From a derivative of about a thousand standard errors down to the tolerance is the whole way, in logs.
        optimum, second, modes = find_mode(
            posterior,
            all_starts=not options.mixed,
            watch=lambda steepness: advance("searching", min(max((3.0 - np.log10(steepness)) / 12.0, 0.0), 1.0)),
        )
    curvature, samples, log_density_s = draw(posterior, optimum, ballot, n_draws, options.seed)
    search = Search(options.solver, optimum.objective, optimum.steepness, optimum.passes, optimum.converged, modes)
    mode, below_a = optimum.at, below_guessing(posterior, samples, ballot.votes_a)
    if groups:
        first_a = first_of(groups, ballot.n_annotators)
        mode, below_a = mode._replace(confusion_akv=mode.confusion_akv[first_a]), below_a[first_a]
        samples = samples._replace(confusion_akv=samples.confusion_akv[:, first_a])
    return {
        "states": posterior.states, "mode": mode, "drawn": samples, "log_density_s": log_density_s,
        "pseudo": posterior.pseudo_counts(optimum.counts), "search": search, "curvature": curvature,
        "second_mode": second, "below_a": below_a, "counted_groups": groups,
    }  # fmt: skip


def below_guessing(posterior: Posterior, samples: Parameters, votes_a: Ints) -> Floats:
    """Return every annotator's probability of a Youden index below 0, under two modes in the default model.

    Where it is nearly 1, a second search begins with these annotators' answers. If it ends where they do better than
    guessing, and those who then do worse gave no more votes, the votes cannot tell who is wrong: it is a half.
    """
    below_a = np.full(len(votes_a), np.nan)
    for start in range(0, len(votes_a) if len(samples.weight_dg) else 0, ANNOTATORS_AT_ONCE):
        chunk = slice(start, start + ANNOTATORS_AT_ONCE)
        below_a[chunk] = (youden(samples.confusion_akv[:, chunk]) < 0).mean(axis=0)
    sure_a = np.flatnonzero(surely_below_chance(below_a, votes_a))
    if len(sure_a) and posterior.common:
        sample = posterior.sample(SAMPLE_VOTES)
        second = maximise(sample, answers_start(sample, sure_a), tolerance=ROUGH, max_passes=SAMPLE_PASSES)
        above_a = youden(second.at.confusion_akv) >= 0.0
        if votes_a[~above_a].sum() <= votes_a[sure_a].sum():
            below_a[sure_a[above_a[sure_a]]] = 0.5
    return below_a


def log_posterior(votes: Votes, ballot: Ballot, patterns: Patterns, priors: Priors, options: FitOptions) -> Posterior:
    """Return the log posterior of a ballot: of the default model, or of the paper's, the labels alone."""
    beta_akv, alpha_k = priors.beta_akv(ballot, votes, mixed=options.mixed), priors.alpha_k(ballot)
    if not options.mixed:
        return Posterior(patterns, States(ballot.n_labels), alpha_k - 1.0, beta_akv - 1.0, threads=options.threads)
    ordered = ballot.levels is not None
    states, row_kv = between_labels(ballot.n_labels, ordered=ordered), priors.row_kv(ballot, mixed=True)
    pseudo_g = states.size_g.copy()
    pseudo_g[: ballot.n_labels] = alpha_k
    # What is known of an annotator from elsewhere counts in full.
    own_akv = OWN * row_kv + (beta_akv - row_kv)
    return Posterior(patterns, states, pseudo_g, own_akv, COMMON, 2.0 * row_kv, threads=options.threads, graded=ordered)


def _worth(ballot: Ballot, prior_ik: Floats, votes: Floats | float) -> tuple[Floats, Floats]:
    """Return items' own priors with their worth in votes, `t_ik` and `worth_i1`; 0 where NaN."""
    if prior_ik.shape != (ballot.n_items, ballot.n_labels):
        msg = (
            f"the item prior of {ballot.question!r} has the shape {prior_ik.shape}; there are {ballot.n_items:,} items "
            f"and {ballot.n_labels} labels."
        )
        raise FitError(msg)
    finite_i1 = np.isfinite(prior_ik).all(axis=1, keepdims=True)
    worth_i1 = np.where(finite_i1, np.asarray(votes, dtype=np.float64).reshape(-1, 1), 0.0)
    return np.where(finite_i1, np.maximum(prior_ik, 1e-6), base_rates(ballot)), worth_i1


def base_rates(ballot: Ballot) -> Floats:
    """Return the share of every label among all votes, half a vote added to each."""
    votes_k = ballot.votes_k + 0.5
    return np.asarray(votes_k / votes_k.sum())


def with_named(groups: Groups, votes: Votes, ballot: Ballot, options: FitOptions) -> Groups:
    """Return who counts as one: those found in the votes, and those whom the user names."""
    if not options.merge:
        return groups
    named_a = merged_annotators(options.merge, votes.annotators)[ballot.annotator_a]
    _, first, group_a = np.unique(named_a, return_index=True, return_inverse=True)
    every_a = np.arange(ballot.n_annotators)
    return joined([(every_a, first_of(groups, len(every_a))), (every_a, first[group_a])], len(every_a))


def _adam(posterior: Posterior, options: FitOptions, advance: Progress) -> Optimum:
    """Take the paper's steps, in single precision as there, and measure the steepness where they end."""
    from moral_entropy.torch import RATE, DawidSkene, torch

    patterns = posterior.patterns
    if (patterns.clamp_r != UNKNOWN).any():
        msg = "the solver adam knows no labels as evidence. Leave out --gold-as-evidence, or use --solver em."
        raise FitError(msg)
    alpha, conf_alpha = posterior.pseudo_g + 1.0, posterior.pseudo_akv + 1.0
    generator = torch.Generator().manual_seed(options.seed)
    model = DawidSkene(patterns.n_annotators, patterns.n_labels, alpha, conf_alpha, generator)
    flat_ids, offsets = (torch.as_tensor(part.astype(np.int64)) for part in (patterns.code_v, patterns.start_r[:-1]))
    weights = torch.as_tensor(patterns.weight_r, dtype=torch.float32)
    model.fit(
        flat_ids, offsets, options.steps, weights=weights, advance=lambda share: advance("searching", share)
    ).double()
    prevalence_k, confusion_akv = (model.posterior(logits).detach().numpy() for logits in model.parameters())
    optimum = maximise(posterior, Parameters(prevalence_k[None], confusion_akv), max_passes=1)
    return optimum._replace(passes=options.steps, converged=optimum.steepness < RATE)


def read_off(
    ballot: Ballot,
    patterns: Patterns,
    states: States,
    at: Parameters,
    samples: Parameters,
    options: FitOptions,
    texts: tuple[Floats, Floats] | None,
    advance: Progress,
) -> dict[str, Floats]:
    """Compute every item's probabilities, published and the model's own, with interval and parts of the entropy."""
    mode_rk, interior_r, ambiguity_r = score(patterns, states, at, options.threads)
    settle_halves(mode_rk)
    pool_r, share_rk = np.zeros(patterns.n_rows), np.zeros((patterns.n_rows, ballot.n_labels))
    if options.mixed:
        votes_r, unknown_a = np.diff(patterns.start_r), np.asarray(UNKNOWN_VOTER / (UNKNOWN_VOTER + ballot.votes_a))
        unknown_r = unknown_voters(patterns, unknown_a) if unknown_a.max(initial=0.0) > LEAST_SHARE else 0.0
        share_rk = (patterns.counts_rk + base_rates(ballot)) / (votes_r[:, None] + 1.0)
        pool_r = share_weight(mode_rk, share_rk, interior_r, votes_r, unknown_r)
        if ballot.levels is not None:
            pool_r = keep_levels(mode_rk, pool_r, share_rk, patterns)
        pool_r[patterns.clamp_r != UNKNOWN] = 0.0
    votes_rk = _pooled(mode_rk, pool_r, share_rk)
    if texts is not None:
        pool_r, share_rk = _with_texts(pool_r, share_rk, patterns, *texts)
    p_rk = _pooled(mode_rk, pool_r, share_rk)
    low_r, high_r, epistemic_r = np.full((3, patterns.n_rows), np.nan)
    model_rk = mode_rk
    if len(samples.weight_dg):
        about_r = _about(ballot, p_rk)
        settings: dict[str, Any] = {"interval": options.interval, "threads": options.threads}
        settings["advance"] = lambda share: advance("drawing", share)
        pools: dict[str, Any] = {"pool_r": pool_r, "share_rk": share_rk, "about_r": about_r}
        mean_rk, low_r, high_r, entropy_r = summarise(patterns, states, samples, **pools, **settings)
        epistemic_r = np.maximum(entr(mean_rk).sum(axis=1) - entropy_r, 0.0)
        if not options.mixed:
            # The paper's p is the mean over draws, whose likeliest label may not be the mode's.
            votes_rk = model_rk = settle_halves(mean_rk)
            p_rk = _pooled(model_rk, pool_r, share_rk)
            before_r, about_r = about_r, _about(ballot, p_rk)
            moved = np.flatnonzero(about_r != before_r)
            if len(moved):
                pools = {"pool_r": pool_r[moved], "share_rk": share_rk[moved], "about_r": about_r[moved]}
                _, low_r[moved], high_r[moved], _ = summarise(
                    patterns.take(moved), states, samples, **pools, **settings
                )
        p_r = p_rk[np.arange(patterns.n_rows), about_r]
        # Where p is the share alone no draw moves it, which does not make it certain.
        low_r, high_r = np.where(pool_r < 1.0, (np.minimum(low_r, p_r), np.maximum(high_r, p_r)), np.nan)
    columns = (p_rk, mode_rk, model_rk, pool_r, low_r, high_r, epistemic_r, interior_r, ambiguity_r)
    items = {name: patterns.spread(column) for name, column in zip(ITEM_COLUMNS, columns, strict=True)}
    return items if texts is None else items | {"p_votes_ik": votes_rk}


def _about(ballot: Ballot, p_rk: Floats) -> Ints:
    """Return the label that each row's interval is about: the positive one of two, else the published one."""
    if ballot.n_labels == 2:
        return np.full(len(p_rk), ballot.positive)
    return labels_of(p_rk, ballot.positive, ordered=ballot.levels is not None)


def keep_levels(mode_rk: Floats, pool_r: Floats, share_rk: Floats, patterns: Patterns) -> Floats:
    """Raise the weight of the vote share on items of levels that would vanish, as little as needed: `LEAST_LEVEL`."""
    half_r1 = np.diff(patterns.start_r)[:, None] / 2.0
    upto_rk = np.cumsum(patterns.counts_rk, axis=1)
    # Of an even number of votes both medians, so that a scale turned round has the same.
    medians = (upto_rk >= half_r1).argmax(axis=1), (upto_rk > half_r1).argmax(axis=1)

    def items_of(label_r: Ints) -> Floats:
        return np.bincount(label_r, weights=patterns.weight_r, minlength=mode_rk.shape[1]).astype(np.float64)

    voted_k = (items_of(medians[0]) + items_of(medians[1])) / 2.0
    voted_k[voted_k < max(FEWEST_ITEMS, LEAST_LEVEL * float(voted_k.sum()))] = 0.0
    for weight in np.linspace(LEAST_SHARE, 1.0, 8):
        vanishing_k = items_of(labels_of(_pooled(mode_rk, pool_r, share_rk), None, ordered=True)) < voted_k / 2.0
        if not vanishing_k.any():
            break
        at_risk_r = vanishing_k[medians[0]] | vanishing_k[medians[1]]
        pool_r = np.where(at_risk_r, np.maximum(pool_r, weight), pool_r)
    return pool_r


def _pooled(model_rk: Floats, pool_r: Floats, share_rk: Floats) -> Floats:
    return settle_halves((1.0 - pool_r[:, None]) * model_rk + pool_r[:, None] * share_rk)


def _with_texts(
    pool_r: Floats, share_rk: Floats, patterns: Patterns, prior_rk: Floats, worth_r1: Floats
) -> tuple[Floats, Floats]:
    """Pool p with items' own priors, in proportion to votes: ((n + 1) p + s t) / (n + 1 + s).

    Returns the weight and the share that lead to it where the model's probabilities are pooled with them.
    """
    n_r = np.diff(patterns.start_r) + 1.0
    rest_r = n_r / (n_r + np.where(patterns.clamp_r != UNKNOWN, 0.0, worth_r1[:, 0]))
    weight_r = 1.0 - rest_r * (1.0 - pool_r)
    pooled_rk = (rest_r * pool_r)[:, None] * share_rk + (1.0 - rest_r)[:, None] * prior_rk
    return weight_r, pooled_rk / np.maximum(weight_r, 1e-300)[:, None]


def share_weight(
    model_ik: Floats, share_ik: Floats, interior_i: Floats, votes_i: Floats, unknown_i: Floats | float
) -> Floats:
    """Compute the weight of the vote share in p.

    It grows with the mass between labels, with the distance of the model from the share, and where votes are few or
    their voters hardly known.

    Examples
    --------
    >>> model_ik = np.array([[0.1, 0.9], [0.1, 0.9], [0.0, 1.0]])
    >>> share_ik = np.array([[0.2, 0.8], [0.2, 0.8], [0.8, 0.2]])
    >>> share_weight(model_ik, share_ik, np.array([0.0, 0.2, 0.0]), np.array([9, 9, 9]), 0.1)
    array([0.3, 0.5, 0.5])
    >>> share_weight(model_ik, share_ik, np.zeros(3), np.array([1, 2, 3]), 0.1)
    array([1.  , 0.75, 0.5 ])
    """
    apart_i = 0.5 * np.abs(model_ik - share_ik).sum(axis=1)
    weight_i = np.minimum(MOST_SHARE, LEAST_SHARE + interior_i + DOUBT * np.maximum(apart_i - APART, 0.0))
    weight_i = np.maximum(np.maximum(weight_i, unknown_i), THIN / np.maximum(votes_i, 1.0))
    return np.asarray(np.minimum(1.0, weight_i))


def unknown_voters(patterns: Patterns, unknown_a: Floats) -> Floats:
    """Return how little is known of those who voted on each row, on average: 1 of nobody's other votes, 0 of many."""
    unknown_r = np.zeros(patterns.n_rows)
    for rows in patterns.chunks():
        start_r = patterns.start_r[rows.start : rows.stop + 1]
        code_v, votes_r = patterns.code_v[start_r[0] : start_r[-1]], np.diff(start_r)
        row_v = np.repeat(np.arange(len(votes_r)), votes_r)
        sum_r = np.bincount(row_v, weights=unknown_a[code_v // patterns.n_labels], minlength=len(votes_r))
        unknown_r[rows] = sum_r / np.maximum(votes_r, 1)
    return unknown_r


def affordable_draws(ballot: Ballot, n_draws: int, n_fits: int = 1) -> int:
    """Return how many of the draws asked for can be held; refuse a fit that is too large.

    Parameters
    ----------
    ballot
        What is fitted: its annotators and labels decide.
    n_draws
        The draws asked for.
    n_fits
        Fits whose draws are held at the same time.
    """
    n_rates = ballot.n_annotators * ballot.n_labels**2
    shape = f"{ballot.n_labels:,} labels and {ballot.n_annotators:,} annotators"
    size = f"{ballot.question}: {shape} make {n_rates:,} error rates"
    if n_rates > MOST_RATES:
        msg = f"{size}; {MOST_RATES:,} are as many as can be fitted. Instead merge rare labels."
        raise FitError(msg)
    room = min(MOST_NUMBERS, ALL_DRAWN_NUMBERS // n_fits) // n_rates
    n_most = max(min(DRAWN_NUMBERS // n_rates, room), min(LEAST_DRAWS, room))
    if n_draws > n_most < LEAST_DRAWS:
        gigabytes = 8e-9 * n_rates * n_draws
        msg = (
            f"{size}; {n_draws:,} draws of them would take {gigabytes:.3g} GB, and there is room for {n_most:,}. Use "
            "--draws 0 for the best answer without intervals, or merge rare labels."
        )
        raise FitError(msg)
    return min(n_draws, n_most)
