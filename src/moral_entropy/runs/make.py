"""A consensus, and what was found about it → the tables of a run, and its manifest.

Small tables are frames. Those with a row per item or vote are made a chunk at a time when they are written, so that
twenty million votes need no second copy in memory.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy import __version__
from moral_entropy.findings import Finding
from moral_entropy.items.contributions import contributions, spoken_for
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.entropy import EntropyParts, decompose_entropy, is_ambiguous, is_uncertain
from moral_entropy.model.threads import available_cores
from moral_entropy.names import ALL
from moral_entropy.option_fields import as_plain
from moral_entropy.options import AuditOptions
from moral_entropy.rules.table import AuditTable
from moral_entropy.runs.folder import ROWS_PER_GROUP, plain_facts
from moral_entropy.runs.run import SCHEMA, Table, findings_frame
from moral_entropy.schemas import ALL_PARTS, BETWEEN, SCHEMAS, SCORE, with_between, with_ids
from moral_entropy.votes.table import Floats, Ints, Votes

SUMS = ("rows", "items", "entropy", "uncertain", "ambiguous", *ALL_PARTS, BETWEEN)
"""Columns of `sum_df`, see `entropy_sums`."""

ANNOTATORS_AT_ONCE = 1_024


def small_tables(
    consensus: Consensus,
    sums: Sequence[Floats],
    audit: AuditTable,
    outliers: Mapping[str, pl.DataFrame],
    findings: Iterable[Finding],
    extra: Mapping[str, pl.DataFrame] | None = None,
) -> dict[str, pl.DataFrame]:
    """Return the tables that have no row per item or vote, by name.

    Parameters
    ----------
    consensus
        The votes and their fits.
    sums
        Entropies added up by domain: see `entropy_sums`.
    audit, outliers, findings
        What the audit of rules, the search for outliers and the checks found.
    extra
        Tables about groups of annotators, where they were asked for.
    """
    frames = {
        "annotators": annotator_frame(consensus, outliers["annotator_summary"]),
        "contributions": contribution_frame(consensus),
        "entropy": entropy_frame(consensus, sums),
        "audit": audit.frame,
        "audit_rules": audit.rules,
        "audit_any_by_votes": audit.any_by_votes,
        "audit_reliability": audit.reliability,
        "audit_advice": audit.advice.frame,
        **outliers,
        "findings": findings_frame(findings),
        **(extra or {}),
    }
    tables = {}
    for name, frame in frames.items():
        ids = {column: frame.schema[column] for column in ("item", "annotator") if column in frame.columns}
        schema = with_between(SCHEMAS[name]) if BETWEEN in frame.columns else SCHEMAS[name]
        # In one piece: a table put together from a thousand questions is slow to filter, question by question.
        tables[name] = frame.match_to_schema(with_ids(schema, **ids)).rechunk()
    return tables


# --- A row per item, or per vote -----------------------------------------------------------------------------------


def item_tables(consensus: Consensus, entropies: Sequence[EntropyParts]) -> dict[str, Table]:
    """Return the tables with one or more rows per item or vote, which are made when they are asked for."""
    votes = consensus.votes
    frames: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"items": partial(item_rows, consensus, entropies)}
    if any(fit.ballot.n_labels > 2 for fit in consensus.fits):
        frames["posterior"] = partial(posterior_rows, consensus)
    frames["votes"] = partial(vote_rows, votes)
    if votes.texts is not None:
        frames["texts"] = partial(iter, [{"item": votes.items, "text": votes.texts}])
    ids = {"item": votes.items.dtype, "annotator": votes.annotators.dtype}
    schemas = {name: with_ids(SCHEMAS[name], **ids) for name in frames}
    if entropies[0].between_i is not None:
        schemas["items"] = with_between(schemas["items"])
    further = {name: cells.dtype for name, cells in votes.kept.items()}
    if any(ballot.score_v is not None for ballot in votes.ballots):
        further[SCORE] = pl.Float64()
    schemas["votes"] = pl.Schema({**schemas["votes"], **further})
    return {name: Table(schemas[name], partial(_framed, make, schemas[name])) for name, make in frames.items()}


def _framed(make: Callable[[], Iterator[dict[str, Any]]], schema: pl.Schema) -> Iterator[pl.DataFrame]:
    for columns in make():
        # Nulls in the constructor: an expression for every column of every question takes longer than the rest.
        yield pl.DataFrame(columns, schema=schema, nan_to_null=True)


def item_rows(consensus: Consensus, entropies: Sequence[EntropyParts]) -> Iterator[dict[str, Any]]:
    """Yield the columns of `items`, some items at a time."""
    for fit, parts_of_fit in zip(consensus.fits, entropies, strict=True):
        for chunk in fit.chunks(ROWS_PER_GROUP):
            entropy, votes = parts_of_fit.of(chunk), consensus.votes
            ballot, label_i, item_i = fit.ballot, fit.label_i[chunk], fit.ballot.item_i[chunk]
            row_i = np.arange(len(item_i))
            parts = named_parts(entropy)
            # p is about the positive label of two, and about the consensus label of more.
            about_i = np.full(len(item_i), ballot.positive) if ballot.n_labels == 2 else label_i
            unknown_ik = np.broadcast_to(np.nan, fit.p_ik.shape)
            calibrated_ik = unknown_ik if fit.recalibrated is None else fit.recalibrated[0]
            yield {
                "question": _repeated(ballot.question, len(item_i)),
                "item": votes.items.gather(item_i),
                "domain": _names(votes.domains, votes.domain_i[item_i]),
                "n_votes": ballot.votes_i[chunk].astype(np.int32),
                "n_positive": ballot.counts_ik[chunk][row_i, about_i],
                "p_map": fit.posterior_ik[chunk][row_i, about_i],
                "p_model": fit.model_ik[chunk][row_i, about_i],
                "p": fit.p_ik[chunk][row_i, about_i],
                "p_low": fit.low_i[chunk],
                "p_high": fit.high_i[chunk],
                "p_calibrated": calibrated_ik[chunk][row_i, about_i],
                **{name: p_ik[chunk][row_i, about_i] for name, p_ik in text_columns(fit).items()},
                "label": pl.Series(ballot.labels, dtype=pl.String).gather(label_i),
                "entropy": entropy.total_i,
                **{name: parts[name] for name in ALL_PARTS},
                "count": ballot.count_i[chunk],
                "part": _repeated(ballot.part, len(item_i)),
                "gold": _names(ballot.labels, ballot.gold_i[chunk]),
                "published": _names(ballot.labels, ballot.published_i[chunk]),
                **{name: part for name, part in parts.items() if name == BETWEEN},
            }


def text_columns(fit: QuestionFit) -> dict[str, Floats]:
    """Return p without the texts where they count, and what the texts say; NaN where that is not known."""
    unknown_ik = np.broadcast_to(np.nan, fit.p_ik.shape)
    text_ik = unknown_ik if fit.item_prior is None else fit.item_prior[0]
    return {"p_votes": unknown_ik if fit.p_votes_ik is None else fit.p_votes_ik, "p_text": text_ik}


def _names(names: Sequence[str], code_x: Ints) -> pl.Series:
    """Return names by their codes; null where the code is -1: there is none."""
    return pl.Series([*names, None], dtype=pl.String).gather(code_x.astype(np.int64) % (len(names) + 1))


def _repeated(name: str | None, n: int) -> pl.Series:
    return pl.Series([name], dtype=pl.String).new_from_index(0, n)


def posterior_rows(consensus: Consensus) -> Iterator[dict[str, Any]]:
    """Yield the columns of `posterior`, one row per item and label of questions with more than two."""
    for fit in consensus.fits:
        ballot = fit.ballot
        for chunk in fit.chunks(ROWS_PER_GROUP // ballot.n_labels) if ballot.n_labels > 2 else ():
            n_items = chunk.stop - chunk.start
            yield {
                "question": _repeated(ballot.question, n_items * ballot.n_labels),
                "item": consensus.votes.items.gather(np.repeat(ballot.item_i[chunk], ballot.n_labels)),
                "class": pl.Series(list(ballot.labels) * n_items),
                "p_map": fit.posterior_ik[chunk].ravel(),
                "p_model": fit.model_ik[chunk].ravel(),
                "p": fit.p_ik[chunk].ravel(),
                **{name: p_ik[chunk].ravel() for name, p_ik in text_columns(fit).items()},
            }


def vote_rows(votes: Votes) -> Iterator[dict[str, Any]]:
    """Yield the columns of `votes`, and those that were kept."""
    for ballot in votes.ballots:
        labels = pl.Series(ballot.labels, dtype=pl.String)
        for start in range(0, ballot.n_votes, ROWS_PER_GROUP):
            at_v = np.arange(start, min(start + ROWS_PER_GROUP, ballot.n_votes))
            code_v = ballot.code_v[at_v]
            item_v = np.searchsorted(ballot.start_i, at_v, side="right") - 1
            row_v = None if ballot.row_v is None else ballot.row_v[at_v]
            yield {
                "question": _repeated(ballot.question, len(at_v)),
                "item": votes.items.gather(ballot.item_i[item_v]),
                "annotator": votes.annotators.gather(ballot.annotator_a[code_v // ballot.n_labels]),
                "label": labels.gather(code_v % ballot.n_labels),
                **({} if row_v is None else {name: cells.gather(row_v) for name, cells in votes.kept.items()}),
                **({} if ballot.score_v is None else {SCORE: ballot.score_v[at_v]}),
            }


# --- Entropies by domain -------------------------------------------------------------------------------------------


def item_entropies(consensus: Consensus, between: Sequence[Floats] | None = None) -> tuple[EntropyParts, ...]:
    """Split the entropies of all items, by fit.

    Parameters
    ----------
    consensus
        The fits.
    between
        By fit, the share of each item's entropy that lies between groups of annotators, where a truth per group was
        found.
    """
    entropies = tuple(map(decompose_entropy, consensus.fits))
    if not between:
        return entropies
    return tuple(parts.with_between(share_i) for parts, share_i in zip(entropies, between, strict=True))


def entropy_sums(consensus: Consensus, entropies: Sequence[EntropyParts]) -> tuple[Floats, ...]:
    """Add up the entropies of every fit by domain: `sum_df`, the last row for items of no domain.

    Columns are `SUMS`: rows, items, total entropy, items whose label is uncertain (see `is_uncertain`), items that are
    ambiguous (see `is_ambiguous`), and the parts of the entropy.
    """
    sums, n_places = [], len(consensus.votes.domains) + 1
    for fit, entropy in zip(consensus.fits, entropies, strict=True):
        place_i = consensus.votes.domain_i[fit.ballot.item_i] % n_places
        # The label of a rating is its median, which need not be the likeliest.
        right_i = np.take_along_axis(fit.p_ik, fit.label_i[:, None], axis=1)[:, 0]
        uncertain_i = is_uncertain(right_i)
        ambiguous_i = is_ambiguous(right_i, entropy.total_i, entropy.lasting_i)
        values: tuple[Any, ...] = (1.0, entropy.total_i, uncertain_i, ambiguous_i, *named_parts(entropy).values())
        columns = [np.bincount(place_i, minlength=n_places)]
        columns += [np.bincount(place_i, weights=fit.ballot.count_i * value, minlength=n_places) for value in values]
        sums.append(np.column_stack(columns).astype(np.float64))
    return tuple(sums)


def entropy_frame(consensus: Consensus, sums: Sequence[Floats]) -> pl.DataFrame:
    """Return mean entropies by question and domain: one row each, all domains first."""
    by_question: dict[str, Floats] = {}
    for fit, sum_df in zip(consensus.fits, sums, strict=True):
        by_question[fit.question] = by_question.get(fit.question, 0.0) + sum_df
    rows: list[dict[str, Any]] = []
    for question, sum_df in by_question.items():
        for domain, sum_f in zip((ALL, *consensus.votes.domains), (sum_df.sum(axis=0), *sum_df[:-1]), strict=True):
            if sum_f[0]:
                means = mean_sums(sum_f)
                place = {"question": question, "domain": domain, "n_items": round(sum_f[1]), "total": means["entropy"]}
                rows.append(place | {name: means[name] for name in (*ALL_PARTS, BETWEEN) if name in means})
    schema = with_between(SCHEMAS["entropy"]) if BETWEEN in rows[0] else SCHEMAS["entropy"]
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(pl.Float64).fill_nan(None))


def mean_sums(sum_f: Floats) -> dict[str, float]:
    """Return means over items by name, the entropy first, from sums over items: see `entropy_sums`."""
    return dict(zip(SUMS[2:], (sum_f[2:] / sum_f[1]).tolist(), strict=False))


def named_parts(entropy: EntropyParts) -> dict[str, Floats]:
    """Return the parts of the entropy by the names of `ALL_PARTS`, then what lies between groups, where that is known.

    Examples
    --------
    >>> two = np.zeros(2)
    >>> list(named_parts(EntropyParts(two, two, two, two)))
    ['ambiguity', 'doubt_votes', 'doubt_annotators', 'aleatoric', 'epistemic']
    """
    three = (entropy.ambiguity_i, entropy.votes_i, entropy.annotators_i)
    by_name = dict(zip(ALL_PARTS, (*three, entropy.aleatoric_i, entropy.epistemic_i), strict=True))
    return by_name if entropy.between_i is None else by_name | {BETWEEN: entropy.between_i}


# --- Annotators ----------------------------------------------------------------------------------------------------


def annotator_frame(consensus: Consensus, summary: pl.DataFrame) -> pl.DataFrame:
    """Return one row per question, annotator and cell of the confusion matrix.

    Parameters
    ----------
    consensus
        The fits.
    summary
        The table annotator_summary, which has each annotator's share of votes against the majority.
    """
    columns, summaries = [], summary.partition_by("question", "part", as_dict=True)
    for f, fit in enumerate(consensus.fits):
        ballot, n_cells = fit.ballot, fit.ballot.n_labels**2
        cell_x = np.tile(np.arange(n_cells), ballot.n_annotators)
        disagreement_a = summaries[fit.question, ballot.part]["disagreement"].to_numpy()
        by_annotator = {"annotator": ballot.annotator_a, "n_votes": ballot.votes_a, "disagreement": disagreement_a}
        bound_xakv, tail = np.full((2, *fit.confusion_akv.shape), np.nan), (1.0 - consensus.interval) / 2.0
        # Some annotators at a time: sorting holds a copy of their draws.
        for start in range(0, ballot.n_annotators if fit.n_draws else 0, ANNOTATORS_AT_ONCE):
            chunk = slice(start, start + ANNOTATORS_AT_ONCE)
            low_akv, high_akv = np.quantile(fit.confusion_sakv[:, chunk], [tail, 1.0 - tail], axis=0)
            # Of many labels the mode of a rare vote can lie outside: the interval reaches to it.
            bound_xakv[0, chunk] = np.minimum(low_akv, fit.confusion_akv[chunk])
            bound_xakv[1, chunk] = np.maximum(high_akv, fit.confusion_akv[chunk])
        columns.append({
            "fit": np.full(len(cell_x), f), "true": cell_x // ballot.n_labels, "voted": cell_x % ballot.n_labels,
            **{name: np.repeat(values_a, n_cells) for name, values_a in by_annotator.items()},
            "probability": fit.confusion_akv.ravel(), "low": bound_xakv[0].ravel(), "high": bound_xakv[1].ravel(),
        })  # fmt: skip
    return _stacked(consensus, "annotators", columns)


def _stacked(consensus: Consensus, name: str, columns: Sequence[Mapping[str, NDArray[Any]]]) -> pl.DataFrame:
    """Put the columns of many fits one below the other: names are looked up once, not fit by fit.

    Annotators and labels are codes, the latter of the row's fit; `UNKNOWN` becomes null.
    """
    values = {column: np.concatenate([part[column] for part in columns]) for column in columns[0]}
    fit_x, ballots, ids = values["fit"], [fit.ballot for fit in consensus.fits], consensus.votes.annotators
    labels = pl.Series([label for ballot in ballots for label in (*ballot.labels, None)], dtype=pl.String)
    size_f = np.array([ballot.n_labels + 1 for ballot in ballots])
    first_x, size_x = (np.cumsum(size_f) - size_f)[fit_x], size_f[fit_x]
    ids = pl.concat([ids, pl.Series([None], dtype=ids.dtype)])
    series = {"question": pl.Series([ballot.question for ballot in ballots]).gather(fit_x),
               "part": pl.Series([ballot.part for ballot in ballots]).gather(fit_x),
               "annotator": ids.gather(values["annotator"] % len(ids))}  # fmt: skip
    codes = [column for column in ("true", "voted", "class") if column in values]
    series |= {column: labels.gather(first_x + values[column] % size_x) for column in codes}
    schema = with_ids(SCHEMAS[name], annotator=ids.dtype)
    return pl.DataFrame({column: (values | series)[column] for column in schema}, schema=schema, nan_to_null=True)


def contribution_frame(consensus: Consensus) -> pl.DataFrame:
    """Return, fit by fit, the prior's rows, and one row per annotator, possible vote and label it is compared for."""
    columns = []
    for f, fit in enumerate(consensus.fits):
        classes = np.array(spoken_for(fit.ballot)[1])
        for annotator_a, voted_v, ratio_bavc in contributions(fit, consensus.interval):
            a, v, c = (index.ravel() for index in np.indices(ratio_bavc.shape[1:]))
            names = {"fit": np.full(len(a), f), "annotator": annotator_a[a], "voted": voted_v[v], "class": classes[c]}
            columns.append(names | dict(zip(("contribution", "low", "high"), ratio_bavc.reshape(3, -1), strict=True)))
    return _stacked(consensus, "contributions", columns)


# --- The manifest ----------------------------------------------------------------------------------------------------


LIBRARIES = ("numpy", "scipy", "polars", "numba")


def manifest_facts(
    consensus: Consensus,
    sums: Sequence[Floats],
    options: AuditOptions,
    *,
    command: str,
    warnings: Sequence[str],
    seconds: Mapping[str, float],
    counts: Ints | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run.

    Parameters
    ----------
    consensus
        The votes and their fits.
    sums
        Entropies by domain: see `entropy_sums`.
    options
        The options of the run.
    command
        What the user typed, if anything.
    warnings
        Warnings of the library, in order.
    seconds
        Time by stage.
    counts
        As `count_votes` counts, where the consensus has only a sample of the items.
    """
    counts = count_votes(consensus.votes) if counts is None else counts
    fits, votes = zip(consensus.fits, sums, counts[1:], strict=True), consensus.votes
    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": command,
        **reading_facts(consensus.votes, counts),
        "questions": [_fit_facts(fit, votes, sum_df.sum(axis=0), counts_b.tolist()) for fit, sum_df, counts_b in fits],
        "converged": consensus.converged,
        "fit_by": options.fit_by,
        "priors": plain_facts(vars(consensus.priors)),
        **asdict(consensus.options),
        "threads": consensus.options.threads or available_cores(),
        "options": as_plain(options),
        "warnings": list(warnings),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "seconds": {stage: round(spent, 3) for stage, spent in seconds.items()},
    }


def reading_facts(votes: Votes, counts: Ints) -> dict[str, Any]:
    """Return what was read and what was left out."""
    reading, (items, without_votes, _) = plain_facts(vars(votes.reading)), counts[0].tolist()
    names = ("columns", "guessed", "rows", "dropped", "notes", *(["not_read"] if reading["not_read"] else []))
    return {
        "input": {"source": reading["source"], "sha256": reading["sha256"]},
        **{name: reading[name] for name in names},
        "items": items,
        "items_without_votes": without_votes,
        "annotators": len(votes.annotators),
        "anonymous": votes.anonymous,
        "votes": int(counts[1:, 2].sum()),
        "domains": list(votes.domains),
    }


def count_votes(votes: Votes) -> Ints:
    """Count items, items without votes, and votes: over all questions, then ballot by ballot."""
    votes_i = np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        votes_i[ballot.item_i] += ballot.votes_i
    by_ballot = [(ballot.n_items, int((ballot.votes_i == 0).sum()), ballot.n_votes) for ballot in votes.ballots]
    return np.array([(votes.n_items, int((votes_i == 0).sum()), votes.n_votes), *by_ballot])


def _fit_facts(fit: QuestionFit, votes: Votes, sum_f: Floats, counts: Sequence[int]) -> dict[str, Any]:
    ballot, mixture = fit.ballot, None
    if fit.options.mixed:
        # The weights of the states between labels; items of no domain come last.
        names = [*votes.domains, None] if len(fit.mode.weight_dg) > 1 else []
        mixture = {"points": fit.states.points, "domains": names, "weights": fit.mode.weight_dg.tolist()}
    return {
        "question": ballot.question,
        "part": ballot.part,
        "labels": list(ballot.labels),
        "positive": ballot.labels[ballot.positive] if ballot.n_labels == 2 else None,
        **({} if ballot.levels is None else {"scale": ballot.scale, "levels": list(ballot.levels)}),
        **dict(zip(("items", "items_without_votes", "votes"), counts, strict=True)),
        "items_counted": float(sum_f[1]),
        "annotators": ballot.n_annotators,
        "prevalence": dict(zip(ballot.labels, fit.share_k.tolist(), strict=True)),
        **mean_sums(sum_f),
        **asdict(fit.search),
        "curvature": fit.curvature._asdict(),
        "mixture": mixture,
        # By group, the annotator who stands for it first.
        "counted_as_one": [
            votes.annotators.gather(ballot.annotator_a[group]).to_list() for group in fit.counted_groups
        ],
    }
