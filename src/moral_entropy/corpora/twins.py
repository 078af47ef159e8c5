"""Twins of the three moral corpora: simulated votes with the shape of the published ones, texts and the truth.

In: the name of a corpus and a seed. Out: a long table of votes, as a dataframe or a Parquet file. The facts that twins
follow, and where they are from, are in `data/corpora.toml`. Whatever is solved for is solved so that the any rule flags
as many texts of every domain and foundation as in the paper's table "Corpora"; no rate of a rule and no entropy is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.option_fields import did_you_mean
from moral_entropy.votes.table import Floats, Ints

LEAST_YOUDEN = 0.1
"""How much better than chance every annotator is at least."""

BETWEEN = 1 / 3
"""Part of the yes texts of a cell that lie between the labels; as many of its no texts do."""

LEAST_TRUE = 0.25
"""Least prevalence of a cell, as a part of the share that the any rule flags."""

DIGITS = 6
"""Parameters are rounded to these digits, so that no vote depends on the last bit of a processor's arithmetic."""

MOST_SHIFT = 20.0
"""Logits that take any specificity to 1."""

CUE_KEPT, CUE_FALSE = 0.8, 0.05
"""Chance that a text carries a cue of a foundation that is clearly in it, and of one that is clearly not."""

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, fill the unit interval evenly."""

Facts = dict[str, Any]
Flags = NDArray[np.bool_]


def corpus_facts(name: str) -> Facts:
    """Return what the paper says of a corpus, from `data/corpora.toml`, and the names of the `foundations`.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd", in any case.

    Examples
    --------
    >>> corpus_facts("mftc")["annotators"]
    23
    >>> corpus_facts("mtfc")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no twin of 'mtfc'. Did you mean 'mftc'? Choose from mftc, mfrc, emfd.
    """
    tables = read_data("corpora.toml")
    corpora = [corpus for corpus in tables if corpus != "foundations"]
    if name.lower() not in corpora:
        near = did_you_mean(name.lower(), corpora)
        msg = f"there is no twin of {name!r}.{near} Choose from {', '.join(corpora)}."
        raise UsageError(msg)
    return {"name": name.lower(), "foundations": tables["foundations"], **tables[name.lower()]}


@cache
def read_data(file: str) -> dict[str, Any]:
    """Read a TOML file of `data`."""
    return tomllib.loads((files("moral_entropy.corpora") / "data" / file).read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class DomainVotes:
    """The votes of a domain. Axes: **i** item, **v** annotation, **f** foundation.

    Parameters
    ----------
    place_if
        Where each text lies: 0 is clearly no, 1 clearly yes. Gold is the nearer of the two.
    votes_i
        Annotations of each text.
    annotator_v
        Who made them: those of the first text ascending, then those of the second, and so on.
    yes_vf
        Chance of a yes; in eMFD of a mark of that foundation, the chances of an annotation adding up to 1.
    label_vf
        The votes.
    prevalence_f, shift_f
        Share of the texts on the yes side; and how much more specific everybody is than elsewhere, in logits: 0 where
        the published specificity is possible, and in eMFD.
    """

    place_if: Floats
    votes_i: Ints
    annotator_v: Ints
    yes_vf: Floats
    label_vf: NDArray[np.int8]
    prevalence_f: Floats
    shift_f: Floats


def twin(name: str, *, seed: int = 0, scale: float = 1.0) -> pl.DataFrame:
    """Simulate a corpus: its domains, teams, votes per text and flagged texts, with texts and the truth.

    One row per vote. Columns: item, annotator, question (the foundation), label (0 or 1), domain, text, gold (0 or 1).
    Every annotator of a text votes on all five foundations; in eMFD each says yes to exactly one. In every domain the
    any rule flags each foundation as often as in the paper's table. A third of the yes texts lie between the labels,
    and as many of the no texts: `draw_domain` says how votes depend on the place.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    seed
        Same seed, same table.
    scale
        Share of the items: 0.1 gives a tenth of every domain. Where there is a pool of coders instead of teams
        (eMFD) it shrinks along, so that a coder's workload stays.

    Examples
    --------
    >>> frame = twin("mfrc", scale=0.01)
    >>> frame["item"].n_unique(), frame["annotator"].n_unique(), frame.height
    (180, 6, 2695)
    """
    facts = scaled_facts(name, seed, scale)
    foundations, domains, frames, first = facts["foundations"], facts["domains"], [], 1
    for d, domain in enumerate(domains):
        domain_votes = draw_domain(facts, d, seed)
        texts = write_texts(np.random.default_rng([seed, 4, d]), domain["name"], domain_votes.place_if, foundations)
        item_r = np.repeat(np.arange(domain["items"]), domain_votes.votes_i * len(foundations))
        items = pl.Series([f"{facts['name']}-{number:05d}" for number in range(first, first + domain["items"])])
        annotators = pl.Series([f"A{number:0{facts['width']}d}" for number in range(facts["annotators"])])
        columns = {
            "item": items.gather(item_r),
            "annotator": annotators.gather(np.repeat(domain_votes.annotator_v, len(foundations))),
            "question": pl.Series(foundations * len(domain_votes.annotator_v), dtype=pl.String),
            "label": domain_votes.label_vf.ravel(),
            "domain": pl.repeat(domain["name"], len(item_r), eager=True),
            "text": pl.Series(texts).gather(item_r),
            "gold": np.repeat((domain_votes.place_if > 0.5).astype(np.int8), domain_votes.votes_i, axis=0).ravel(),
        }
        frames.append(pl.DataFrame(columns))
        first += domain["items"]
    return pl.concat(frames)


def write_twin(name: str, path: str | Path, *, seed: int = 0, scale: float = 1.0) -> int:
    """Write a twin to a Parquet file, which appears when it is complete; return how many votes it has.

    Parameters
    ----------
    name, seed, scale
        As in `twin`.
    path
        The file.
    """
    from moral_entropy.files import whole_file

    with whole_file(path) as partial:
        frame = twin(name, seed=seed, scale=scale)
        frame.write_parquet(partial)
    return frame.height


def scaled_facts(name: str, seed: int, scale: float) -> Facts:
    """Return the facts of a corpus with its items, and a pool of coders, scaled; refuse impossible arguments."""
    facts = corpus_facts(name)
    if not 0 < scale <= 5:
        msg = f"the scale is {scale:g}: choose more than 0 and at most 5; 1 is the size of the corpus."
        raise UsageError(msg)
    if seed < 0:
        msg = f"the seed is {seed}: choose 0 or more."
        raise UsageError(msg)
    domains = [{**domain, "items": max(1, round(domain["items"] * scale))} for domain in facts["domains"]]
    annotators = facts["annotators"]
    if "uneven" in facts:
        annotators = max(facts["most_votes"], round(annotators * scale))
    return {**facts, "domains": domains, "annotators": annotators, "width": max(2, len(str(annotators - 1)))}


def draw_domain(facts: Facts, d: int, seed: int = 0) -> DomainVotes:
    """Draw the texts' places and the votes of one domain.

    Places between the labels are spread evenly. In MFTC and MFRC an annotator votes on a text at 0.7 as on a clear
    yes with probability 0.7, as on a clear no with 0.3, and foundations are independent of each other. In eMFD a text
    has one foundation, or lies between two; a mark is of these with their places as chances or, by mistake, of any.

    Parameters
    ----------
    facts
        From `scaled_facts`.
    d
        The domain.
    seed
        Of the twin.
    """
    return (_draw_highlights if "uneven" in facts else _draw_votes)(facts, d, seed)


# --- MFTC and MFRC: everybody answers five questions -----------------------------------------------------------------


def draw_annotators(facts: Facts, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw the chance of every annotator to see a foundation that is there, and to pass over one that is not.

    Returns
    -------
    tuple
        `sensitivity_af` and `specificity_af` on clear texts, spread around rates that give the published means on all.
    """
    rng, shape = np.random.default_rng([seed, 0]), (facts["annotators"], len(facts["foundations"]))
    hit_f, pass_f, prevalence_f = np.array([facts["sensitivity"], facts["specificity"], facts["prevalence"]])
    # The published rates count texts between the labels too, which lie, on average, three quarters of the way to their
    # own label; the rates at the labels solve two linear equations.
    yes_f, no_f = np.full(len(hit_f), BETWEEN / 4), BETWEEN / 4 * prevalence_f / (1 - prevalence_f)
    clear_f = 1 - yes_f - no_f
    hit_f, alarm_f = (
        ((1 - no_f) * hit_f - yes_f * (1 - pass_f)) / clear_f,
        ((1 - yes_f) * (1 - pass_f) - no_f * hit_f) / clear_f,
    )
    hit_votes, alarm_votes = facts["alike"]
    hit_af = rng.beta(hit_votes * hit_f, hit_votes * (1 - hit_f), size=shape)
    alarm_af = rng.beta(alarm_votes * alarm_f, alarm_votes * (1 - alarm_f), size=shape)
    alarm_af = np.minimum(alarm_af, 1 - 2 * LEAST_YOUDEN)
    return np.maximum(hit_af, alarm_af + LEAST_YOUDEN).round(DIGITS), (1 - alarm_af).round(DIGITS)


def _draw_votes(facts: Facts, d: int, seed: int) -> DomainVotes:
    domain, rng = facts["domains"][d], np.random.default_rng([seed, 1, d])
    weight_a = np.ones(facts["annotators"])
    if "team" in domain:
        weight_a[:] = 0.0
        for number, annotations in domain["team"].items():
            weight_a[int(number)] = annotations
    fewest = int(domain["votes_per_item"])
    votes_i = _draw_counts(rng, domain, fewest, fewest + 1)
    annotator_v = assign_in_proportion(rng, votes_i, weight_a)
    sensitivity_af, specificity_af = draw_annotators(facts, seed)
    sensitivity_vf, specificity_vf = sensitivity_af[annotator_v], specificity_af[annotator_v]
    cells = zip(domain["any_rule"], sensitivity_vf.T, specificity_vf.T, strict=True)
    prevalence_f, shift_f = np.array([_solve_cell(*cell, votes_i) for cell in cells]).T
    place_if = _draw_places(np.random.default_rng([seed, 2, d]), domain["items"], prevalence_f)
    alarm_vf = _false_alarms(specificity_vf, shift_f)
    yes_vf = alarm_vf + np.repeat(place_if, votes_i, axis=0) * (sensitivity_vf - alarm_vf)
    label_vf = _draw_labels(np.random.default_rng([seed, 3, d]), votes_i, yes_vf)
    return DomainVotes(place_if, votes_i, annotator_v, yes_vf, label_vf, prevalence_f, shift_f)


def _draw_counts(rng: np.random.Generator, domain: Facts, fewest: int, largest: int) -> Ints:
    # Every text gets the fewest; the rest of the published total falls on places drawn without replacement.
    room = largest - fewest
    n_extra = round((domain["votes_per_item"] - fewest) * domain["items"])
    place_v = rng.choice(domain["items"] * room, size=n_extra, replace=False)
    return np.asarray(fewest + np.bincount(place_v // room, minlength=domain["items"]))


def assign_in_proportion(rng: np.random.Generator, votes_i: Ints, weight_a: Floats) -> Ints:
    """Draw the annotators of each item, all different; over all items each has votes in proportion to its weight.

    Examples
    --------
    >>> annotator_v = assign_in_proportion(np.random.default_rng(0), np.full(1000, 2), np.array([9.0, 9.0, 2.0]))
    >>> np.bincount(annotator_v).tolist()
    [889, 896, 215]
    """
    share_n, goal_a = np.bincount(votes_i) / len(votes_i), votes_i.mean() * weight_a / weight_a.sum()
    # Nobody votes twice on an item: on items of many votes the others must vote more often, and elsewhere less.
    for _ in range(30):
        chance_na = np.array([_inclusion(weight_a, n) for n in range(len(share_n))])
        weight_a = weight_a * goal_a / np.where(goal_a > 0, share_n @ chance_na, 1.0)
    order_ia = rng.permuted(np.tile(np.arange(len(weight_a)), (len(votes_i), 1)), axis=1)
    chance_ia = np.take_along_axis(chance_na[votes_i], order_ia, axis=1)
    item_v, at_v = np.nonzero(_draw_evenly(rng, chance_ia.T).T)
    annotator_v = order_ia[item_v, at_v]
    return np.asarray(annotator_v[np.lexsort((annotator_v, item_v))])


def _inclusion(weight_a: Floats, n: int) -> Floats:
    """Compute chances in proportion to the weights that add up to n, none above 1."""
    chance_a = np.zeros(len(weight_a))
    for _ in weight_a:
        free_a = chance_a < 1
        chance_a[free_a] = (n - (~free_a).sum()) * weight_a[free_a] / weight_a[free_a].sum()
        if chance_a.max() <= 1:
            break
        chance_a = np.minimum(chance_a, 1.0)
    return chance_a


def _draw_evenly(rng: np.random.Generator, chance_if: Floats) -> Flags:
    # Systematic sampling: every row has its chance, and their number is that of the sum of chances but for one.
    reached_if = np.floor(chance_if.cumsum(axis=0) + rng.random(chance_if.shape[1]) + 1e-9)
    return np.diff(reached_if, axis=0, prepend=0.0) > 0


def _draw_places(rng: np.random.Generator, n_items: int, prevalence_f: Floats) -> Floats:
    columns = []
    for prevalence in prevalence_f.tolist():
        n_yes = round(prevalence * n_items)
        n_side = min(round(BETWEEN * n_yes), n_items - n_yes)
        between = (np.arange(2 * n_side) + 0.5) / (2 * n_side or 1)
        clear = np.repeat([0.0, 1.0], [n_items - n_yes - n_side, n_yes - n_side])
        columns.append(rng.permutation(np.concatenate([clear, between])))
    return np.stack(columns, axis=1)


def _draw_labels(rng: np.random.Generator, votes_i: Ints, yes_vf: Floats) -> NDArray[np.int8]:
    """Draw votes that have the given chances, on a number of flagged items that has no noise."""
    first_i = votes_i.cumsum() - votes_i
    # The chance that a vote or a later one on the same item is a yes.
    later_vf = yes_vf.copy()
    for t in range(votes_i.max(initial=0) - 2, -1, -1):
        at_v = first_i[votes_i > t + 1] + t
        later_vf[at_v] = 1 - (1 - yes_vf[at_v]) * (1 - later_vf[at_v + 1])
    flagged_if, uniform_vf = _draw_evenly(rng, later_vf[first_i]), rng.random(yes_vf.shape)
    label_vf = np.zeros(yes_vf.shape, dtype=np.int8)
    # Flagged items that have no yes yet; to get one has then the chance yes/later, which is 1 for the last vote.
    due_if = flagged_if.copy()
    for t in range(votes_i.max(initial=0)):
        open_i = np.flatnonzero(votes_i > t)
        at_v = first_i[open_i] + t
        chance_vf = np.where(due_if[open_i], yes_vf[at_v] / later_vf[at_v], yes_vf[at_v])
        yes_now_vf = flagged_if[open_i] & (uniform_vf[at_v] < chance_vf)
        label_vf[at_v] = yes_now_vf
        due_if[open_i] &= ~yes_now_vf
    return label_vf


def _false_alarms(specificity: Floats, shift: Floats | float) -> Floats:
    # 1 − expit(logit(specificity) + shift), without the logarithm.
    alarm = 1 - specificity
    return np.maximum(np.round(alarm / (alarm + specificity * np.exp(shift)), DIGITS), 10.0**-DIGITS)


def _solve_cell(any_rule: float, sensitivity_v: Floats, specificity_v: Floats, votes_i: Ints) -> Floats:
    """Solve for the prevalence of a cell, and for the shift of specificities, which is 0 if it can be.

    Where false alarms alone flag too many texts, the prevalence is a quarter of the flagged share.
    """
    from scipy.optimize import brentq

    first_i = votes_i.cumsum() - votes_i
    node_n, weight_n = np.polynomial.legendre.leggauss(4)

    def flagged(shift: float) -> tuple[float, float]:
        """Compute the share that somebody is expected to flag: at prevalence 0, and how it grows with it."""
        alarm_v = _false_alarms(specificity_v, shift)

        def share(place: float) -> float:
            silent_v = 1 - alarm_v - place * (sensitivity_v - alarm_v)
            return 1 - float(np.multiply.reduceat(silent_v, first_i).mean())

        # A product of six linear functions at most: four nodes integrate it exactly.
        between = sum(weight / 2 * share((node + 1) / 2) for node, weight in zip(node_n, weight_n, strict=True))
        no, yes = share(0.0), share(1.0)
        return no, (1 - BETWEEN) * yes + 2 * BETWEEN * between - (1 + BETWEEN) * no

    least = LEAST_TRUE * any_rule
    at_zero, slope = flagged(0.0)
    if at_zero + least * slope > any_rule:

        def excess(shift: float) -> float:
            at_zero, slope = flagged(shift)
            return at_zero + least * slope - any_rule

        return np.array([least, brentq(excess, 0.0, MOST_SHIFT, xtol=1e-7)]).round(DIGITS)
    # As many texts lie between the labels on the no side as on the yes side: there must be room for them.
    prevalence = min((any_rule - at_zero) / slope, 1 / (1 + BETWEEN)) if slope > 0 else least
    return np.array([prevalence, 0.0]).round(DIGITS)


# --- eMFD: coders mark passages, each for one foundation -------------------------------------------------------------


def _draw_highlights(facts: Facts, d: int, seed: int) -> DomainVotes:
    domain, n_foundations = facts["domains"][d], len(facts["foundations"])
    votes_i = _draw_counts(np.random.default_rng([seed, 1, d]), domain, 1, facts["most_votes"])
    share_f, mistake = solve_highlights(domain["any_rule"], np.bincount(votes_i) / len(votes_i))
    place_if = _draw_mains(np.random.default_rng([seed, 2, d]), domain["items"], share_f)
    rng, item_v = np.random.default_rng([seed, 3, d]), np.repeat(np.arange(len(votes_i)), votes_i)
    yes_vf = (1 - mistake) * place_if[item_v] + mistake * share_f
    # Texts of one foundation one after the other, in random order: then evenly filled chances leave little noise.
    turn_v = np.arange(len(item_v)) - np.repeat(votes_i.cumsum() - votes_i, votes_i)
    order_v = np.lexsort((rng.random(len(item_v)), place_if.argmax(axis=1)[item_v], turn_v))
    uniform_v = np.empty(len(item_v))
    uniform_v[order_v] = (rng.random() + GOLDEN * np.arange(len(item_v))) % 1.0
    marked_v = np.minimum((yes_vf.cumsum(axis=1) <= uniform_v[:, None]).sum(axis=1), n_foundations - 1)
    careless_v = rng.random(len(item_v)) < mistake * share_f[marked_v] / yes_vf[np.arange(len(item_v)), marked_v]
    coder_v = _draw_coders(rng, facts, seed, item_v, turn_v, careless_v)
    order_v = np.lexsort((coder_v, item_v))
    label_vf = (marked_v[order_v, None] == np.arange(n_foundations)).astype(np.int8)
    prevalence_f = (place_if > 0.5).mean(axis=0)
    return DomainVotes(place_if, votes_i, coder_v[order_v], yes_vf, label_vf, prevalence_f, np.zeros(n_foundations))


def solve_highlights(any_rule: Sequence[float], share_n: Floats) -> tuple[Floats, float]:
    """Solve for the shares of the foundations and of mistaken marks that make the any rule flag what it should.

    Parameters
    ----------
    any_rule
        Share of the texts that are marked for each foundation.
    share_n
        Share of the texts that have 0, 1, 2, … marks.

    Examples
    --------
    Where all texts have one mark, nothing tells mistakes from content, and none are made.

    >>> share_f, mistake = solve_highlights([0.5, 0.5], np.array([0.0, 1.0]))
    >>> share_f.tolist(), mistake
    ([0.5, 0.5], 0.0)
    """
    from scipy.optimize import brentq

    target_f, powers_n = np.asarray(any_rule), np.arange(len(share_n))
    node_u, weight_u = np.polynomial.legendre.leggauss(4)
    main_u = 0.75 + node_u / 4

    def flagged(share_f: Floats, mistake: float) -> Floats:
        """Compute the share of texts that are marked for each foundation."""
        pair_gh = share_f[:, None] * share_f / (1 - share_f[:, None])
        np.fill_diagonal(pair_gh, 0.0)
        eye = np.eye(len(share_f))
        place_guhf = main_u[:, None, None] * eye[:, None, None] + (1 - main_u)[:, None, None] * eye

        def seen(place: Floats) -> Floats:
            missed = 1 - (1 - mistake) * place - mistake * share_f
            return np.asarray(1 - (share_n * missed[..., None] ** powers_n).sum(axis=-1))

        clear_f = share_f @ seen(eye)
        between_f = np.einsum("gh,u,guhf->f", pair_gh, weight_u / 2, seen(place_guhf))
        return np.asarray((1 - BETWEEN) * clear_f + BETWEEN * between_f)

    def shares_at(mistake: float) -> Floats:
        share_f = target_f / target_f.sum()
        for _ in range(200):
            share_f = share_f * (target_f / flagged(share_f, mistake))
            share_f = share_f / share_f.sum()
        return np.asarray(share_f)

    def excess(mistake: float) -> float:
        return float(flagged(shares_at(mistake), mistake).sum() - target_f.sum())

    # Mistakes spread the marks of a text over more foundations.
    ends = [excess(mistake) for mistake in (0.0, 1.0)]
    mistake = 0.0 if ends[0] >= -1e-9 else 1.0 if ends[1] <= 0 else brentq(excess, 0.0, 1.0, xtol=1e-7)
    mistake = round(float(mistake), DIGITS)
    return shares_at(mistake).round(DIGITS), mistake


def _draw_mains(rng: np.random.Generator, n_items: int, share_f: Floats) -> Floats:
    """Place texts at one foundation or, a third of them, between it and another."""
    n_foundations = len(share_f)
    end_f = np.round(n_items * share_f.cumsum() / share_f.sum()).astype(int)
    main_i = np.searchsorted(end_f, np.arange(n_items), side="right")
    place_if = np.eye(n_foundations)[main_i]
    second_gh = np.where(np.eye(n_foundations), 0.0, share_f)
    for main in range(n_foundations):
        at_i = np.flatnonzero(main_i == main)
        at_i = at_i[: round(BETWEEN * len(at_i))]
        level_i = rng.permutation(0.5 + (np.arange(len(at_i)) + 0.5) / (2 * len(at_i) or 1))
        second_i = rng.choice(n_foundations, size=len(at_i), p=second_gh[main] / second_gh[main].sum())
        place_if[at_i, main], place_if[at_i, second_i] = level_i, 1 - level_i
    return rng.permutation(place_if)


def _draw_coders(
    rng: np.random.Generator, facts: Facts, seed: int, item_v: Ints, turn_v: Ints, careless_v: Flags
) -> Ints:
    """Draw who made the marks, mostly careless coders where a mark is a mistake; nobody marks a text twice."""
    pool_rng, n_coders = np.random.default_rng([seed, 0]), facts["annotators"]
    # The least busy still get a tenth or so of the mean workload.
    busy_a = np.asarray(0.2 + pool_rng.lognormal(0.0, facts["uneven"], n_coders))
    care_a = np.asarray(pool_rng.beta(3, 3, n_coders))
    coder_v, coder_it = np.empty(len(item_v), dtype=np.int64), np.full((item_v[-1] + 1, turn_v.max() + 1), -1)
    for turn in range(turn_v.max() + 1):
        for careless in (False, True):
            open_v = np.flatnonzero((turn_v == turn) & (careless_v == careless))
            below_a = (busy_a * (1 - care_a if careless else care_a)).cumsum()
            while len(open_v):
                coder_v[open_v] = np.searchsorted(below_a[:-1] / below_a[-1], rng.random(len(open_v)), side="right")
                # Where the coder has already marked the text, another one is drawn.
                fresh = (coder_it[item_v[open_v]] != coder_v[open_v, None]).all(axis=1)
                coder_it[item_v[open_v[fresh]], turn] = coder_v[open_v[fresh]]
                open_v = open_v[~fresh]
    return coder_v


# --- texts ------------------------------------------------------------------------------------------------------------


def write_texts(rng: np.random.Generator, domain: str, place_if: Floats, foundations: Sequence[str]) -> list[str]:
    """Write one text for each item of a domain, all of them different.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    domain
        Name of the domain, which chooses the openings.
    place_if
        Where each item lies for each foundation: 0 is clearly no, 1 clearly yes.
    foundations
        Their names.

    Examples
    --------
    >>> place_if = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> write_texts(np.random.default_rng(1), "Sandy", place_if, ("care", "fairness"))[1]
    'at the petrol queue people compared train tickets one column appeared late as reported'
    """
    # Openings by domain, details, closings, cue links, and cues by foundation.
    phrases, n_items = read_data("twin_phrases.toml"), len(place_if)
    # "No second detail" is the last of the choices.
    fillers = (phrases["openings"][domain], phrases["details"], [*phrases["details"], ""], phrases["closings"])
    n_choices = int(np.prod([len(filler) for filler in fillers]))
    if n_items > n_choices:
        msg = f"there are only {n_choices:,} texts for domain {domain!r}, not {n_items:,}. Choose a smaller scale."
        raise UsageError(msg)
    # Without replacement: no two items of the domain share their filler.
    at = rng.choice(n_choices, size=n_items, replace=False)
    columns = np.unravel_index(at, [len(filler) for filler in fillers])
    opening, detail, second, closing = (
        [filler[n] for n in column.tolist()] for filler, column in zip(fillers, columns, strict=True)
    )
    cue_if = rng.random(place_if.shape) < CUE_FALSE + place_if * (CUE_KEPT - CUE_FALSE)
    links, words = phrases["cue_links"], [phrases["cues"][name] for name in foundations]
    link_if = rng.integers(len(links), size=cue_if.shape)
    word_if = rng.integers([len(choices) for choices in words], size=cue_if.shape)
    cues: list[list[str]] = [[] for _ in cue_if]
    for i, f in np.argwhere(cue_if).tolist():
        cues[i].append(f"{links[link_if[i, f]]} {words[f][word_if[i, f]]}")
    parts = zip(opening, detail, map(" ".join, cues), second, closing, strict=True)
    return [" ".join(filter(None, part)) for part in parts]
