"""Sums of the posterior over the items of each cell, from which every grade is computed.

Takes cells and fits; one streaming pass over items and draws returns `CellSums`. Draws × items is never held. The
first column is the published p; then come those of `EXPLANATIONS` where they are asked for, then the model's draws.
Grades of the first column are the figures, grades of the others make their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from scipy.special import entr

from moral_entropy.consensus.draws import log_ratios, state_draws
from moral_entropy.consensus.fitted import PartFit
from moral_entropy.consensus.item_classes import place_of
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.threads import over_blocks
from moral_entropy.names import EXPLANATIONS
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.cells import Membership
from moral_entropy.rules.explanations import explain, one_label_posteriors
from moral_entropy.ties import labels_of
from moral_entropy.votes.table import Floats, Ints

TILE = 64
"""Draws computed together: few enough for the cache of a core; every thread takes tiles of its own."""

UNITS_AT_ONCE = 65_536
"""Units whose resampled weights are held at once."""

MAX_NUMBERS = 150_000_000
"""Largest number of cells × draws × sums; with more cells than that allows, only every n-th draw is used."""


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the items of each cell. Axes: **c** cell, **s** column: the published p, explanations, then draws.

    Parameters
    ----------
    weight_cs
        Number of items.
    positive_cs
        Number of those that the consensus says yes to: p >= ½, of more than two labels the likeliest.
    p_cs, p2_cs, entropy_cs, doubt_cs
        Sums of p, of its square, of its entropy in nats, and of min(p, 1 - p).
    """

    weight_cs: Floats
    positive_cs: Floats
    p_cs: Floats
    p2_cs: Floats
    entropy_cs: Floats
    doubt_cs: Floats

    def runs(self, order_c: Ints, start_l: Ints) -> CellSums:
        """Add up cells, in the order `order_c`, to levels that begin at `start_l`."""
        return self._each(lambda sum_cs: np.add.reduceat(sum_cs[order_c], start_l, axis=0)[None])

    def sides(self, yes_rc: Floats) -> CellSums:
        """Add up cells to two levels per rule: where it says no, and where it says yes."""
        n_rules, n_cells = yes_rc.shape
        side_xc = np.stack([1.0 - yes_rc, yes_rc], axis=1).reshape(-1, n_cells)
        return self._each(lambda sum_cs: product(side_xc, sum_cs).reshape(n_rules, 2, -1))

    def take(self, cell_c: Ints) -> CellSums:
        """Keep only some cells."""
        return self._each(lambda sum_cs: sum_cs[cell_c])

    def _each(self, change: Callable[[Floats], Floats]) -> CellSums:
        # Against gold several sums are the same array, which is changed only once.
        given = [getattr(self, one.name) for one in fields(self)]
        changed = {at: change(sum_cs) for at, sum_cs in {id(sum_cs): sum_cs for sum_cs in given}.items()}
        return CellSums(*(changed[id(sum_cs)] for sum_cs in given))


def product(factor_xc: Floats, sum_cs: Floats) -> Floats:
    """Multiply matrices in a fixed order of cells: the bits of a column do not depend on the number of columns."""
    from moral_entropy.rules.kernels import add_products

    sum_xs = np.zeros((len(factor_xc), sum_cs.shape[1]))
    add_products(np.ascontiguousarray(factor_xc), np.ascontiguousarray(sum_cs), sum_xs)
    return sum_xs


def posterior_sums(
    n_cells: int,
    members: Sequence[Membership],
    *,
    bootstrap: int = 0,
    seed: int = 0,
    threads: int | None = None,
    advance: Advance = ignore,
) -> CellSums:
    """Add up p of all items by cell: as published, under each explanation, and in every draw.

    Parameters
    ----------
    n_cells, members
        How many cells there are, and which items belong to them.
    bootstrap
        If positive, the number of columns; in each, items are resampled, and one posterior draw is used.
    seed
        Seed of the resampling.
    threads
        At most this many threads; the result does not depend on it.
    advance
        Called with the share done.
    """
    n_columns = _columns(n_cells, members, bootstrap)
    first = 1 + len(EXPLANATIONS) * any(member.explained is not None for member in members)
    sum_tcs = np.zeros((6, n_cells, first + n_columns))
    for n, member in enumerate(members):
        # Some items at a time: p under each explanation would be a copy of all.
        for some in member.fit.chunks():
            explained = () if member.explained is None else member.explained(some)
            for column, p_ik in enumerate((member.fit.p_ik[some], *explained)):
                _add_column(member, some, p_ik, sum_tcs[:, :, column])
        if n_columns:
            _add_draws(member, sum_tcs[:, :, first:], bool(bootstrap), (seed, n), threads)
        advance((n + 1) / len(members))
    return CellSums(sum_tcs[5], *sum_tcs[:5])


@dataclass(frozen=True, eq=False)
class Sorting:
    """The cell of every item class, for parts to look up. Axes: **b** ballot, **n** class, **g** group, **t** label.

    Parameters
    ----------
    n_cells
        How many cells there are.
    fact_bnf
        By ballot, the facts of every class; None where every item was sorted on its own.
    group_bn, cell_bgt
        By ballot, the group of every class (or item), and the cells of every group.
    """

    n_cells: int
    fact_bnf: Sequence[Ints] | None
    group_bn: Sequence[Ints]
    cell_bgt: Sequence[Ints]

    def members(self, one: PartFit, one_label: Sequence[Parameters] = ()) -> list[Membership]:
        """Find the cells of one part's items; with p under each explanation where the paper's model was fitted, too."""
        fits = one.consensus.fits
        members = [Membership(fit, self._groups(one, b), self.cell_bgt[b]) for b, fit in enumerate(fits)]
        if not one_label:
            return members
        paper = one_label_posteriors(one.part, one_label)
        return [
            replace(member, explained=partial(explain, member.fit, p_ik))
            for member, p_ik in zip(members, paper, strict=True)
        ]

    def _groups(self, one: PartFit, b: int) -> Ints:
        if self.fact_bnf is None:
            return self.group_bn[b]
        own, class_i = one.part.classes[b]
        group_m = self.group_bn[b][place_of(own.fact_nf, self.fact_bnf[b])]
        # Groups are few: 16 bits per item are enough nearly always.
        return np.asarray((group_m.astype(np.uint16) if len(self.cell_bgt[b]) <= 1 << 16 else group_m)[class_i])


def sums_of_part(
    one: PartFit,
    sorting: Sorting,
    costs: tuple[float, float],
    bootstrap: int,
    seed: int,
    advance: Advance,
    *one_label: Parameters,
) -> tuple[Floats, ...]:
    """Add up p of one part's items by cell, the cost of deciding by p, and `changed_labels`."""
    members, n_cells = sorting.members(one, one_label), sorting.n_cells
    sums = posterior_sums(n_cells, members, bootstrap=bootstrap, seed=seed, threads=one.part.threads, advance=advance)
    columns = (getattr(sums, column.name) for column in fields(CellSums))
    return (*columns, cost_of_p(members, n_cells, costs), changed_labels(members, n_cells))


def cost_of_p(members: Sequence[Membership], n_cells: int, costs: tuple[float, float]) -> Floats:
    """Add up by cell the expected cost of deciding every item by its p: the cheaper of yes and no."""
    of_p_c, (wrong_yes, wrong_no) = np.zeros(n_cells), costs
    for member in members:
        for t, target in enumerate(member.targets):
            p_i = member.fit.p_ik[:, target]
            cost_i = member.fit.ballot.count_i * np.minimum(wrong_yes * (1.0 - p_i), wrong_no * p_i)
            of_p_c += np.bincount(member.cell_gt[member.group_i, t], weights=cost_i, minlength=n_cells)
    return of_p_c


def changed_labels(members: Sequence[Membership], n_cells: int) -> Floats:
    """Count by cell the items whose label would be another if every item had one true label; each item once."""
    changed_c = np.zeros(n_cells)
    for member in members:
        if (explained := member.explained) is None:
            continue
        for some in member.fit.chunks():
            _, one_label_ik, _ = explained(some)
            other_i = labels_of(one_label_ik, member.fit.ballot.positive) != member.fit.label_i[some]
            weight_i = member.fit.ballot.count_i[some] * other_i
            changed_c += np.bincount(member.cell_gt[member.group_i[some], 0], weights=weight_i, minlength=n_cells)
    return changed_c


def _columns(n_cells: int, members: Sequence[Membership], bootstrap: int) -> int:
    wanted = bootstrap or min((member.fit.n_draws for member in members), default=0)
    return min(wanted, max(20, MAX_NUMBERS // (6 * max(n_cells, 1))))


def _add_column(member: Membership, some: slice, p_ik: Floats, sum_tc: Floats) -> None:
    """Add the p of some items to one column."""
    ballot, label_i = member.fit.ballot, labels_of(p_ik, member.fit.ballot.positive)
    for t, target in enumerate(member.targets):
        cell_i = member.cell_gt[member.group_i[some], t]
        p_i = p_ik[:, target]
        yes_i = label_i == target
        entropy_i = entr(p_i) + entr(1.0 - p_i)
        for at, value_i in enumerate((yes_i, p_i, p_i * p_i, entropy_i, np.minimum(p_i, 1.0 - p_i), 1.0)):
            sum_tc[at] += np.bincount(cell_i, weights=ballot.count_i[some] * value_i, minlength=sum_tc.shape[1])


def _add_draws(member: Membership, sum_tcs: Floats, resample: bool, seed: tuple[int, int], threads: int | None) -> None:
    row_u, group_u, weight_u = _units(member)
    n_columns = sum_tcs.shape[2]
    add = _adder(member, n_columns)

    def run(first: int, last: int) -> None:
        for tile in range(first, last):
            at = slice(tile * TILE, min((tile + 1) * TILE, n_columns))
            add_units = add(at)
            part_tcs = np.zeros((*sum_tcs.shape[:2], at.stop - at.start))
            for begin in range(0, len(row_u), UNITS_AT_ONCE):
                some = slice(begin, begin + UNITS_AT_ONCE)
                weight_us = weight_u[some, None]
                if resample:
                    rng = np.random.default_rng([*seed, tile, begin])
                    weight_us = rng.poisson(weight_us, (len(weight_us), at.stop - at.start)).astype(float)
                cell_ut = member.cell_gt[group_u[some]]
                add_units(row_u[some], cell_ut, weight_us, part_tcs)
            sum_tcs[:, :, at] += part_tcs

    over_blocks(run, -(-n_columns // TILE), threads)


def _units(member: Membership) -> tuple[Ints, Ints, Floats]:
    """Put items with the same votes in the same group into one unit; return row, group and weight, ordered by group."""
    patterns, count_i = member.fit.patterns, member.fit.ballot.count_i
    if not patterns.collapsed:
        # Every item is a unit; sorting 16-bit numbers, where they are enough, takes almost no time.
        narrow = member.group_i.astype(np.uint16, copy=False) if len(member.cell_gt) <= 1 << 16 else member.group_i
        order_u = np.argsort(narrow, kind="stable")
        return order_u, member.group_i[order_u], count_i[order_u]
    row_i, n_rows = patterns.row_i.astype(np.int64), patterns.n_rows
    key_u, unit_i = np.unique(member.group_i.astype(np.int64) * n_rows + row_i, return_inverse=True)
    weight_u: Floats = np.bincount(unit_i, weights=count_i, minlength=len(key_u)).astype(float)
    return key_u % n_rows, key_u // n_rows, weight_u


def _adder(member: Membership, n_columns: int) -> Callable[[slice], Callable[..., None]]:
    """Return what gives, for some columns, the function that adds units with their draws."""
    fit = member.fit
    at_s = _draws_of_columns(fit.n_draws, n_columns)
    if fit.mixture is not None:
        mixture = fit.mixture
        weight_sdg = mixture.weight_sdg[at_s] if fit.n_draws else _repeated(mixture.weight_dg, n_columns)
        confusion_sakv = fit.confusion_sakv[at_s] if fit.n_draws else _repeated(fit.confusion_akv, n_columns)

        def mixed(at: slice) -> Callable[..., None]:
            return partial(_add_mixed, member, state_draws(mixture.states, weight_sdg[at], confusion_sakv[at]))

        return mixed
    prevalence_sk = fit.prevalence_sk[at_s] if fit.n_draws else _repeated(fit.prevalence_k, n_columns)
    evidence_sakv = fit.evidence_sakv[at_s] if fit.n_draws else _repeated(fit.evidence_akv, n_columns)

    def plain(at: slice) -> Callable[..., None]:
        push_cks, base_ks = log_ratios(prevalence_sk[at], evidence_sakv[at])
        return partial(_add_plain, member, push_cks, base_ks)

    return plain


def _draws_of_columns(n_draws: int, n_columns: int) -> Ints | slice:
    """Choose one draw per column: evenly spaced draws if there are more, repeated ones if fewer."""
    if n_columns == n_draws:
        # No copy: the draws of very many annotators are the largest array there is.
        return slice(None)
    if n_columns < n_draws:
        return np.arange(n_columns) * n_draws // n_columns
    return np.arange(n_columns) % max(n_draws, 1)


def _repeated(one: Floats, n_columns: int) -> Floats:
    return np.broadcast_to(one, (n_columns, *one.shape))


def _add_mixed(member: Membership, draws: tuple[Floats | Ints, ...], *units: Floats | Ints) -> None:
    """Add units of items that may lie between labels."""
    from moral_entropy.rules import kernels

    patterns = member.fit.patterns
    rows = (patterns.start_r, patterns.code_v, patterns.clamp_r, patterns.domain_r)
    *given, part_tcs = units
    kernels.mixed_cells(*rows, *given, member.targets[0], *draws, part_tcs)


def _add_plain(member: Membership, push_cks: Floats, base_ks: Floats, *units: Floats | Ints) -> None:
    """Add units of items that have one true label."""
    from moral_entropy.rules import kernels

    patterns = member.fit.patterns
    rows = (patterns.start_r, patterns.code_v, patterns.clamp_r)
    row_u, cell_ut, weight_us, part_tcs = units
    if patterns.n_labels == 2:
        sign = 1.0 if member.targets[0] == 1 else -1.0
        one = (np.ascontiguousarray(push_cks[:, 0]), base_ks[0], sign)
        kernels.binary_cells(*rows, row_u, np.ascontiguousarray(cell_ut[:, 0]), weight_us, *one, part_tcs)
    else:
        kernels.general_cells(*rows, row_u, cell_ut, weight_us, push_cks, base_ks, part_tcs)


def gold_sums(n_cells: int, members: Sequence[Membership], *, replicates: int, seed: int = 0) -> CellSums:
    """Add up gold labels by cell, as they are and with items resampled: the same sums with p either 0 or 1.

    Parameters
    ----------
    n_cells, members
        How many cells there are, and which items belong to them.
    replicates
        Number of columns in which items are resampled. Numbers of items per group and label are Poisson, so one draw
        resamples a whole group.
    seed
        Seed of the resampling.
    """
    all_cs, yes_cs = np.zeros((2, n_cells, replicates + 1))
    for n, member in enumerate(members):
        rng = np.random.default_rng([seed, n, 1])
        all_gs = np.zeros((len(member.cell_gt), replicates + 1))
        for label in range(member.fit.ballot.n_labels):
            # One draw per group and label, shared by all targets: an item is resampled whole.
            items_gs = resampled(_gold_items(member, label), replicates, rng)
            all_gs += items_gs
            for t in (t for t, target in enumerate(member.targets) if target == label):
                np.add.at(yes_cs, member.cell_gt[:, t], items_gs)
        for t in range(len(member.targets)):
            np.add.at(all_cs, member.cell_gt[:, t], all_gs)
    return sums_of_known(all_cs, yes_cs)


def _gold_items(member: Membership, label: int) -> Floats:
    ballot = member.fit.ballot
    weight_i = ballot.count_i * (ballot.gold_i == label)
    return np.bincount(member.group_i, weights=weight_i, minlength=len(member.cell_gt)).astype(float)


def resampled(items_g: Floats, replicates: int, rng: np.random.Generator) -> Floats:
    """Return the numbers of items in the first column, and resampled numbers in the columns after it."""
    return np.column_stack([items_g, rng.poisson(items_g[:, None], (len(items_g), replicates))])


def sums_of_known(all_cs: Floats, yes_cs: Floats) -> CellSums:
    """Return the sums where p is either 0 or 1, so that entropies are 0."""
    nothing_cs = np.broadcast_to(0.0, yes_cs.shape)
    return CellSums(all_cs, yes_cs, yes_cs, yes_cs, nothing_cs, nothing_cs)
