"""How many more votes, on which items, and by whom: from the tables of a run.

`forecast` simulates further rounds of votes: every item with an uncertain label receives one more vote per round, until
none is uncertain or votes no longer help. Truth and votes are drawn from the paper's model, fitted to the same votes
(one true label per item, errors independent given it), over draws of its parameters; the labels that follow are those
the run itself would publish. `next_votes` ranks items by the labels that further votes are expected to put right, and
leaves out what gold or a checked answer has settled. `plan` turns the same figures into the size of a larger study.

Nobody is asked who counts together with another annotator, or whose votes gold or a spot check has shown to be wrong
more often than those of all annotators together; `worse_than_the_team` names these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import ceil, factorial, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri, softmax

from moral_entropy.errors import RunFolderError, UsageError
from moral_entropy.explanation import check_question
from moral_entropy.items.next_votes import choose_votes
from moral_entropy.items.rank import first
from moral_entropy.items.states import FittedStates, counted_votes, positions
from moral_entropy.model.consensus import QuestionFit
from moral_entropy.model.entropy import is_uncertain
from moral_entropy.model.fit import LEAST_SHARE, UNKNOWN_VOTER, share_weight
from moral_entropy.model.posterior import Parameters
from moral_entropy.names import ALL
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.reload import label_table, reload_consensus
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS, TIE, labels_of, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

AHEAD = 3
"""Most further votes on one item that the ranking looks ahead: a 4 to 1 vote is not overturned by one."""

ROUNDS, REPLICAS, MOST_CELLS = 10, 40, 400_000
"""Rounds of votes that are simulated, how often, and how many probabilities at most at a time (items are sampled)."""

CANDIDATES, LEAST_CANDIDATES, MOST_BALLOTS = 20, 20_000, 60
"""Items that are ranked, per item asked for and at least, the least sure ones; and sets of further votes considered."""

Rng = np.random.Generator

MOST_PER_ITEM, LEAST_EACH, SIMULATED = 9, 50, 20_000
"""Of plans: votes per item considered, votes that every annotator should give, simulated items."""

MOST_VOTES = 5_000_000
"""Votes up to which further ones are simulated, as that needs a second fit."""

QUEUE = ("rank", "item", "domain", "annotator", "labels_right", "questions", "n_votes", "reason")
"""Columns of the items to ask about."""


@dataclass(frozen=True, eq=False)
class QuestionVotes:
    """One fit of a run, as its tables have it. Axes: **i** item, **a** annotator, **z** state, **k** label, **v** vote.

    Parameters
    ----------
    question, labels
        Its name and labels.
    items
        Its rows of the table items.
    annotators
        Names of its annotators.
    times_ic
        How often every annotator gave each label to an item; **c** is the pair of annotator and label.
    p_iz, vote_azv, mix_zk
        Probabilities of the states that items can be in, how annotators vote in them, and their labels.
    p_ik
        The published label probabilities.
    text_ik, worth_i
        What the items' texts say, and how many votes that counts for: 0 where texts do not count.
    votes_a
        Votes of each annotator.
    allowed_a
        Who can be asked.
    open_i
        Items that neither gold nor a checked answer has settled.
    ordered
        Whether labels are levels of a scale: the label of an item is then their median.
    """

    question: str
    labels: tuple[str, ...]
    items: pl.DataFrame
    annotators: pl.Series
    times_ic: csr_array
    p_iz: Floats
    vote_azv: Floats
    mix_zk: Floats
    p_ik: Floats
    text_ik: Floats
    worth_i: Floats
    votes_a: Ints
    allowed_a: NDArray[np.bool_]
    open_i: NDArray[np.bool_]
    ordered: bool

    @cached_property
    def count_ik(self) -> Floats:
        """Votes on every item by label."""
        return np.asarray(self.times_ic @ np.tile(np.eye(len(self.labels)), (len(self.annotators), 1)))

    @cached_property
    def unknown_i(self) -> Floats:
        """How little is known of those who voted on each item: see `model.fit.unknown_voters`."""
        unknown_a = UNKNOWN_VOTER / (UNKNOWN_VOTER + self.votes_a)
        if unknown_a.max(initial=0.0) <= LEAST_SHARE:
            return np.zeros(len(self.p_ik))
        sum_i = self.times_ic @ np.repeat(unknown_a, len(self.labels))
        return np.asarray(sum_i / np.maximum(self.count_ik.sum(axis=1), 1.0))

    @property
    def share_a(self) -> Floats:
        """How often each annotator is asked: as often as before, of those who can be."""
        weight_a = np.where(self.allowed_a, np.maximum(self.votes_a, 1e-9), 0.0)
        return np.asarray(weight_a / weight_a.sum())

    def label_of(self, p_ik: Floats) -> tuple[Ints, Floats]:
        """Return the label that some probabilities lead to, and its own: they need not sum to 1."""
        label_i = labels_of(p_ik / p_ik.sum(axis=1, keepdims=True), None, ordered=self.ordered)
        return label_i, p_ik[np.arange(len(p_ik)), label_i]

    def published(self, p_iz: Floats, count_ik: Floats, at_i: Ints) -> Floats:
        """Compute the probabilities that the run would publish of some items, from their states and counted votes."""
        p_ik, n_i = p_iz @ self.mix_zk, count_ik.sum(axis=1)
        if len(self.mix_zk) > len(self.labels):
            base_k = self.count_ik.sum(axis=0) + 0.5
            interior_i = p_iz[:, len(self.labels) :].sum(axis=1)
            share_ik = (count_ik + base_k / base_k.sum()) / (n_i[:, None] + 1.0)
            weight_i1 = share_weight(p_ik, share_ik, interior_i, n_i, self.unknown_i[at_i])[:, None]
            p_ik = (1.0 - weight_i1) * p_ik + weight_i1 * share_ik
        # Texts are pooled with what the votes say, in proportion to votes, as the fit does.
        worth_i1, n_i1 = self.worth_i[at_i, None], n_i[:, None] + 1.0
        return np.asarray((n_i1 * p_ik + worth_i1 * self.text_ik[at_i]) / (n_i1 + worth_i1))


# --- What the tables say --------------------------------------------------------------------------------------------


def open_questions(
    run: Run | str | Path, *, question: str | None = None, annotators: Sequence[str] = ()
) -> tuple[QuestionVotes, ...]:
    """Return the fits of a run, or those of one question.

    Parameters
    ----------
    run
        The run, or its folder.
    question
        Only this question.
    annotators
        Who can be asked; by default all but those whom checked labels have shown to be worse than the others.
    """
    run = as_run(run)
    check_question(run, question)
    voters = run.annotators["annotator"].cast(pl.String).unique().drop_nulls().to_list()
    if unknown := [name for name in annotators if name not in voters]:
        msg = (
            f"{len(unknown)} of {len(annotators)} annotators never voted here. First: {unknown[0]!r}."
            f"{did_you_mean(unknown[0], sorted(voters))} Nothing is known of how they vote."
        )
        raise RunFolderError(msg)
    bad = () if annotators else tuple(worse_than_the_team(run))
    checked = run.table("spot_checks").drop_nulls("answer").select("question", pl.col("item").cast(pl.String))
    fits = [fit for fit in run.manifest["questions"] if question in (None, fit["question"])]
    return tuple(_open(run, fit, annotators, bad, checked) for fit in fits)


def _open(
    run: Run, fit: dict[str, Any], annotators: Sequence[str], bad: Sequence[str], checked: pl.DataFrame
) -> QuestionVotes:
    labels, n_cells = tuple(fit["labels"]), len(fit["labels"]) ** 2
    question = pl.col("question") == fit["question"]
    here = question & (pl.col("part") == fit["part"])
    items, cells = run.table("items", where=here), run.table("annotators", where=here)
    names = cells["annotator"].gather_every(n_cells)
    votes = run.table("votes", where=question).join(items.select("item"), on="item", how="semi", maintain_order="left")
    if fit["counted_as_one"]:
        votes = counted_votes(votes, fit["counted_as_one"])
    times_ic = _counts(votes, items["item"], names, labels)
    text_votes = run.text_votes.get(fit["question"], 0.0)
    text_ik = label_table(run, fit["question"], items, "p_text") if text_votes else np.full((items.height, 1), np.nan)
    gold_i = positions(items["gold"], labels, default=UNKNOWN)
    known_i = gold_i if run.manifest["use_gold"] else np.full(items.height, UNKNOWN)
    worth_i = np.where(np.isfinite(text_ik).all(axis=1) & (known_i == UNKNOWN), text_votes, 0.0)
    p_ik, states = label_table(run, fit["question"], items), FittedStates.of(fit)
    p_iz = label_table(run, fit["question"], items, "p_votes") if worth_i.any() else p_ik
    vote_azv = states.states.votes_azv(cells["probability"].to_numpy().reshape(-1, len(labels), len(labels)))
    if fit["mixture"] is not None:
        log_cz = np.log(vote_azv).transpose(0, 2, 1).reshape(-1, states.states.n_states)
        p_iz = states.probabilities(items["domain"], times_ic @ log_cz, known_i)
    text = names.cast(pl.String)
    # Merged annotators add no information beyond their representative.
    merged_a = _among(text, [str(name) for group in fit["counted_as_one"] for name in group[1:]])
    answers = checked.filter(question=fit["question"])["item"].to_list()
    allowed_a = (_among(text, annotators) if annotators else ~_among(text, bad)) & ~merged_a
    open_i = items["gold"].is_null().to_numpy() & ~_among(items["item"].cast(pl.String), answers)
    votes_a = cells["n_votes"].gather_every(n_cells).to_numpy()
    evidence = (times_ic, p_iz, vote_azv, states.states.mix_zk, p_ik, np.nan_to_num(text_ik), worth_i)
    return QuestionVotes(fit["question"], labels, items, text, *evidence, votes_a, allowed_a, open_i, "levels" in fit)


def _counts(votes: pl.DataFrame, items: pl.Series, names: pl.Series, labels: Sequence[str]) -> csr_array:
    """Count how often every annotator gave each label to an item: `times_ic`."""
    at_v, by_v = (
        votes.select(name).join(order.to_frame(name).with_row_index("at"), on=name, maintain_order="left")["at"]
        for name, order in (("item", items), ("annotator", names))
    )
    cell_v = by_v.to_numpy().astype(np.int64) * len(labels) + positions(votes["label"], labels, default=UNKNOWN)
    shape = len(items), len(names) * len(labels)
    return csr_array((np.ones(len(cell_v)), (at_v.to_numpy().astype(np.int64), cell_v)), shape=shape)


def _among(names: pl.Series, members: Sequence[Any]) -> NDArray[np.bool_]:
    return names.is_in(pl.Series(list(members), dtype=names.dtype).implode()).to_numpy()


def worse_than_the_team(run: Run) -> dict[str, dict[str, Any]]:
    """Return the annotators whose checked votes are surely wrong more often than those of all together, worst first.

    Returns
    -------
    dict
        By name: `checked` votes, the share of `wrong` ones, its `low` and `high` bound, and that of `all`.
    """
    rates = run.checked.filter(kind="annotator")
    if rates.height < 2:
        return {}
    everyone = tie_key(float(rates["wrong"].sum()) / float(rates["checked"].sum()))
    worse = rates.filter(pl.col("low").round(DECIMALS) > everyone)
    figures = worse.select("name", "checked", "value", "low", "high").iter_rows()
    return {name: {"checked": n, "wrong": value, "low": low, "high": high, "all": everyone}
            for name, n, value, low, high in figures}  # fmt: skip


# --- Which items ----------------------------------------------------------------------------------------------------


def labels_put_right(fit: QuestionVotes, at_i: Ints, ahead: int = AHEAD) -> Floats:
    """Compute how many labels a further vote on some items is expected to put right, looking up to `ahead` votes ahead.

    With m further votes of an average annotator it is E[P(label | votes)] - P(label), divided by m: the value of
    information, per vote (the knowledge gradient of Frazier and Powell 2010, who take the best m as well).
    """
    average_zv = np.tensordot(fit.share_a, fit.vote_azv, axes=1)
    p_iz, p_ik = fit.p_iz[at_i], fit.p_ik[at_i]
    # The published p, whatever it is pooled with, is where the next vote starts from.
    ratio_ik = p_ik / np.maximum(p_iz @ fit.mix_zk, 1e-12)
    now_i, best_i = fit.label_of(p_ik)[1], np.zeros(len(p_ik))
    for m in range(1, ahead + 1):
        ballots = list(combinations_with_replacement(range(len(fit.labels)), m))
        if m > 1 and len(ballots) > MOST_BALLOTS:
            break
        right_i = np.zeros(len(p_ik))
        for votes in ballots:
            orders = factorial(m) / prod(factorial(votes.count(v)) for v in set(votes))
            chance_z = orders * np.prod(average_zv[:, list(votes)], axis=1)
            right_i += fit.label_of(((p_iz * chance_z) @ fit.mix_zk) * ratio_ik)[1]
        best_i = np.maximum(best_i, (right_i - now_i) / m)
    return np.where(best_i > TIE, best_i, 0.0)


def next_votes(
    run: Run | str | Path, n: int = 100, *, question: str | None = None, annotators: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the items on which further votes put most labels right, best first, with who could be asked.

    Items with gold or a checked answer are settled and never listed; an item of several questions is listed once.

    Parameters
    ----------
    run
        The run, or its folder.
    n
        How many items.
    question
        Only this question.
    annotators
        Who can be asked; by default all but those whom checked labels have shown to be worse than the others.

    Returns
    -------
    polars.DataFrame
        Columns of `QUEUE`, and text where the run has texts. `labels_right` is the expected number of labels that one
        vote on each question of the item puts right; annotator is null where everybody has voted.
    """
    run = as_run(run)
    fits = open_questions(run, question=question, annotators=annotators)
    rows = pl.concat([_candidates(run, fit, n, by_name=bool(annotators)) for fit in fits])
    needy = pl.col("labels_right") > 0
    by_item = rows.sort(pl.col("labels_right").round(DECIMALS), descending=True, maintain_order=True)
    queue = by_item.group_by("item", maintain_order=True).agg(
        pl.col("domain").first(),
        pl.col("annotator").first(),
        pl.col("labels_right").sum(),
        pl.col("question").filter(needy).str.join(", ").alias("questions"),
        pl.col("n_votes").max(),
        pl.col("reason").filter(needy).str.join("; "),
    )
    queue = queue.filter(needy)
    queue = queue[first(queue["labels_right"].to_numpy(), n)]
    queue = queue.with_columns(rank=pl.int_range(1, pl.len() + 1)).select(QUEUE)
    if run.has("texts"):
        texts = run.table("texts", where=pl.col("item").is_in(queue["item"].to_list()))
        queue = queue.join(texts, on="item", how="left", maintain_order="left")
    return queue


def _candidates(run: Run, fit: QuestionVotes, n: int, *, by_name: bool) -> pl.DataFrame:
    """Return the open items of one fit that further votes may put right."""
    code_i, top_i = fit.label_of(fit.p_ik)
    at_i = first(np.where(fit.open_i, 1.0 - top_i, np.nan), max(CANDIDATES * n, LEAST_CANDIDATES))
    right_i = labels_put_right(fit, at_i)
    mix_zk, p_iz = None if len(fit.mix_zk) == len(fit.labels) else fit.mix_zk, fit.p_iz
    if fit.worth_i.any():
        p_iz = p_iz * (fit.p_ik / np.maximum(p_iz @ fit.mix_zk, 1e-12) @ fit.mix_zk.T)
        p_iz /= p_iz.sum(axis=1, keepdims=True)
    votes = (fit.times_ic.indptr, fit.times_ic.indices, fit.vote_azv, fit.votes_a)
    repeats = bool(run.manifest["anonymous"])
    annotator_i = choose_votes(p_iz, *votes, mix_zk=mix_zk, repeats=repeats, allowed_a=fit.allowed_a)[1][at_i]
    label_i = pl.Series(fit.labels, dtype=pl.String).gather(code_i[at_i])
    columns = ("question", "item", "domain", "p_text", pl.col("n_votes").cast(pl.Int64))
    rows = fit.items[at_i].select(*columns).with_columns(
        annotator=fit.annotators.clone().extend_constant(None, 1).gather(annotator_i % (len(fit.annotators) + 1)),
        labels_right=pl.Series(right_i), label=label_i, p=pl.Series(top_i[at_i]),
    )  # fmt: skip
    if by_name:
        rows = rows.drop_nulls("annotator")
    words = pl.format("{}: {} {}% after {}", "question", "label", (100 * pl.col("p")).round().cast(pl.Int64), "n_votes")
    plural = pl.when(pl.col("n_votes") == 1).then(pl.lit(" vote")).otherwise(pl.lit(" votes"))
    text = pl.format("; the text says {}", pl.col("p_text").round(2)).fill_null("")
    return rows.with_columns(reason=words + plural + text)


# --- How many more --------------------------------------------------------------------------------------------------


def forecast(
    run: Run | str | Path, *, question: str | None = None, annotators: Sequence[str] = (), seed: int = 0
) -> pl.DataFrame:
    """Simulate further votes: one per round on every item that still has an uncertain label.

    Parameters
    ----------
    run
        The run, or its folder.
    question
        Only this question.
    annotators
        Who can be asked, as in `next_votes`.
    seed
        Same seed, same figures.

    Returns
    -------
    polars.DataFrame
        One row per round and question, "(all)" for all together: round (0 is now), votes (people's answers on whole
        items so far), question, items (labels that it has), uncertain (share of labels with a chance of error above a
        quarter) and wrong (expected share of wrong labels, if errors are independent).
    """
    run = as_run(run)
    if run.manifest["votes"] > MOST_VOTES:
        votes = run.manifest["votes"]
        msg = f"{votes:,} votes are too many to simulate further ones: audit a part, of at most {MOST_VOTES:,}."
        raise UsageError(msg)
    fits = open_questions(run, question=question, annotators=annotators)
    paper = reload_consensus(run, question=question, model="paper", draws=REPLICAS)
    rng = np.random.default_rng(seed)
    # Items of all questions by number, so that one person's answer serves all of them.
    n_items = len(paper.votes.items)
    n_sampled = min(max(MOST_CELLS // sum(fit.vote_azv.shape[1] for fit in fits), 1), n_items)
    sampled_i = np.isin(np.arange(n_items), rng.permutation(n_items)[:n_sampled])
    at_q = [np.flatnonzero(sampled_i[refitted.ballot.item_i]) for refitted in paper.fits]
    number_q = [refitted.ballot.item_i[at_i] for refitted, at_i in zip(paper.fits, at_q, strict=True)]
    votes_r, figure_rqf = np.zeros(ROUNDS + 1), np.zeros((ROUNDS + 1, len(fits), 3))
    n_replicas = min(refitted.n_draws for refitted in paper.fits)
    for replica in range(n_replicas):
        worlds = [
            _World(fit, refitted, replica, at_i, paper.votes.domain_i[number_i], rng)
            for fit, refitted, at_i, number_i in zip(fits, paper.fits, at_q, number_q, strict=True)
        ]
        for turn in range(ROUNDS + 1):
            figure_rqf[turn] += [world.figures for world in worlds]
            needy_i = np.zeros(n_items, dtype=bool)
            for world, number_i in zip(worlds, number_q, strict=True):
                needy_i[number_i[world.uncertain_i & world.open_i]] = True
            votes_r[turn + 1 :] += needy_i.sum()
            for world, number_i in zip(worlds, number_q, strict=True):
                world.vote(np.flatnonzero(needy_i[number_i]))
    scale, rows = n_items / n_sampled / n_replicas, []
    for turn, votes in enumerate((votes_r * scale).tolist()):
        for name in dict.fromkeys((ALL, *(fit.question for fit in fits))):
            # The parts of one question together.
            of_name = [q for q, fit in enumerate(fits) if name in (ALL, fit.question)]
            items, uncertain, wrong = figure_rqf[turn, of_name].sum(axis=0).tolist()
            row = {"round": turn, "votes": votes, "question": name, "items": items * scale}
            rows.append(row | {"uncertain": uncertain / items, "wrong": wrong / items})
    return pl.DataFrame(rows, orient="row")


class _World:
    """One simulated future of a fit: the truth is drawn, then votes arrive and the run's own labels follow."""

    def __init__(self, fit: QuestionVotes, paper: QuestionFit, replica: int, at_i: Ints, row_i: Ints, rng: Rng) -> None:
        self.fit, self.rng, self.at_i = fit, rng, at_i
        n_labels = len(fit.labels)
        # Over the draws errors come out too many where votes are weak, at the mode too few where annotators are new:
        # three futures of four are drawn from the mode (chosen on the ten simulated designs of the tests).
        at = paper.mode if replica % 4 else Parameters(paper.drawn.weight_dg[replica], paper.confusion_sakv[replica])
        self.confusion_akv = at.confusion_akv
        log_ck = np.log(self.confusion_akv).transpose(0, 2, 1).reshape(-1, n_labels)
        weight_dk = at.weight_dg
        log_ik = np.log(weight_dk[row_i % len(weight_dk)]) + fit.times_ic[at_i] @ log_ck
        self.p_iz, self.count_ik, self.p_ik = fit.p_iz[at_i].copy(), fit.count_ik[at_i].copy(), fit.p_ik[at_i].copy()
        if fit.worth_i.any():
            # A text that counts is evidence of the truth as so many votes of an average annotator would be.
            average_kv = np.tensordot(fit.votes_a / fit.votes_a.sum(), at.confusion_akv, axes=1)
            log_ik += fit.worth_i[at_i, None] * (fit.text_ik[at_i] @ np.log(average_kv).T)
        self.truth_i = _draw(softmax(log_ik, axis=1), rng)
        self.open_i, self.weight_i = fit.open_i[at_i], fit.items["count"].to_numpy()[at_i]
        # Where something else than votes and texts counts, it stays as it is.
        self.ratio_ik = self.p_ik / np.maximum(fit.published(self.p_iz, self.count_ik, at_i), 1e-12)

    @property
    def uncertain_i(self) -> NDArray[np.bool_]:
        return is_uncertain(self.fit.label_of(self.p_ik)[1])

    @property
    def figures(self) -> Floats:
        """Items, uncertain ones and wrong labels, each item as often as it counts."""
        wrong_i = self.fit.label_of(self.p_ik)[0] != self.truth_i
        return np.array([self.weight_i.sum(), self.uncertain_i @ self.weight_i, wrong_i @ self.weight_i])

    def vote(self, at_j: Ints) -> None:
        """Let somebody vote once on some of the items."""
        annotator_j = self.rng.choice(len(self.fit.share_a), size=len(at_j), p=self.fit.share_a)
        vote_j = _draw(self.confusion_akv[annotator_j, self.truth_i[at_j]], self.rng)
        p_jz = self.p_iz[at_j] * self.fit.vote_azv[annotator_j, :, vote_j]
        self.p_iz[at_j] = p_jz / p_jz.sum(axis=1, keepdims=True)
        self.count_ik[at_j, vote_j] += 1.0
        p_jk = self.ratio_ik[at_j] * self.fit.published(self.p_iz[at_j], self.count_ik[at_j], self.at_i[at_j])
        self.p_ik[at_j] = p_jk / p_jk.sum(axis=1, keepdims=True)


def _draw(p_ik: Floats, rng: Rng) -> Ints:
    """Draw one label per row."""
    beyond_ik = rng.random((len(p_ik), 1)) > np.cumsum(p_ik, axis=1)
    return np.asarray(np.minimum(beyond_ik.sum(axis=1), p_ik.shape[1] - 1))


def votes_to_reach(curve: pl.DataFrame, figure: str, target: float) -> float | None:
    """Return the number of votes at which a figure of a forecast falls to a target; None where it never does.

    Parameters
    ----------
    curve
        Rows of `forecast` about one question, or about all.
    figure
        "uncertain" or "wrong".
    target
        A share of the labels.

    Examples
    --------
    >>> curve = pl.DataFrame({"votes": [0.0, 100.0, 150.0], "uncertain": [0.4, 0.2, 0.1]})
    >>> round(votes_to_reach(curve, "uncertain", 0.3)), votes_to_reach(curve, "uncertain", 0.05)
    (50, None)
    """
    votes_r, share_r = curve["votes"].to_numpy(), np.minimum.accumulate(curve[figure].to_numpy())
    if share_r[-1] > target:
        return None
    return float(np.interp(-target, -share_r, votes_r))


def last_useful(curve: pl.DataFrame) -> int:
    """Return the round after which further votes, however many, put less than one label right per 100 of them."""
    # A first round can do little where the next one does much: labels of three votes to one need two more.
    votes_r, right_r = curve["votes"].to_numpy(), -curve["wrong"].to_numpy() * curve["items"][0]
    more_rr, gain_rr = (x_r[None, :] - x_r[:, None] for x_r in (votes_r, right_r))
    return int(np.argmin(((100 * gain_rr >= more_rr) & (more_rr > 0.0)).any(axis=1)))


# --- A larger study from this one -----------------------------------------------------------------------------------


def plan(
    run: Run | str | Path, within: float = 0.03, *, price: float = 1.0, check_price: float | None = None, seed: int = 0
) -> pl.DataFrame:
    """Plan a study from a pilot: items, votes, annotators and checks for intervals of plus or minus `within`.

    Two shares are wanted that closely: of every label, and of wrong labels. With N labelled items, n of them drawn at
    random and checked, a label's share is estimated by its share among the labels plus the mean difference on the
    checked ones; its variance is at most s (1 - s) / N + w / n, s that share and w the share of wrong labels, however
    these come about. N and n are the cheapest for it (Neyman 1934); w at each number of votes per item is simulated
    from the pilot's annotators.

    Parameters
    ----------
    run
        The pilot: a run, or its folder.
    within
        Half the width of both intervals, which have the mass of the run's.
    price, check_price
        Of one vote on all questions of an item, and of checking one item; a check costs as much as a vote by default.
    seed
        Same seed, same plan.

    Returns
    -------
    polars.DataFrame
        One row per number of votes per item, the cheapest first: votes_per_item, items, votes, annotators (at most so
        many, so that each gives `LEAST_EACH` votes), checks, wrong (expected share of wrong labels of the worst
        question, if errors are independent) and cost.
    """
    run, check_price = as_run(run), price if check_price is None else check_price
    if not (0.0 < within < 0.5 and price > 0.0 and check_price > 0.0):
        figures = f"within is {within:g}, prices are {price:g} and {check_price:g}"
        msg = f"{figures}. Within lies between 0 and 0.5, prices above 0."
        raise UsageError(msg)
    paper = reload_consensus(run, model="paper", draws=REPLICAS)
    rng, precision = np.random.default_rng(seed), (float(ndtri(0.5 + run.interval / 2)) / within) ** 2
    spread = max(float((fit.share_k * (1.0 - fit.share_k)).max()) for fit in paper.fits)
    rows = []
    # One vote per item shows no disagreement, and nothing of new annotators.
    for m in range(2, MOST_PER_ITEM + 1):
        wrong = max(_wrong_after(fit, m, rng) for fit in paper.fits)
        root_cost = sqrt(spread * m * price) + sqrt(wrong * check_price)
        n_checks = max(precision * sqrt(wrong / check_price) * root_cost, precision * wrong * (1.0 - wrong))
        n_items = max(spread / (1.0 / precision - wrong / n_checks), n_checks)
        n_items, n_checks = ceil(n_items), ceil(n_checks)
        size: dict[str, float] = {"votes_per_item": m, "items": n_items, "votes": n_items * m}
        size |= {"annotators": max(m, n_items * m // LEAST_EACH), "checks": n_checks, "wrong": wrong}
        rows.append(size | {"cost": price * n_items * m + check_price * n_checks})
    return pl.DataFrame(rows).sort("cost", maintain_order=True)


def _wrong_after(fit: QuestionFit, n_votes: int, rng: Rng) -> float:
    """Simulate items with some votes each, by the annotators of a fit, and return the share of wrong labels."""
    share_k = np.maximum(fit.share_k, 1e-6)
    truth_i = rng.choice(len(share_k), size=SIMULATED, p=share_k / share_k.sum())
    log_ik = np.tile(np.log(share_k), (SIMULATED, 1))
    draw_i = rng.integers(fit.n_draws, size=SIMULATED)
    mean_akv, weight_a = fit.confusion_sakv.mean(axis=0), fit.ballot.votes_a / fit.ballot.votes_a.sum()
    for _ in range(n_votes):
        annotator_i = rng.choice(len(weight_a), size=SIMULATED, p=weight_a)
        vote_i = _draw(fit.confusion_sakv[draw_i, annotator_i, truth_i], rng)
        log_ik += np.log(mean_akv[annotator_i, :, vote_i])
    return float(np.mean(labels_of(softmax(log_ik, axis=1), None, ordered=fit.ballot.levels is not None) != truth_i))
