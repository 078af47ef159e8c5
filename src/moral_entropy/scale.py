"""An audit of more votes than one machine holds: the partitions of a Parquet dataset, mapped with Dask.

Workers read partitions and return sums, which add up: what occurs in the votes, the counts of every EM pass, the cells
that rules are graded by. They write the tables of items and votes. The driver searches, draws and grades with the
functions of the local path; it holds parameters, sums, a sample of the items and those with gold. A partition that is
lost with its worker is read again.
"""

from __future__ import annotations

import logging
import pickle
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.checks.gold import gold_findings
from moral_entropy.checks.run import run_checks
from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.findings import Finding, warning_sentences, without_warnings
from moral_entropy.items.table import ItemSums, find_outliers, sum_items
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.copies import LEAST_SHARED, Groups, count_once, joined, linked, pairs_of
from moral_entropy.model.fit import ITEM_COLUMNS, affordable_draws, fit_parameters, log_posterior, read_off, with_named
from moral_entropy.model.patterns import Patterns, collapse
from moral_entropy.model.posterior import Parameters
from moral_entropy.model.priors import Priors, check_priors, priors_for
from moral_entropy.model.search import SAMPLE_VOTES
from moral_entropy.model.threads import available_cores
from moral_entropy.options import AuditOptions, FitOptions
from moral_entropy.pipeline import write_run
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.rules.cells import RuleSums, group_by_answers, rule_sums, sort_into_cells
from moral_entropy.rules.rules import PUBLISHED, Rule, as_rules
from moral_entropy.rules.table import default_rules, grade_rules
from moral_entropy.runs.folder import write_table, writing
from moral_entropy.runs.make import count_votes, entropy_sums, item_entropies, item_tables, manifest_facts, small_tables
from moral_entropy.runs.run import Run
from moral_entropy.votes.ballots import note_positive
from moral_entropy.votes.parts import Part, Shape, dataset_paths, load_part, survey
from moral_entropy.votes.source import digest_of
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Reading, ReadingLog, Votes

MEMORY = 3_000_000_000
"""Bytes of a local worker: Dask moves partitions to disk at 60% of it."""

CONNECT, LOOPBACK = "10s", "127.0.0.1:0"
"""How long an address may take to answer; any port of this machine."""

FAN_IN = 4
"""Sums that are added in one task."""

DRAWN_NUMBERS, MOST_COMPARED, MOST_GOLD = 1 << 26, 1_500, 1_000_000
"""Most numbers in the draws of one fit, which every worker holds twice; most annotators among whom copies are looked
for; most items with gold that the driver holds."""

ONE_MACHINE = ("multilabel", "questions", "counts", "of", "count", "gold_file", "keep", "exclude", "text", "sheet")
"""Options of reading that a cluster does not know."""

NEEDS_ALL = ("hardly_known", "groups")
"""Findings that a sample of the items cannot tell."""


class Plan(NamedTuple):
    """How partitions are scored and written: folder, rules, priors, and by question votes and items in all."""

    folder: str
    rules: tuple[Rule, ...]
    options: AuditOptions
    priors: Priors
    totals: list[tuple[Ints, Floats, Floats]]


# --- Workers: pure functions of a partition ------------------------------------------------------------------------


def _patterns(
    votes: Votes, ballot: Ballot, options: FitOptions, fitted: dict[str, Any] | None = None, *, whole: bool = False
) -> Patterns:
    """Return the rows of a ballot; those who count as one in a fit vote once."""
    domains_from = votes if options.by_domain else None
    patterns = collapse(ballot, use_gold=options.use_gold, domains_from=domains_from, whole=whole)
    return count_once(patterns, fitted["counted_groups"]) if fitted and fitted["counted_groups"] else patterns


def _coded(part: Part, shape: Shape, options: FitOptions) -> tuple[list[Patterns], list[Any]]:
    """Return the patterns of every question, and sums: votes by annotator and label, items by domain, counts."""
    votes = load_part(part, shape)
    patterns = [_patterns(votes, ballot, options) for ballot in votes.ballots]
    totals = [
        (ballot.votes_a, ballot.votes_k, rows.items_d) for ballot, rows in zip(votes.ballots, patterns, strict=True)
    ]
    return patterns, [totals, count_votes(votes), Counter(votes.reading.dropped)]


def _apply(function: Callable[..., Any], patterns: Patterns, arguments_sent: tuple[Any, ...]) -> Any:
    return function(patterns, *arguments_sent)


def _pairs(patterns: Patterns, busy: Ints, commonest: int) -> Floats:
    return np.concatenate([pair_xap for _, pair_xap in pairs_of(patterns, busy, commonest)], axis=1)


def _same(value: Any) -> Any:
    return value


def plus(left_sum: Any, two: Any) -> Any:
    """Add two sums; lists and tuples of sums element by element.

    Examples
    --------
    >>> plus([1, (2, 3)], [10, (20, 30)])
    [11, (22, 33)]
    """
    if type(left_sum) in (list, tuple):
        return type(left_sum)(plus(mine, theirs) for mine, theirs in zip(left_sum, two, strict=True))
    return left_sum + two


def _score(number: int, n_parts: int, part: Part, shape: Shape, plan: Plan) -> tuple[list[Any], list[Any]]:
    """Compute p of a partition, write its rows, and return sums; and the items that the driver holds."""
    consensus = _consensus_of(load_part(part, shape), plan)
    entropies = item_entropies(consensus)
    for name, table in item_tables(consensus, entropies).items():
        folder = Path(plan.folder) / f"{name}.parquet"
        folder.mkdir(exist_ok=True)
        # Under another name first: a worker that is lost leaves no half a file, and its part is written again.
        unfinished = folder / f".{number}-{secrets.token_hex(3)}"
        write_table(unfinished, table.schema, table.frames())
        unfinished.replace(folder / f"part-{number:05}.parquet")
    cells, members = sort_into_cells(consensus.votes, consensus.fits, group_by_answers, rules=plan.rules)
    graded = rule_sums(cells, members, plan.options.grade.costs)
    items_held = []
    for fit in consensus.fits:
        nth = np.arange(0, fit.ballot.n_items, max(1, -(-fit.ballot.n_votes * n_parts // SAMPLE_VOTES)))
        gold = np.flatnonzero(fit.ballot.gold_i != UNKNOWN)[: MOST_GOLD // n_parts]
        sample = _items_of(consensus, fit, nth, fit.ballot.n_items / max(len(nth), 1))
        items_held.append((sample, _items_of(consensus, fit, gold, 1.0)))
    return [list(entropy_sums(consensus, entropies)), graded, sum_items(consensus, entropies)], items_held


def _consensus_of(votes: Votes, plan: Plan) -> Consensus:
    """Return the consensus on a part of the items, given what all votes together have fitted."""
    options, fits = plan.options.fit, []
    ballots = tuple(ballot.with_totals(*total[:2]) for ballot, total in zip(votes.ballots, plan.totals, strict=True))
    for b, ballot in enumerate(ballots):
        fitted = _load_fit(Path(plan.folder), b)
        patterns = _patterns(votes, ballot, options, fitted)
        arguments = (ballot, patterns, fitted["states"], fitted["mode"], fitted["drawn"], options)
        fits.append(_fit(ballot, patterns, options, fitted, read_off(*arguments, None, silent)))
    return Consensus(replace(votes, ballots=ballots), tuple(fits), plan.priors, options)


def _fit(
    ballot: Ballot, patterns: Patterns, options: FitOptions, fitted: dict[str, Any], items: dict[str, Any]
) -> QuestionFit:
    fit = QuestionFit(ballot=ballot, patterns=patterns, options=options, **fitted, **items)
    # Recalibration learns from the gold of all items at once.
    vars(fit)["recalibrated"] = None
    return fit


def _save_fit(folder: Path, b: int, fitted: dict[str, Any]) -> None:
    """Write what a fit found where workers see it; draws are mapped into memory, and shared by those of one machine."""
    for name, values in fitted["drawn"]._asdict().items():
        np.save(folder / f".{b}-{name}.npy", values)
    (folder / f".{b}.pickle").write_bytes(pickle.dumps(fitted | {"drawn": None}))


def _load_fit(folder: Path, b: int) -> dict[str, Any]:
    fitted: dict[str, Any] = pickle.loads((folder / f".{b}.pickle").read_bytes())
    draws = (np.asarray(np.load(folder / f".{b}-{name}.npy", mmap_mode="r")) for name in Parameters._fields)
    return fitted | {"drawn": Parameters(*draws)}


def _items_of(consensus: Consensus, fit: QuestionFit, rows: Ints, stands_for: float) -> dict[str, Any]:
    """Return some items of a fit, with their votes, as arrays; how many items each of them stands for."""
    ballot, item_i = fit.ballot, fit.ballot.item_i[rows]
    item_rows = collapse(ballot, whole=True).take(rows)
    return {
        "items": consensus.votes.items.gather(item_i), "domain_i": consensus.votes.domain_i[item_i],
        "votes_i": np.diff(item_rows.start_r), "code_v": item_rows.code_v, "count_i": ballot.count_i[rows] * stands_for,
        "gold_i": ballot.gold_i[rows], "published_i": ballot.published_i[rows],
        **{name: getattr(fit, name)[rows] for name in ITEM_COLUMNS},
    }  # fmt: skip


# --- The driver ----------------------------------------------------------------------------------------------------


def audit_on_cluster(
    source: str | Path,
    out: str | Path,
    options: AuditOptions | None = None,
    *,
    cluster: str = "local",
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Run:
    """Audit the votes of a Parquet dataset on a Dask cluster: what `audit` does, but for what needs one machine.

    Parameters
    ----------
    source
        A folder of Parquet files in the long layout, or one such file. All votes on an item are in one file.
    out
        The run folder; workers write to it too, so it lies where all of them see it.
    options
        All options of the audit.
    cluster
        "local" for one worker per core of this machine, or the address of a scheduler, such as tcp://10.0.0.1:8786.
    force, command, progress
        As in `audit`.
    """
    options = options or AuditOptions()
    options, progress, watch = replace(options, fit=replace(options.fit, threads=1)), progress or silent, Stopwatch()
    _refuse(options)
    check_priors(options.priors)
    paths = dataset_paths(Path(source))
    with writing(out, force=force, inputs=(str(source),)) as folder, connected(cluster) as client, without_warnings():
        with watch.timing("read"):
            progress("reading", 0.0)
            shape, parts, log = survey(partial(_gathered, client), paths, options.read)
            coded = [client.submit(_coded, part, shape, options.fit, pure=False) for part in parts]
            totals, counts, dropped = added(client, [client.submit(getitem, pair, 1) for pair in coded])
        votes = load_part(parts[0]._replace(rows=0), shape)
        plan = Plan(str(folder.resolve()), _rules(shape, options), options, priors_for(votes, options.priors), totals)
        with watch.timing("fit"):
            for b in range(len(totals)):
                rows = [client.submit(getitem, client.submit(getitem, pair, 0), b) for pair in coded]
                fit_question(client, rows, votes, b, plan, log, progress)
            del coded, rows
        with watch.timing("items"):
            progress("writing", 0.0)
            scored = [
                client.submit(_score, n, len(parts), part, shape, plan, pure=False) for n, part in enumerate(parts)
            ]
            sums, graded, items = added(client, [client.submit(getitem, pair, 0) for pair in scored])
            items_held = client.gather([client.submit(getitem, pair, 1) for pair in scored])
        note_positive(votes.ballots, options.read, log)
        n_rows, roles, notes = sum(part.rows for part in parts), shape.roles, tuple(log.notes)
        facts = (roles.column, roles.guessed, n_rows, dict(sorted(dropped.items())), notes)
        reading = Reading(Path(source).name, digest_of(paths), *facts)
        votes = replace(votes, reading=reading)
        sample, with_gold = (
            _hold(votes, [[of_fit[at] for of_fit in part] for part in items_held], plan) for at in (0, 1)
        )
        run = _run(sample, with_gold, (sums, graded, items), plan, counts, command, watch)
        run.manifest["cluster"] = {"workers": cluster, "parts": len(parts)}
        for leftover in [*folder.glob(".*"), *folder.glob("*.parquet/.*")]:
            leftover.unlink()
        return write_run(run, folder, Path(out), watch, progress)


def _refuse(options: AuditOptions) -> None:
    """Refuse what needs all votes on one machine."""
    read = [f"--{name.replace('_', '-')}" for name in ONE_MACHINE if getattr(options.read, name) not in (None, (), "")]
    arguments = {
        "groups of annotators": options.groups.annotator_group, "--fit-by": options.fit_by,
        "the roles of judges": options.judges.roles, "--spot-check": options.verdict.spot_check,
        "--decisions": options.verdict.decisions,
        "--solver adam": options.fit.solver == "adam", "--use-text": options.use_text not in (None, "off"),
        "a layout other than long": options.read.format in ("wide", "respondents"),
    }  # fmt: skip
    if needs := [*read, *(name for name, value in arguments.items() if value)]:
        msg = f"{needs[0]} needs all votes on one machine. Leave it out, or audit without --cluster."
        raise UsageError(msg)


@contextmanager
def connected(cluster: str) -> Iterator[Any]:
    """Start workers on this machine, which stop with the block, or connect to those of a scheduler."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        needs = "an audit on a cluster needs Dask"
        raise MissingExtraError(needs, "cluster") from None
    if cluster == "local":
        one_each: dict[str, Any] = {"n_workers": available_cores(), "threads_per_worker": 1, "memory_limit": MEMORY}
        # HTTP is not used, and cannot be left out: on loopback, on any port, without pages.
        nowhere = {"dashboard_address": LOOPBACK, "worker_dashboard_address": LOOPBACK}
        quiet: dict[str, Any] = {"silence_logs": logging.CRITICAL, "scheduler_kwargs": {"dashboard": False}, **nowhere}
        with LocalCluster(host="127.0.0.1", **one_each, **quiet) as workers, Client(workers) as client:
            yield client
        return
    try:
        client = Client(cluster, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        msg = f"there is no Dask scheduler at {cluster!r}. Name local, or an address such as tcp://10.0.0.1:8786."
        raise UsageError(msg) from error
    with client:
        yield client


def added(client: Any, sums: Sequence[Any]) -> Any:
    """Add up sums where they are, some at a time and always in the same order."""
    while len(sums) > 1:
        pieces = [sums[first : first + FAN_IN] for first in range(0, len(sums), FAN_IN)]
        sums = [client.submit(reduce, plus, piece, pure=False) for piece in pieces]
    return sums[0].result()


def _gathered(client: Any, function: Callable[..., Any], parts: Sequence[Part], *further: Any) -> list[Any]:
    return list(client.gather([client.submit(function, part, *further, pure=False) for part in parts]))


def _rules(shape: Shape, options: AuditOptions) -> tuple[Rule, ...]:
    """Return the rules that are graded; those that look at all items at once need one machine."""
    if options.grade.rules is None:
        many_labels = any(len(labels) > 2 for _, labels, *_ in shape.questions)
        return default_rules(many_labels, bool(shape.roles.column.get("published")))
    rules = as_rules(options.grade.rules)
    if apart := [rule.name for rule in rules if not rule.pointwise and rule != PUBLISHED]:
        msg = f"the rule {apart[0]!r} looks at all items at once, which needs one machine. Audit without --cluster."
        raise UsageError(msg)
    return rules


def fit_question(
    client: Any, cast: Sequence[Any], votes: Votes, b: int, plan: Plan, log: ReadingLog, progress: Progress
) -> None:
    """Find mode and draws of one question from sums over the partitions; write them where workers see them."""
    options, ballot = plan.options.fit, votes.ballots[b]
    groups = _copies(client, cast, ballot.n_annotators, log) if options.mixed else []
    groups = with_named(groups, votes, ballot, options)
    rows = [client.submit(count_once, part, groups, pure=False) for part in cast] if groups else cast

    def spread(function: Callable[..., Any], *further: Any) -> Any:
        # One task holds the arguments: it is sent once, and can be run again where it is lost.
        arguments_sent = client.submit(_same, further, pure=False)
        return added(client, [client.submit(_apply, function, part, arguments_sent, pure=False) for part in rows])

    n_sample = SAMPLE_VOTES // len(rows)
    sample = _joined(client.gather([client.submit(Patterns.sample, part, n_sample, pure=False) for part in rows]))
    posterior = replace(log_posterior(votes, ballot, sample, plan.priors, options), spread=spread)
    n_draws = affordable_draws(ballot, options.draws, len(votes.ballots))
    n_rates = ballot.n_annotators * ballot.n_labels**2 * len(votes.ballots)
    n_draws = min(n_draws, DRAWN_NUMBERS // n_rates)
    _save_fit(Path(plan.folder), b, fit_parameters(posterior, ballot, groups, n_draws, options, progress))


def _copies(client: Any, rows: Sequence[Any], n_annotators: int, log: ReadingLog) -> Groups:
    """Find identical annotators from sums over the partitions."""
    votes_ak = added(client, [client.submit(getattr, part, "votes_ak", pure=False) for part in rows])
    busy, commonest = np.flatnonzero(votes_ak.sum(axis=1) >= LEAST_SHARED), int(votes_ak.sum(axis=0).argmax())
    if len(busy) > MOST_COMPARED:
        log.note(f"copies are not looked for among more than {MOST_COMPARED:,} annotators on a cluster.")
    if not 1 < len(busy) <= MOST_COMPARED:
        return []
    pair_xab = added(client, [client.submit(_pairs, part, busy, commonest, pure=False) for part in rows])
    return joined([linked(busy, 0, *pair_xab)], n_annotators)


def _joined(rows: Sequence[Patterns]) -> Patterns:
    """Put rows of several partitions one below the other."""
    names = ("code_v", "weight_r", "clamp_r", "domain_r")
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in rows]) for name in names}
    start_r = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.start_r) for part in rows]))])
    row_i = np.arange(len(columns["weight_r"]))
    return replace(rows[0], start_r=start_r.astype(np.int64), row_i=row_i, **columns)


def _hold(votes: Votes, items_held: Sequence[Sequence[dict[str, Any]]], plan: Plan) -> Consensus:
    """Return the consensus on the items that the driver holds; those of a sample stand for all."""
    join: dict[str, Callable[[list[Any]], Any]] = {"items": pl.concat}
    columns = [
        {name: join.get(name, np.concatenate)([part[name] for part in parts]) for name in parts[0]}
        for parts in zip(*items_held, strict=True)
    ]
    ballots, first = [], 0
    for ballot, column, total in zip(votes.ballots, columns, plan.totals, strict=True):
        item_i = first + np.arange(len(column["count_i"]))
        first += len(item_i)
        start_i = np.concatenate([[0], np.cumsum(column["votes_i"])]).astype(np.int64)
        arguments = {name: column[name] for name in ("code_v", "count_i", "gold_i", "published_i")}
        ballots.append(replace(ballot, item_i=item_i, start_i=start_i, **arguments).with_totals(*total[:2]))
    items, domain_i = pl.concat([column["items"] for column in columns]), [column["domain_i"] for column in columns]
    votes = replace(votes, items=items, domain_i=np.concatenate(domain_i), ballots=tuple(ballots))
    fits = []
    for b, (ballot, column, total) in enumerate(zip(ballots, columns, plan.totals, strict=True)):
        fitted = _load_fit(Path(plan.folder), b)
        patterns = _patterns(votes, ballot, plan.options.fit, fitted, whole=True)
        vars(patterns)["items_d"] = total[2]
        columns_held = {name: column[name] for name in ITEM_COLUMNS}
        fits.append(_fit(ballot, patterns, plan.options.fit, fitted, columns_held))
    return Consensus(votes, tuple(fits), plan.priors, plan.options.fit)


def _run(
    sample: Consensus,
    with_gold: Consensus,
    added_up: tuple[list[Floats], RuleSums, ItemSums],
    plan: Plan,
    counts: Ints,
    command: str,
    watch: Stopwatch,
) -> Run:
    """Grade, check and describe from sums and from the items that the driver holds."""
    options, (sums, graded, items) = plan.options, added_up
    with watch.timing("audit"):
        grading = replace(options.grade, rules=plan.rules)
        gold = with_gold if len(with_gold.votes.items) else None
        audit = grade_rules(sample, grading, seed=options.fit.seed, sums=graded, with_gold=gold)
        outliers = find_outliers(sample, sums=items)
    with watch.timing("checks"):
        findings = [*run_checks(sample, seed=options.fit.seed), *gold_findings(audit.frame)]
        if sum(ballot.n_votes for ballot in sample.votes.ballots) < counts[0, 2]:
            needs = "Items with hardly a vote were counted in a sample, groups without a link not looked for."
            findings = [finding for finding in findings if finding.metric not in NEEDS_ALL]
            findings.append(Finding("votes", "sampled", float("nan"), text=f"{needs} Both need one machine."))
    tables = small_tables(sample, sums, audit, outliers, findings)
    alarms = warning_sentences(findings)
    manifest = manifest_facts(
        sample, sums, options, command=command, warnings=alarms, seconds=watch.seconds, counts=counts
    )
    manifest |= {"advice": audit.advice.text, "best_rule": audit.advice.best}
    return Run(manifest, tables, consensus=None)
