"""A run, and models of others → how their probabilities differ from the consensus, and who is closer to known answers.

A model is a function of one question's votes (a `Ballot`) that returns one row of label probabilities per item. It is
told no gold. docs/adr/0021 says why it is no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.errors import MoralEntropyError, PluginError, UsageError
from moral_entropy.judges.known import KnownItems, known_items
from moral_entropy.options import did_you_mean
from moral_entropy.plugins import MODELS, failed, load_plugin, plugin_names
from moral_entropy.runs.reload import read_run_votes
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import TIE, labels_of, settle_halves
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

Model = Callable[[Ballot], Any]

CONSENSUS, SHARE = "consensus", "vote share"
LEAST = 1e-6
"""Log loss holds no probability below this, lest one sure error make it infinite."""

ROUNDING = 1e-6
"""How far a row of probabilities may be from summing to 1."""

FIGURES = ("changed", "moved", "accuracy", "log_loss", "gain", "gain_low", "gain_high")
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("question", "model"), pl.String()),
        **dict.fromkeys(("n", "n_known"), pl.Int64()),
        **dict.fromkeys(FIGURES, pl.Float64()),
    }
)


@dataclass(frozen=True, eq=False)
class ModelTable:
    """Models beside the consensus.

    Parameters
    ----------
    frame
        One row per question and model, the consensus and the smoothed vote share first: n and n_known (items, and those
        whose answer is known); changed (share of items labelled otherwise than by the consensus); moved (mean total
        variation from its probabilities); accuracy and log_loss (nats) against known answers; gain (log loss of the
        consensus less the model's: above 0 the model is better) with gain_low and gain_high.
    notes
        What to know before reading the figures.
    interval
        Mass of the intervals of `gain`, over items.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]
    interval: float


def model_named(name: str) -> Model:
    """Load a model that an installed package offers.

    Examples
    --------
    >>> model_named("nobody-has-this")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: no installed package offers a model 'nobody-has-this'. ...
    """
    found = load_plugin(MODELS, name)
    if found is None:
        known = plugin_names(MODELS)
        msg = (
            f"no installed package offers a model {name!r}.{did_you_mean(name, known)} Models: "
            f"{', '.join(known) or 'none'}. See docs/how-to/plugins.md."
        )
        raise UsageError(msg)
    if not callable(found):
        msg = f"the plugin {name!r} is no model: it is not a function. Tell its authors."
        raise PluginError(msg)
    return found  # type: ignore[no-any-return]


def compare_models(run: Run | str | Path, models: Sequence[str | Model]) -> ModelTable:
    """Ask models for the probabilities of a run's items, and hold them beside the consensus.

    Parameters
    ----------
    run
        The run, or its folder.
    models
        Names of models that packages offer, or functions.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> from moral_entropy.pipeline.audit import audit
    >>> run = audit(simulate_votes(n_items=60, n_annotators=5, votes_per_item=3, seed=1).votes, draws=20)
    >>> def always_unsure(ballot):
    ...     return np.full((ballot.n_items, ballot.n_labels), 1 / ballot.n_labels)
    >>> compare_models(run, [always_unsure]).frame["model"].to_list()
    ['consensus', 'vote share', 'always_unsure']
    """
    run, asked = as_run(run), _asked(models)
    votes, mass = read_run_votes(run), float(run.manifest["interval"])
    rows, notes = list[dict[str, Any]](), dict[str, None]()
    for question in run.questions:
        known = known_items(run, question)
        notes |= dict.fromkeys(_notes(known))
        given = {name: _probabilities(votes, known, model, name) for name, model in asked.items()}
        plain = {CONSENSUS: known.p_ik, SHARE: smoothed_share(known.counts_ik)}  # type: ignore[arg-type]
        count_i = run.table("items", where=pl.col("question") == question.name)["count"].to_numpy().astype(np.float64)
        rows += _rows(known, {**plain, **given}, count_i, mass)
    return ModelTable(pl.DataFrame(rows, schema=SCHEMA), tuple(notes), mass)


def _asked(models: Sequence[str | Model]) -> dict[str, Model]:
    """Return the models by name, each once."""
    found = dict[str, Model]()
    for one in models:
        name = one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)
        if name in found or name in (CONSENSUS, SHARE):
            msg = f"the model name {name!r} is taken. Give every model a name of its own, once."
            raise UsageError(msg)
        found[name] = model_named(one) if isinstance(one, str) else one
    return found


def _notes(known: KnownItems) -> Iterator[str]:
    if known.evidence:
        yield "gold was evidence for the consensus, which it therefore cannot grade"
    elif known.n_gold == 0:
        yield (
            f"no answer to {known.question.name!r} is known: nobody can say which model is closer. Audit with --gold, "
            "or fill in a sheet of moral-entropy spot-check"
        )


def _probabilities(votes: Votes, known: KnownItems, model: Model, name: str) -> Floats:
    """Return what a model says of all items of a question, in the order of the run's items."""
    parts = [ballot for ballot in votes.ballots if ballot.question == known.question.name]
    said_ik = np.concatenate([_ask(model, name, ballot) for ballot in parts])
    ids = pl.concat([votes.items[ballot.item_i] for ballot in parts])
    places = ids.to_frame("item").with_row_index("at")
    at_i = known.items.to_frame("item").join(places, on="item", how="left", maintain_order="left")["at"].to_numpy()
    return settle_halves(said_ik[at_i])


def _ask(model: Model, name: str, ballot: Ballot) -> Floats:
    """Ask a model about one ballot, without gold; refuse what are no probabilities."""
    nothing_i = np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
    try:
        said_ik = np.array(model(replace(ballot, gold_i=nothing_i, published_i=nothing_i.copy())), dtype=np.float64)
    except MoralEntropyError:
        raise
    except Exception as error:
        raise failed(name, f"on {ballot.name!r}", error) from error
    _check(said_ik, name, ballot)
    return said_ik


def _check(said_ik: Floats, name: str, ballot: Ballot) -> None:
    wanted = (ballot.n_items, ballot.n_labels)
    if said_ik.shape != wanted:
        msg = (
            f"the model {name!r} returned an array of shape {said_ik.shape} for {ballot.name!r}; it is one row per "
            f"item and one column per label, {wanted}. Tell its authors."
        )
        raise PluginError(msg)
    with np.errstate(invalid="ignore"):
        good_i = (said_ik >= 0).all(axis=1) & (np.abs(said_ik.sum(axis=1) - 1.0) <= ROUNDING)
    if not good_i.all():
        first = int(np.flatnonzero(~good_i)[0])
        msg = (
            f"the model {name!r} returned rows that are no probabilities for {int((~good_i).sum()):,} of "
            f"{ballot.n_items:,} items of {ballot.name!r}. First: row {first}, {said_ik[first].tolist()}. "
            "Tell its authors."
        )
        raise PluginError(msg)


def _rows(known: KnownItems, p_by_model: dict[str, Floats], count_i: Floats, mass: float) -> Iterator[dict[str, Any]]:
    """Yield one row per model of one question."""
    consensus_ik = known.p_ik
    label_i, known_i = _labels(known, consensus_ik), known.gold_i != UNKNOWN
    loss = {name: _losses(p_ik[known_i], known.gold_i[known_i]) for name, p_ik in p_by_model.items()}
    for name, p_ik in p_by_model.items():
        row = {
            "question": known.question.name,
            "model": name,
            "n": len(p_ik),
            "n_known": int(known_i.sum()),
            "changed": _mean(_labels(known, p_ik) != label_i, count_i),
            "moved": _mean(np.abs(p_ik - consensus_ik).sum(axis=1) / 2.0, count_i),
        }
        if known_i.any() and not (known.evidence and name == CONSENSUS):
            weight_g = known.weight_i[known_i]
            row |= {"accuracy": _mean(_right(p_ik[known_i], known.gold_i[known_i]), weight_g)}
            row |= {"log_loss": _mean(loss[name], weight_g)}
            if not known.evidence and name != CONSENSUS:
                row |= _gain(loss[CONSENSUS] - loss[name], weight_g, mass)
        yield row


def _labels(known: KnownItems, p_ik: Floats) -> Ints:
    """Return the label of every item, as the consensus has it: of two, positive from one half on."""
    positive = known.question.positive
    return labels_of(p_ik, None if positive is None else known.question.labels.index(positive))


def _right(p_ik: Floats, gold_i: Ints) -> Floats:
    """Return how right the likeliest label is: a tie of n labels is right to 1/n."""
    top_ik = p_ik >= p_ik.max(axis=1, keepdims=True) - TIE
    return np.asarray(top_ik[np.arange(len(gold_i)), gold_i] / top_ik.sum(axis=1))


def _losses(p_ik: Floats, gold_i: Ints) -> Floats:
    return np.asarray(-np.log(np.maximum(p_ik[np.arange(len(gold_i)), gold_i], LEAST)))


def _mean(value_i: Any, weight_i: Floats) -> float:
    return float(np.average(np.asarray(value_i, dtype=np.float64), weights=weight_i))


def _gain(less_i: Floats, weight_i: Floats, mass: float) -> dict[str, float]:
    """Return the mean of paired differences with a normal interval over items; none with fewer than two."""
    mean = _mean(less_i, weight_i)
    if len(less_i) < 2:
        return {"gain": mean}
    from statistics import NormalDist

    share_i = weight_i / weight_i.sum()
    error = float(np.sqrt((share_i**2 * (less_i - mean) ** 2).sum() * len(less_i) / (len(less_i) - 1)))
    reach = NormalDist().inv_cdf(0.5 + mass / 2.0) * error
    return {"gain": mean, "gain_low": mean - reach, "gain_high": mean + reach}
