"""The run: read → fit → entropy → audit of rules → outliers → checks → tables, manifest, report.

`audit` does what `moral-entropy audit` does, and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.checks.gold import gold_findings
from moral_entropy.checks.run import CHECKS, check_names, run_check, run_checks, verdict
from moral_entropy.decisions import read_decisions
from moral_entropy.errors import UsageError, VotesError, refuse_forked
from moral_entropy.findings import Finding, check_codes, mute, warning_sentences, without_warnings
from moral_entropy.groups.members import columns_to_keep, read_groupings
from moral_entropy.items.ratings import study_ratings
from moral_entropy.items.table import find_outliers
from moral_entropy.judges.findings import judge_findings
from moral_entropy.judges.roles import roles_at_audit
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.findings import recalibration_findings
from moral_entropy.model.fit import ItemPriors, fit
from moral_entropy.model.priors import Priors, check_priors, priors_for
from moral_entropy.model.recalibration import recalibrate
from moral_entropy.option_fields import from_plain, lists_options
from moral_entropy.options import AuditOptions, ValidationOptions
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.report.html import write_report
from moral_entropy.rules.table import grade_rules, has_gold
from moral_entropy.runs.folder import MANIFEST, change_manifest, writing
from moral_entropy.runs.make import entropy_sums, item_entropies, item_tables, manifest_facts, small_tables
from moral_entropy.runs.reload import priors_of, read_run_votes, reload_consensus
from moral_entropy.runs.run import Run, add_findings, read_findings, read_run
from moral_entropy.verdict.figures import label_facts
from moral_entropy.verdict.sheet import add_sheet, open_sheet, spot_checks, with_answers
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN, Votes

FEWEST_TEXTS = 300
"""Items that a set needs before the worth of their texts is measured."""


@lists_options(AuditOptions)
def audit(
    source: Any,
    out: str | Path | None = None,
    options: AuditOptions | None = None,
    *,
    gold: Any = None,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """Read votes, fit the consensus, split its entropy, grade every rule, and return the run.

    Parameters
    ----------
    source
        A file of votes, a dataframe, or `Votes`: whatever `read_votes` takes or returns.
    out
        The run folder; it appears when the run is complete, or not at all. None for a run in memory.
    options
        All options as one object; keywords change some of them.
    gold
        True labels: the name of a column of the votes, or a dataframe with the columns item, gold and, if there are
        several, question.
    force
        Replace a run folder that is already there.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.
    **changes
        Options by name.

    Returns
    -------
    Run
        What is in doubt is in its findings and its manifest; no Python warning is issued.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> audit(simulate_votes(n_items=50, n_annotators=5, votes_per_item=3, seed=1).votes, draws=50)
    Run(150 votes on 50 items; label; in memory)
    ...
    """
    if gold is not None:
        changes["gold" if isinstance(gold, str) else "gold_file"] = gold
    if "spot_check" in changes and not isinstance(changes["spot_check"], list | tuple):
        changes["spot_check"] = (changes["spot_check"],)
    options = (options or AuditOptions()).changed(changes, "audit")
    progress, watch = progress or silent, Stopwatch()
    check_priors(options.priors)
    read = partial(read_for_audit, source, options)
    answers = None
    if options.verdict.decisions is not None:
        answers = read_decisions(options.verdict.decisions)
        options = options.changed({"gold_as_evidence": True}, "audit")
    sheets = options.verdict.spot_check
    for sheet in sheets:
        # Before the votes are fitted, which can take long.
        open_sheet(sheet)
    if options.verdict.ignore:
        check_codes(options.verdict.ignore)
    if out is None:
        run = make_run(read, options, command, watch, progress, answers=answers)
        return with_answers(run, sheets) if sheets else run
    inputs = (source, options.read.gold_file, options.verdict.decisions, options.read.labels, options.priors.annotators,
              options.groups.annotators, options.groups.target, options.judges.roles)  # fmt: skip
    with writing(out, force=force, inputs=inputs, sheets=sheets) as folder:
        run = make_run(read, options, command, watch, progress, answers=answers)
        return write_run(run, folder, Path(out), watch, progress, sheets)


def write_run(
    run: Run, folder: Path, out: Path, watch: Stopwatch, progress: Progress, sheets: Sequence[Any] = ()
) -> Run:
    """Write tables, the next sheet to fill in and the report; return the run as it will be at its place.

    The answers of earlier sheets are taken over.
    """
    with watch.timing("write"):
        run.write_to(folder, lambda share: progress("writing", share))
        # The report takes the small tables in hand; what rows about items were made from is not held meanwhile.
        small = {name: table for name, table in run.tables.items() if isinstance(table, pl.DataFrame)}
        run = replace(run, tables={name: small[name] for name in small if name != "spot_checks"}, path=folder)
        if sheets:
            run = with_answers(run, sheets)
        add_sheet(run)
    if run.manifest["options"]["report"]:
        with watch.timing("report"):
            progress("report", 0.0)
            write_report(run)
    return replace(run, manifest=change_manifest(folder, seconds=watch.seconds), tables={}, path=out)


def make_run(
    read: Callable[[], Votes], options: AuditOptions, command: str, watch: Stopwatch, progress: Progress,
    priors: Priors | None = None, answers: pl.DataFrame | None = None,
) -> Run:  # fmt: skip
    """Take votes through every stage: fit, entropy, audit of rules, outliers, checks.

    The priors are those of the options, unless they are given; answers are checked labels that are taken for gold.
    """
    refuse_forked()
    with without_warnings():
        with watch.timing("read"):
            progress("reading", 0.0)
            votes = read() if answers is None else votes_with_answers(read(), answers)
            roles = roles_at_audit(votes, options.judges.roles)
        evidence, with_texts = None, votes.texts is not None and votes.n_items >= FEWEST_TEXTS
        if options.use_text != "off" and (with_texts or options.use_text is not None):
            with watch.timing("texts"):
                # Late: scikit-learn takes a second to load.
                from moral_entropy.train.texts import weigh_texts

                progress("texts", 0.0)
                evidence = weigh_texts(votes, options.use_text, advance=partial(progress, "texts"))
        with watch.timing("fit"):
            priors = priors or priors_for(votes, options.priors)
            item_priors = evidence.item_priors if evidence else None
            consensus = fit(votes, options.fit, priors=priors, item_priors=item_priors, progress=progress)
            if options.fit.use_gold:
                recalibrate_beside_evidence(consensus, item_priors)
        extra: dict[str, pl.DataFrame] = {}
        facts: dict[str, Any] = {}
        between, seed = None, options.fit.seed
        if options.groups.annotator_group:
            # Late: most audits have no groups, and SciPy's statistics take long to load.
            from moral_entropy.groups.table import study_groups

            with watch.timing("groups"):
                progress("groups", 0.0)
                extra, facts["groups"], between = study_groups(consensus, options.groups)
        with watch.timing("entropy"):
            entropies = item_entropies(consensus, between)
            sums = entropy_sums(consensus, entropies)
        with watch.timing("audit"):
            graded = grade_rules(consensus, options.grade, seed=seed, advance=partial(progress, "auditing"))
        with watch.timing("outliers"):
            outliers = find_outliers(consensus, entropies, advance=partial(progress, "outliers"))
        with watch.timing("checks"):
            labels = label_facts(consensus)
            findings = run_checks(consensus, seed=seed, advance=partial(progress, "checking"))
            role_by_judge = {row["judge"]: row["role"] for row in roles["judges"]} if roles else {}
            if has_gold(votes):
                findings += [*gold_findings(graded.frame), *recalibration_findings(consensus)]
            findings += judge_findings(votes, role_by_judge)
            if any(fit.ballot.levels is not None for fit in consensus.fits):
                rating_tables, rating_findings = study_ratings(consensus)
                findings, extra = [*findings, *rating_findings], extra | rating_tables
        if evidence:
            with watch.timing("texts"):
                text_tables, text_findings = study_texts(consensus, evidence, options)
                findings, facts["text_worth"] = [*findings, *text_findings], evidence.facts
                extra = extra | text_tables
        findings = mute(findings, options.verdict.ignore) if options.verdict.ignore else findings
        small = small_tables(consensus, sums, graded, outliers, findings, extra)
        if answers is not None:
            small["spot_checks"] = answers.cast({"item": votes.items.dtype})
        tables = item_tables(consensus, entropies) | small
    alarms = warning_sentences(findings)
    manifest = manifest_facts(consensus, sums, options, command=command, warnings=alarms, seconds=watch.seconds)
    manifest |= {"advice": graded.advice.text, "best_rule": graded.advice.best, **facts}
    manifest["questions"] = [fact | label for fact, label in zip(manifest["questions"], labels, strict=True)]
    if roles is not None:
        manifest |= {"roles": roles, "notes": [*manifest["notes"], f"{roles['said']}."]}
    return Run(manifest, tables, consensus=consensus)


def recalibrate_beside_evidence(consensus: Consensus, item_priors: ItemPriors | None = None) -> None:
    """Recalibrate p by labels that were evidence in the fit: by what the same votes say of these items without them."""
    options = replace(consensus.options, use_gold=False, draws=0)
    before = fit(consensus.votes, options, priors=consensus.priors, item_priors=item_priors)
    for fitted, earlier in zip(consensus.fits, before.fits, strict=True):
        known_i, gold_i = fitted.known_i, fitted.ballot.gold_i
        p_ik = np.concatenate([earlier.p_ik[known_i], fitted.p_ik])
        both_i = np.concatenate([gold_i[known_i], np.full(len(gold_i), UNKNOWN, dtype=gold_i.dtype)])
        new_ik, recalibration = recalibrate(p_ik, both_i, seed=consensus.options.seed)
        new_ik = np.where(known_i[:, None], fitted.p_ik, new_ik[known_i.sum() :])
        vars(fitted)["recalibrated"] = (new_ik, recalibration) if known_i.any() else None


def settle(
    run: Run, out: str | Path | None = None, *, force: bool = False, command: str = "", progress: Progress | None = None
) -> Run:
    """Audit the votes of a run again, its checked labels being evidence, and return the new run.

    Checked labels are the answers there, p of the others is recalibrated by them (`p_calibrated`), and `next` asks for
    no vote on them. What the checks said of the earlier labels is kept: the new ones agree with the answers.

    Parameters
    ----------
    run
        The run, with answers.
    out
        The new run folder; None for a run in memory.
    force, command, progress
        As in `audit`.
    """
    answers = spot_checks(run).drop_nulls("answer")
    if answers.is_empty():
        msg = f"no label of {run.where} was checked. Fill in a sheet first: moral-entropy spot-check."
        raise UsageError(msg)
    options = from_plain(AuditOptions, run.manifest["options"], MANIFEST)
    options = options.changed({"gold_as_evidence": True, "spot_check": (), "decisions": None}, "settle")
    watch, progress, priors = Stopwatch(), progress or silent, priors_of(run.manifest)
    new = make_run(partial(read_run_votes, run), options, command, watch, progress, priors, answers)
    facts = {name: run.manifest[name] for name in ("input", "columns", "guessed", "rows", "dropped", "notes")}
    new = replace(new, manifest=new.manifest | facts)
    if out is None:
        return new
    with writing(out, force=force, inputs=()) as folder:
        return write_run(new, folder, Path(out), watch, progress)


def votes_with_answers(votes: Votes, answers: pl.DataFrame) -> Votes:
    """Return votes with checked labels as gold; refuse answers about other items, or with other labels."""
    names = votes.items.cast(pl.String).to_list()
    by_item = {(question, str(item)): answer for question, item, answer in
               answers.select("question", "item", "answer").iter_rows()}  # fmt: skip
    ballots, n_answers = [], len(by_item)
    for ballot in votes.ballots:
        gold_i = ballot.gold_i.copy()
        for i, item in enumerate(ballot.item_i.tolist()):
            if by_item.get((ballot.question, names[item])) in ballot.labels:
                gold_i[i] = ballot.labels.index(by_item.pop((ballot.question, names[item])))
        ballots.append(replace(ballot, gold_i=gold_i))
    for (question, item), answer in by_item.items():
        msg = (
            f"{len(by_item):,} of {n_answers:,} decisions are about items or labels that these votes do not have. "
            f"First: item {item!r} of question {question!r} is {answer!r}. Read the votes as the run did: --settings."
        )
        raise VotesError(msg)
    return replace(votes, ballots=tuple(ballots))


def study_texts(consensus: Consensus, evidence: Any, options: AuditOptions) -> Any:
    """Say where votes and texts disagree, and for whom texts are worth most."""
    from moral_entropy.train.texts import text_tables

    groupings = read_groupings(consensus.votes, options.groups)
    return text_tables(consensus, evidence, {by.column: (by.names, by.group_a) for by in groupings})


def read_for_audit(source: Any, options: AuditOptions) -> Votes:
    """Read votes, with the columns that groups and judges need."""
    reading = options.read if options.fit_by is None else replace(options.read, facts=(options.fit_by,))
    of_groups = columns_to_keep(options.groups) if options.groups.annotator_group else ()
    if to_keep := (*of_groups, *options.judges.columns):
        reading = replace(reading, keep=tuple(dict.fromkeys((*reading.keep, *to_keep))))
    votes = source if isinstance(source, Votes) else read_votes(source, reading)
    return votes if options.fit_by is None else votes.split_by(options.fit_by)


def run_validation(
    run: str | Path, options: ValidationOptions | None = None, *, progress: Progress | None = None
) -> tuple[list[Finding], str]:
    """Check the consensus of a run, and write findings.parquet and the report into its folder.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    options
        What to check; everything when not given.
    progress
        Called with the name of the check and the share of it done.

    Returns
    -------
    tuple
        What was found this time, in the order of the checks; and the verdict in words, on all findings of the run.
        Findings of checks that were not asked for are kept from earlier.
    """
    options, progress = options or ValidationOptions(), progress or silent
    names = check_names(options.checks) if options.checks is not None else tuple(CHECKS)
    opened = read_run(run)
    progress("fitting", 0.0)
    consensus = reload_consensus(opened)
    findings: list[Finding] = []
    for name in names:
        required, advance = options.checks is not None, partial(progress, name)
        findings += run_check(consensus, name, required=required, advance=advance, **vars(options))
    if "gold" in names:
        findings += gold_findings(opened.rules)
    add_findings(opened, findings)
    change_manifest(opened.folder, validated=sorted({*opened.manifest.get("validated", ()), *names}))
    if (opened.folder / "report.html").is_file():
        write_report(opened.folder)
    return findings, verdict(read_findings(opened))
