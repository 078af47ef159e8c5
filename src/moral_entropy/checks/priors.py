"""Do other assumptions say the same? The same votes under a grid of priors and poolings.

Takes a `Consensus`, refits its votes under priors that all look reasonable; returns a tidy frame of prevalence,
entropies and each rule's error rates, and findings on how far they range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from moral_entropy.consensus.entropy import decompose_entropy
from moral_entropy.consensus.fit import refit
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.options import POOLING, FitOptions
from moral_entropy.consensus.priors import PAPER_OFF_DIAGONAL, Priors
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.errors import FitError
from moral_entropy.findings import Finding, without_warnings
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.table import audit_rules
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Votes

if TYPE_CHECKING:
    import polars as pl

SIDE = "priors"

ALPHAS: dict[str, float | tuple[float, ...]] = {"flat": 1.0, "80,20": (80.0, 20.0), "500,500": 500.0}
"""Prevalence priors of the grid: the default, and the two of the paper's companion work."""

ROWS = ((1.0, 1.0), (1.8, 1.2), (3.0, 2.0), (6.0, 2.0), (4.0, 1.0), (20.0, 5.0))
"""Confusion priors of the grid: of the right answer, and of every wrong one."""

RULES = ("any", "majority")

REPORTED = "reported"

WIDE = 1.0
"""Logits over which a prevalence ranges, under other rows and poolings, from which the prior decides."""

ENTROPIES = {
    "paper": ("total", "aleatoric", "epistemic"),
    "mixed": ("total", "ambiguity", "votes", "annotators"),
}
"""Entropies of the grid, by model."""


@dataclass(frozen=True)
class PriorChoice:
    """One point of the grid.

    Parameters
    ----------
    prevalence, rows
        Names of the prevalence prior and of the confusion prior, such as "flat" and "1.8/1.2".
    pooling
        As in `fit`.
    priors
        The priors themselves.
    """

    prevalence: str
    rows: str
    pooling: str
    priors: Priors

    @property
    def name(self) -> str:
        """All three in one."""
        return f"{self.prevalence} · {self.rows} · {self.pooling}"


def star_of(consensus: Consensus) -> list[PriorChoice]:
    """Return the grid around the priors of a consensus: one thing changed at a time.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=60, n_annotators=4, votes_per_item=3).votes, draws=0)
    >>> len(star_of(consensus)), star_of(consensus)[3].name
    (11, 'reported · 1/1 · none')
    """
    own, pooling = consensus.priors, consensus.options.pooling
    own_rows = _name_of_rows(own)
    alphas = _alphas(consensus.votes).items()
    changed = [
        *(PriorChoice(name, own_rows, pooling, _with(own, alpha=alpha)) for name, alpha in alphas),
        *(PriorChoice(REPORTED, f"{d:g}/{o:g}", pooling, _with(own, rows=(d, o))) for d, o in ROWS),
        *(PriorChoice(REPORTED, own_rows, other, own) for other in _other_poolings(consensus.options)),
    ]
    return changed


def _other_poolings(options: FitOptions) -> Iterator[str]:
    """Name the poolings that go with the other options of a fit, its own left out."""
    for pooling in POOLING:
        if pooling != options.pooling:
            with suppress(FitError):
                yield replace(options, pooling=pooling).pooling


def cross_of(votes: Votes) -> list[PriorChoice]:
    """Return every prevalence prior with every confusion prior, and with the poolings of the paper's rows."""
    plain = Priors()
    paper = _name_of_rows(plain)
    choices = []
    for name, alpha in _alphas(votes).items():
        choices += [PriorChoice(name, f"{d:g}/{o:g}", "none", _with(plain, alpha, (d, o))) for d, o in ROWS]
        choices += [PriorChoice(name, paper, pooling, _with(plain, alpha)) for pooling in POOLING[1:]]
    return choices


def _name_of_rows(priors: Priors) -> str:
    """Name a confusion prior; under the mixed model the default has less of each of many wrong labels."""
    wrong = PAPER_OFF_DIAGONAL if priors.off_diagonal is None else priors.off_diagonal
    return f"{priors.diagonal:g}/{wrong:g}"


def _alphas(votes: Votes) -> dict[str, float | tuple[float, ...]]:
    two = all(ballot.n_labels == 2 for ballot in votes.ballots)
    return {name: alpha for name, alpha in ALPHAS.items() if two or not isinstance(alpha, tuple)}


def _with(
    priors: Priors, alpha: float | tuple[float, ...] | None = None, rows: tuple[float, float] | None = None
) -> Priors:
    if alpha is not None:
        priors = replace(priors, prevalence=alpha, by_question={})
    return priors if rows is None else replace(priors, diagonal=rows[0], off_diagonal=rows[1])


def prior_grid(
    consensus: Consensus,
    choices: Sequence[PriorChoice],
    *,
    rules: Sequence[str] = RULES,
    draws: int = 200,
    seed: int = 0,
    advance: Advance = ignore,
) -> pl.DataFrame:
    """Fit again under every prior, all other options as they were: one row per prior, question and figure.

    Parameters
    ----------
    consensus
        The fit whose votes and options are used.
    choices
        The priors.
    rules
        Rules whose error rates are wanted.
    draws, seed
        Of each fit.
    advance
        Called with the share done.

    Returns
    -------
    pl.DataFrame
        Columns prior, prevalence_prior, rows, pooling, question, part, figure, subject, value, low, high. Figures are
        prevalence (subject: the label), entropies (means over items, in nats; see `ENTROPIES`), fpr and fnr (subject:
        the rule). The ends are those of the fit's own interval, null for entropies.
    """
    import polars as pl

    frames = []
    for n, choice in enumerate(choices):
        # Thin data and other modes were said of the reported fit already.
        with without_warnings():
            other = refit(consensus, priors=choice.priors, pooling=choice.pooling, draws=draws, seed=seed)
        frames.append(figures_of(other, choice, rules=rules, seed=seed))
        advance((n + 1) / len(choices))
    return pl.concat(frames)


def figures_of(
    consensus: Consensus, choice: PriorChoice, *, rules: Sequence[str] = RULES, seed: int = 0
) -> pl.DataFrame:
    """Return the figures of one fit as rows of the grid.

    Parameters
    ----------
    consensus
        A fit with draws.
    choice
        What it was fitted under.
    rules, seed
        As in `prior_grid`.
    """
    import polars as pl

    rows = [row for one in consensus.fits for row in _fit_rows(one, consensus.interval)]
    names = ("question", "part", "figure", "subject", "value", "low", "high")
    figures = pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
    rates = _rates(consensus, rules, seed)
    told = (choice.name, choice.prevalence, choice.rows, choice.pooling)
    columns = zip(("prior", "prevalence_prior", "rows", "pooling"), told, strict=True)
    both = pl.concat([figures.cast({"low": pl.Float64, "high": pl.Float64}), rates])
    return both.select(*(pl.lit(value).alias(name) for name, value in columns), *names)


def _fit_rows(one: QuestionFit, interval: float) -> list[tuple[Any, ...]]:
    ballot, parts = one.ballot, decompose_entropy(one)
    tail = (1.0 - interval) / 2.0
    named = (ballot.question, ballot.part)
    rows: list[tuple[Any, ...]] = []
    for k in [ballot.positive] if ballot.n_labels == 2 else range(ballot.n_labels):
        low, high = np.quantile(one.prevalence_sk[:, k], [tail, 1.0 - tail]).tolist()
        rows.append((*named, "prevalence", ballot.labels[k], float(one.share_k[k]), low, high))
    for name in ENTROPIES[parts.model]:
        value = float(np.average(getattr(parts, f"{name}_i"), weights=ballot.count_i))
        rows.append((*named, name, "", value, None, None))
    return rows


def _rates(consensus: Consensus, rules: Sequence[str], seed: int) -> pl.DataFrame:
    import polars as pl

    graded = audit_rules(consensus.votes, consensus, rules=list(rules), reference="consensus", seed=seed).frame
    two = [ballot.question for ballot in consensus.votes.ballots if ballot.n_labels == 2]
    of_two = pl.col("question").is_in(two)
    wanted = graded.filter(
        pl.col("metric").is_in(["fpr", "fnr"]),
        pl.col("domain") == ALL,
        pl.col("label") != ALL,
        pl.col("question").is_in(list(consensus.votes.questions)),
    )
    # Of more than two labels a rule is graded on each.
    on_label = pl.concat_str("rule", pl.lit(" · "), "label")
    subject = pl.when(of_two).then(pl.col("rule")).otherwise(on_label).alias("subject")
    figure, part = pl.col("metric").alias("figure"), pl.lit("").alias("part")
    return wanted.select("question", part, figure, subject, "value", "low", "high")


def examine_priors(
    consensus: Consensus,
    *,
    rules: Sequence[str] = RULES,
    draws: int = 200,
    seed: int = 0,
    advance: Advance = ignore,
) -> list[Finding]:
    """Refit under other priors and poolings, and say how far prevalence, entropies and error rates range.

    Parameters
    ----------
    consensus
        The fit to examine.
    rules
        Rules whose error rates are wanted.
    draws, seed
        Of each fit.
    advance
        Called with the share done.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=1_000, n_annotators=6, votes_per_item=5).votes)
    >>> found = examine_priors(consensus, draws=50)
    >>> [finding.level for finding in found if finding.figure == "range_prevalence"]
    ['info']
    """
    grid = prior_grid(consensus, star_of(consensus), rules=rules, draws=draws, seed=seed, advance=advance)
    return grid_findings(consensus, grid)


def grid_findings(consensus: Consensus, grid: pl.DataFrame) -> list[Finding]:
    """Say how far every figure of a grid ranges, with a doubt where the prior decides the prevalence.

    The doubt looks at rows and poolings alone: a prior of a thousand pseudo-items must move the prevalence of a few.

    Parameters
    ----------
    consensus
        The fit that was reported.
    grid
        See `prior_grid`.
    """
    findings = []
    fit_of = {(one.question, one.ballot.part): one for one in consensus.fits}
    first_of = {one.question: one for one in reversed(consensus.fits)}
    keys = ("question", "part", "figure", "subject")
    for (question, part, figure, subject), some in grid.group_by(keys, maintain_order=True):
        one = fit_of.get((str(question), str(part)), first_of[str(question)])
        value = some["value"].drop_nulls().drop_nans().to_numpy()
        if len(value):
            low, high = float(value.min()), float(value.max())
            words = _range_words(one, some, str(subject)) if figure == "prevalence" else {}
            findings.append(
                finding_of(one, SIDE, f"range_{figure}", high - low, subject=str(subject), low=low, high=high,
                           n=len(value), **words)
            )  # fmt: skip
    return findings


def _range_words(one: QuestionFit, some: pl.DataFrame, label: str) -> dict[str, Any]:
    """Say between which priors a prevalence ranges, and what that means where it is too far."""
    import polars as pl

    by_rows = some.filter(pl.col("prevalence_prior") == REPORTED)
    by_rows = by_rows if len(by_rows) else some
    ends = by_rows.sort(pl.col("value").round(DECIMALS), maintain_order=True).select("prior", "value").rows()
    (least, low), (most, high) = ends[0], ends[-1]
    reported = float(one.share_k[one.ballot.labels.index(label)])
    text = (
        f"under {len(by_rows)} other priors of the annotators the share of {label!r} is between {low:.1%} ({least}) "
        f"and {high:.1%} ({most}); reported {reported:.1%}."
    )
    if np.ptp(logit(np.clip([low, high], 1e-9, 1 - 1e-9))) <= WIDE:
        return {"text": text}
    return {
        "level": "doubt",
        "text": text,
        "meaning": "Too few votes to decide: the default assumption (the prior) decides.",
        "cure": "State a prior you can defend (--prior-prevalence, --prior-confusion), and report the range.",
    }
