"""Parts and a consensus → the audit of rules: sums over items with the workers, grades here.

Cells come from the kinds of items, which are few and known here; what the posterior says of the items of each cell is
added up part by part. Items with gold are fetched, since the consensus itself is graded by every one's p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from moral_entropy.audit.advice import Costs, advise, cost_of_p
from moral_entropy.audit.calibration import reliability
from moral_entropy.audit.cells import Cells, Membership, sort_into_cells, targets_of
from moral_entropy.audit.groups import Grading, Names, Rows
from moral_entropy.audit.rules import as_rules
from moral_entropy.audit.sums import CellSums, gold_sums, posterior_sums
from moral_entropy.audit.table import (
    REPLICATES,
    AuditTable,
    as_frame,
    check_options,
    default_rules,
    grade_consensus,
    has_gold,
    names_of,
    rule_frame,
)
from moral_entropy.audit.votes_dependence import MAX_ROWS, Silence, any_rule_by_votes
from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.fit import Found
from moral_entropy.cluster.judged import Judged
from moral_entropy.cluster.kinds import Kinds, facts_of, place_of, votes_of_kinds
from moral_entropy.consensus.patterns import as_rows
from moral_entropy.consensus.result import Consensus, DrawSummary, QuestionFit
from moral_entropy.errors import UsageError
from moral_entropy.pipeline.options import GradeOptions
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

if TYPE_CHECKING:
    from distributed import Future


def condense(votes_consensus: Consensus, found: Sequence[Found], mean_bik: Sequence[Floats] | None = None) -> Consensus:
    """Give a consensus on a few items, with parameters found on all; p only where it is given."""
    fits = []
    for b, (ballot, one) in enumerate(zip(votes_consensus.votes.ballots, found, strict=True)):
        unknown_ik = np.full((ballot.n_items, ballot.n_labels), np.nan)
        unknown_i = unknown_ik[:, 0]
        mean_ik = unknown_ik if mean_bik is None else mean_bik[b]
        summary = DrawSummary(mean_ik, unknown_i, unknown_i, unknown_i)
        fits.append(
            one.of_items(ballot, as_rows(ballot, np.full(ballot.n_items, UNKNOWN, dtype=np.int16)), mean_ik, summary)
        )
    return replace(votes_consensus, fits=tuple(fits))


@dataclass(frozen=True, eq=False)
class Sorting:
    """Which cell the items of each kind belong to. Axes: **b** ballot, **n** kind, **f** fact, **t** label."""

    cells: Cells
    fact_bnf: Sequence[Ints]
    cell_bnt: Sequence[Ints]


def grade_parts(
    crew: Crew,
    judged: Sequence[Future[Any]],
    consensus: Consensus,
    found: Sequence[Found],
    kinds: Sequence[Kinds],
    options: GradeOptions,
) -> AuditTable:
    """Grade consensus rules, as `audit_rules` does.

    Parameters
    ----------
    crew, judged
        The workers, and the parts with what the fit says of them.
    consensus
        On an item a kind.
    found
        The parameters of every ballot.
    kinds
        Of every ballot's items.
    options
        How to grade.
    """
    if options.bootstrap:
        msg = "--bootstrap resamples items one by one, which needs one machine. Leave it out with --cluster."
        raise UsageError(msg)
    votes, names = consensus.votes, names_of(consensus.votes, consensus)
    asked = as_rules(default_rules(votes) if options.rules is None else options.rules)
    check_options(votes, asked, "auto", options.smoothing, 0)
    costs = Costs(*options.costs)
    cells, members = sort_into_cells(votes, consensus, asked)
    sorting = Sorting(cells, [one.fact_nf for one in kinds], [one.cell_gt[one.group_i] for one in members])
    *columns, of_p_c = crew.total(crew.each(sums_of_part, judged, crew.ask(_same, sorting), costs))
    sums = CellSums(*columns)
    graded = Grading("consensus", asked, cells, sums, names, options.smoothing, consensus.interval, resampled=False)
    rows, known = [graded.rows()], consensus
    if has_gold(votes):
        known = gold_consensus(crew, judged, consensus, found)
        rows += _grade_gold(graded, members, known, consensus.seed)
    return AuditTable(
        frame=as_frame(Rows.joined(rows)),
        rules=rule_frame(asked, cells, sums, names),
        any_by_votes=_by_votes(crew, judged, graded, members),
        reliability=reliability(known, mass=consensus.interval),
        advice=advise(cells, sums, of_p_c, names, costs),
        interval=consensus.interval,
        bootstrap=0,
    )


def _same(value: Any) -> Any:
    return value


def sums_of_part(judged: Judged, sorting: Sorting, costs: Costs) -> tuple[Floats, ...]:
    """Add up by cell what the posterior says of one part's items, and what deciding by p costs."""
    votes = judged.consensus.votes
    members = [
        Membership(fit, targets_of(fit.ballot), place_of(facts_of(votes, fit.ballot), fact_nf), cell_nt)
        for fit, fact_nf, cell_nt in zip(judged.consensus.fits, sorting.fact_bnf, sorting.cell_bnt, strict=True)
    ]
    sums = posterior_sums(sorting.cells, members, threads=1)
    columns = (getattr(sums, one.name) for one in fields(CellSums))
    return (*columns, cost_of_p(members, sorting.cells.n_cells, costs))


def _grade_gold(graded: Grading, members: Sequence[Membership], known: Consensus, seed: int) -> list[Rows]:
    gold = gold_sums(graded.cells, members, replicates=REPLICATES, seed=seed)
    against_gold = replace(graded, reference="gold", sums=gold, resampled=True)
    return [against_gold.rows(), grade_consensus(known.votes, known, against_gold, REPLICATES, seed)]


def gold_consensus(
    crew: Crew, judged: Sequence[Future[Any]], consensus: Consensus, found: Sequence[Found]
) -> Consensus:
    """Fetch the items with gold, and give the consensus on them."""
    fetched = crew.fetch_all(crew.each(gold_of_part, judged))
    kinds, mean_bik, clamps = [], [], []
    for fact_nf, weight_n, mean_nk, clamp_n in (
        map(np.concatenate, zip(*one, strict=True)) for one in _by_ballot(fetched)
    ):
        kinds.append(Kinds(fact_nf, weight_n))
        mean_bik.append(mean_nk)
        clamps.append(clamp_n)
    votes = votes_of_kinds(consensus.votes, kinds, [ballot.votes_a for ballot in consensus.votes.ballots])
    known = condense(replace(consensus, votes=votes), found, mean_bik)
    fits = (
        replace(fit, patterns=replace(fit.patterns, clamp_r=clamp_r))
        for fit, clamp_r in zip(known.fits, clamps, strict=True)
    )
    return replace(known, fits=tuple(fits))


def _by_ballot(fetched: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(several) for several in zip(*fetched, strict=True)]


def gold_of_part(judged: Judged) -> list[tuple[Ints, Floats, Floats, Ints]]:
    """Give, by ballot, facts, weight, p and clamp of the items with gold; and of one without, as a whole has some."""
    found = []
    for fit in judged.consensus.fits:
        gold_i = fit.ballot.gold_i
        some = np.concatenate([np.flatnonzero(gold_i != UNKNOWN), np.flatnonzero(gold_i == UNKNOWN)[:1]])
        fact_nf = facts_of(judged.consensus.votes, fit.ballot)[some]
        clamp_n = fit.patterns.clamp_r[fit.patterns.row_i[some]]
        found.append((fact_nf, fit.ballot.count_i[some], fit.summary.mean_ik[some], clamp_n))
    return found


@dataclass(frozen=True, eq=False)
class GatheredSilence(Silence):
    """Chances of silence whose votes lie with the workers; `heard` has them by number of votes."""

    heard: Mapping[int, tuple[Floats, float, float]]

    def by_voters(self, votes: int) -> tuple[Floats, float] | None:
        """Mean chance of silence from those who voted on items of that many votes, and how many there are."""
        if votes not in self.heard:
            return None
        sum_s, of_some, of_all = self.heard[votes]
        return sum_s / of_some, of_all


def _by_votes(crew: Crew, judged: Sequence[Future[Any]], graded: Grading, members: Sequence[Membership]) -> Any:
    place = {id(member.fit): b for b, member in enumerate(members)}
    rows_pb = crew.fetch_all(crew.each(rows_by_votes, judged))

    def gathered(fit: QuestionFit, target: int) -> Silence:
        b = place[id(fit)]
        rows_pv = [rows_b[b] for rows_b in rows_pb]
        return GatheredSilence(fit, target, _heard(crew, judged, b, target, rows_pv))

    names: Names = graded.names
    return any_rule_by_votes(graded.cells, graded.sums, members, names, mass=graded.mass, silence=gathered)


def _heard(
    crew: Crew, judged: Sequence[Future[Any]], b: int, target: int, rows_pv: Sequence[Mapping[int, int]]
) -> dict[int, tuple[Floats, float, float]]:
    """Add up the chances of silence by number of votes; of very many rows, evenly spaced ones as on one machine."""
    total_v = {v: sum(rows_v.get(v, 0) for rows_v in rows_pv) for v in sorted(set().union(*rows_pv))}
    step_v = {v: -(-n // MAX_ROWS) for v, n in total_v.items()}
    before_v = dict.fromkeys(total_v, 0)
    asked = []
    for part, rows_v in zip(judged, rows_pv, strict=True):
        first_v = {v: -before_v[v] % step_v[v] for v in rows_v}
        asked.append(crew.ask(silence_of_part, part, b, target, first_v, step_v))
        before_v |= {v: before_v[v] + n for v, n in rows_v.items()}
    heard: dict[int, tuple[Floats, float, float]] = {}
    for one in crew.fetch_all(asked):
        for v, (sum_s, of_some, of_all) in one.items():
            so_far = heard.get(v, (0.0, 0.0, 0.0))
            heard[v] = (so_far[0] + sum_s, so_far[1] + of_some, so_far[2] + of_all)
    return heard


def rows_by_votes(judged: Judged) -> list[dict[int, int]]:
    """Count the rows of each ballot by their number of votes."""
    found = []
    for own in judged.own:
        votes_r = np.diff(own.patterns.start_r)[own.patterns.weight_r > 0]
        number_u, n_u = np.unique(votes_r[votes_r > 0], return_counts=True)
        found.append(dict(zip(number_u.tolist(), n_u.tolist(), strict=True)))
    return found


def silence_of_part(
    judged: Judged, b: int, target: int, first_v: Mapping[int, int], step_v: Mapping[int, int]
) -> dict[int, tuple[Floats, float, float]]:
    """Add up one part's chances of silence over some rows; how many items those are, and how many all are."""
    silence = Silence(replace(judged.consensus.fits[b], patterns=judged.own[b].patterns), target)
    weight_r = silence.fit.patterns.weight_r
    heard = {}
    for votes, first in first_v.items():
        row_r = silence.rows_with(votes)
        some_r = row_r[first :: step_v[votes]]
        sum_s = silence.of_rows(some_r, votes) @ weight_r[some_r]
        heard[votes] = (sum_s, float(weight_r[some_r].sum()), float(weight_r[row_r].sum()))
    return heard
