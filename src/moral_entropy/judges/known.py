"""Run → the items of a question as scores and judges need them: p by the judges, votes, clusters, known answers.

Answers are known from filled-in spot checks that measure, from gold, and from people's votes where language models
voted too: several people per item are aggregated by the same model as everybody else, on their own. Judges are then
the models alone. Gold that was evidence for the fit cannot grade it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from moral_entropy.errors import UsageError
from moral_entropy.findings import listed, many, without_warnings
from moral_entropy.items.states import positions
from moral_entropy.judges.estimates import Answers
from moral_entropy.judges.roles import LLM, PERSON, roles_of
from moral_entropy.model.consensus import QuestionFit
from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Question, Run
from moral_entropy.verdict.figures import KEYS
from moral_entropy.verdict.sheet import spot_checks
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

SYSTEM = "system"
"""The column of the votes that says whose answer an item is: scores are by it unless another is named."""

CLUSTERS = ("cluster", "prompt_id", "prompt", "sample", "conversation")
"""Columns of the votes that say which items belong together, the first of them that is there."""

MOST_JUDGES = 200
"""Judges up to whom a panel is taken apart; more are a crowd."""

ENOUGH = 30
"""Known answers from which judges are graded by them."""

FOLDS = 5
WEIGHT_SD, TRUST_SD, BIAS_SD = 1.0, 0.5, 2.0
"""Priors of labels by known answers: the weight of a judge's vote is drawn to 0, that of the consensus' log p to ½."""

DRAWS = 12
"""Draws of the people's own error rates, for what they add to the variance of a score."""


class KnownItems(NamedTuple):
    """The items of one question. Axes: **i** item, **k** label.

    Parameters
    ----------
    question, items
        The question, and the ids of its items.
    p_ik
        Label probabilities by the judges, without the known answers unless `evidence`.
    guess_ik
        The same by votes that are weighed by the known answers of other items (`weigh_votes`), where that is better.
    counts_ik
        Votes of the judges by label, as they were cast.
    known_i, gold_i, truth_ik
        Whether the answer is known, known labels, or `UNKNOWN`, and their probabilities, which are 0 or 1 unless people
        contradict each other.
    weight_i
        How many items each stands for; of items that a spot check drew, for how many it drew them.
    cluster_i
        Which items belong together.
    evidence
        Whether gold was evidence for the fit.
    roles, people
        Who judges, and names of those whose votes are known answers.
    likelihood_ik, draws_sik
        Likelihoods of the labels by people's votes, and the same in draws of their error rates, of which there are none
        where nobody contradicts anybody; else as `truth_ik`.
    notes
        Where known answers come from, in sentences.
    """

    question: Question
    items: pl.Series
    p_ik: Floats
    guess_ik: Floats
    counts_ik: Floats
    known_i: NDArray[np.bool_]
    gold_i: Ints
    truth_ik: Floats
    weight_i: Floats
    cluster_i: Ints
    evidence: bool
    roles: dict[str, str]
    people: list[str]
    likelihood_ik: Floats
    draws_sik: Floats
    notes: tuple[str, ...]

    @property
    def judges(self) -> list[str]:
        """Names of those who judge."""
        return list(self.roles)

    @property
    def n_known(self) -> int:
        """How many answers are known."""
        return int(self.known_i.sum())

    @property
    def share_ik(self) -> Floats:
        """Shares of the labels among an item's votes; where nobody voted those of all items."""
        total_i = self.counts_ik.sum(axis=1, keepdims=True)
        overall_k = self.counts_ik.sum(axis=0) / max(self.counts_ik.sum(), 1.0)
        return np.asarray(np.where(total_i > 0, self.counts_ik / np.maximum(total_i, 1.0), overall_k))

    def answers(self, system_i: Ints) -> Answers:
        """Return the items as estimates take them; what was evidence for p cannot correct it."""
        known_i = self.known_i & (not self.evidence)
        return Answers(system_i, self.cluster_i, known_i, self.likelihood_ik, self.guess_ik, self.weight_i)


def questions_of(run: Run, name: str | None) -> list[Question]:
    """Return the questions of a run, or the one that is named."""
    names = [question.name for question in run.questions]
    if name is not None and name not in names:
        msg = f"the run has no question {name!r}.{did_you_mean(name, names)} Questions: {', '.join(names)}."
        raise UsageError(msg)
    return [question for question in run.questions if name in (None, question.name)]


def known_items(
    run: Run, question: Question, *, roles: Any = None, cluster_column: str | None = None,
    strata_column: str | None = None,
) -> KnownItems:  # fmt: skip
    """Read the items of a question of a run.

    Parameters
    ----------
    run, question
        The run, and one of its questions.
    roles
        Who the judges are, as in `roles_of`.
    cluster_column
        Column of the votes that says which items belong together; by default the first of `CLUSTERS`.
    strata_column
        Column of the votes within whose values known answers are random: see `stratum_weights`.
    """
    rows = run.table("items", where=pl.col("question") == question.name).select(
        "item", "domain", "p", "p_map", "gold", "count"
    )
    votes = run.table("votes", where=pl.col("question") == question.name)
    labels, items = list(question.labels), rows["item"]
    decided, people, notes = _who_judges(run, votes, roles)
    truth_ik = np.zeros((len(items), len(labels)))
    likelihood_sik = truth_ik[None]
    p_ik, model_ik = (_probabilities(run, question, rows, column) for column in ("p", "p_map"))
    if people:
        by_person = pl.col("annotator").cast(pl.String).is_in(people)
        truth_ik, likelihood_sik = _aggregate(votes.filter(by_person), rows, labels)
        # What the judges would have said without the people.
        votes, p_ik, model_ik = votes.filter(~by_person), np.full_like(p_ik, 1e-9), np.full_like(p_ik, 1e-9)
        for place, fitted in _refit(votes, rows, labels, draws=0):
            p_ik[place], model_ik[place] = fitted.p_ik, fitted.posterior_ik
        p_ik, model_ik = (q_ik / q_ik.sum(axis=1, keepdims=True) for q_ik in (p_ik, model_ik))
    answer_i, sheet_i, n_chosen = _answers(run, question, items)
    if n_chosen:
        notes.append(
            f"{question.name}: {many(n_chosen, 'answer')} of spot checks that repair labels were chosen, not drawn at "
            "random: they mend labels, and are left out of scores and of the ranking of judges."
        )
    gold_i = np.where(answer_i != UNKNOWN, answer_i, _codes(rows["gold"], labels))
    truth_ik[gold_i != UNKNOWN] = np.eye(len(labels))[gold_i[gold_i != UNKNOWN]]
    likelihood_sik[:, gold_i != UNKNOWN] = truth_ik[gold_i != UNKNOWN]
    known_i, evidence = truth_ik.sum(axis=1) > 0, bool(run.manifest["use_gold"])
    # Of two labels, as the model has it: what is published is pooled with the vote share, which draws systems together.
    guess_ik = model_ik if known_i.any() and len(labels) == 2 else p_ik
    if known_i.sum() >= ENOUGH and not known_i.all() and not evidence and len(decided) <= MOST_JUDGES:
        vote_ji = vote_matrix(votes, items, list(decided), labels)
        guess_ik = weigh_votes(vote_ji, guess_ik, likelihood_sik[0], np.flatnonzero(known_i))
    weight_i = rows["count"].to_numpy().astype(np.float64) * sheet_i
    if strata_column is not None:
        strata = _column(run, question, items, strata_column, "weigh by", allow_mixed=False).fill_null(NO_DOMAIN)
        weight_i = weight_i * stratum_weights(strata, known_i)
    gold_i = np.where(known_i, truth_ik.argmax(axis=1), UNKNOWN)
    return KnownItems(
        question, items, p_ik, guess_ik, _counts(votes, items, labels), known_i, gold_i, truth_ik, weight_i,
        _clusters(run, question, items, cluster_column), evidence, decided, people, likelihood_sik[0],
        likelihood_sik[1:], tuple(notes),
    )  # fmt: skip


def _who_judges(run: Run, votes: pl.DataFrame, roles: Any) -> tuple[dict[str, str], list[str], list[str]]:
    """Return who judges, whose votes are known answers, and notes about both."""
    names = votes["annotator"].drop_nulls().cast(pl.String).unique().sort().to_list()
    decided, sentence = roles_of(run, names, roles)
    people = [name for name, role in decided.items() if role == PERSON]
    models = {name: role for name, role in decided.items() if role == LLM}
    if not people or not models or len(names) > MOST_JUDGES:
        return decided, [], [sentence]
    note = f"votes of {listed(people)} (people) are known answers, and judges are the language models."
    return models, people, [sentence, note]


def _refit(
    votes: pl.DataFrame, rows: pl.DataFrame, labels: list[str], **options: Any
) -> Iterator[tuple[Any, QuestionFit]]:
    """Fit a part of the annotators on their own, and yield where items and labels of each fit are among all."""
    from moral_entropy.model.fit import fit
    from moral_entropy.votes.read import read_votes

    long = votes.select("item", pl.col("annotator").cast(pl.String), "label").join(
        rows.select("item", "domain"), on="item", how="left", maintain_order="left"
    )
    with without_warnings():
        domain = "domain" if rows["domain"].n_unique() > 1 else ""
        consensus = fit(read_votes(long, keep_case=True, on_repeat="count", domain=domain), **options)
    for fitted in consensus.fits:
        at_f = positions(consensus.votes.items.gather(fitted.ballot.item_i), rows["item"].to_list(), default=0)
        yield np.ix_(at_f, np.array([labels.index(label) for label in fitted.ballot.labels])), fitted


def _aggregate(votes: pl.DataFrame, rows: pl.DataFrame, labels: list[str]) -> tuple[Floats, Floats]:
    """Return probabilities of people's answers, 0 where nobody answered, and likelihoods at the mode and in draws."""
    counts_ik = _counts(votes, rows["item"], labels)
    votes_i = counts_ik.sum(axis=1)
    truth_ik = counts_ik / np.maximum(votes_i, 1.0)[:, None]
    # Of one vote per item nobody knows how often it is wrong.
    if np.median(votes_i[votes_i > 0]) < 2 or (counts_ik.sum(axis=0) > 0).sum() < 2:
        return truth_ik, truth_ik[None].copy()
    likelihood_sik = np.zeros((DRAWS + 1, *truth_ik.shape))
    for place, fitted in _refit(votes, rows.with_columns(domain=pl.lit("")), labels, draws=DRAWS, model="paper"):
        draws_sfk = fitted.draws_of(np.arange(fitted.patterns.n_rows))[:, fitted.patterns.row_i]
        posterior_sfk = np.stack([fitted.posterior_ik, *draws_sfk])
        # Without the share of each label among these items: that of the systems is what is asked for.
        likelihood_sfk = posterior_sfk / np.stack([fitted.prevalence_k, *fitted.prevalence_sk])[:, None]
        truth_ik[place] = fitted.p_ik
        for likelihood_ik, draw_fk in zip(likelihood_sik, likelihood_sfk, strict=True):
            likelihood_ik[place] = draw_fk / draw_fk.sum(axis=1, keepdims=True)
    return truth_ik, likelihood_sik


def weigh_votes(vote_ji: Ints, p_ik: Floats, likelihood_ik: Floats, rows: Ints) -> Floats:
    """Weigh the votes of judges by the known answers of some rows: return label probabilities of all items.

    A ridge regression: the log-odds of a label are the sum of a weight per judge and label voted, a bias per label, and
    a multiple of the consensus' log p. So judges who err together share one weight, which counting errors one by one
    would give to each. An item with a known answer is weighed by the answers of four fifths of the others. Where known
    answers are predicted no better than by the consensus, by a standard error, `p_ik` is returned.
    """
    from scipy.optimize import minimize

    n_items, n_labels = p_ik.shape
    log_likelihood_ik = np.log(likelihood_ik + 1e-12)
    # Feature f of label k: the consensus' log p of k; and for every label l, if it is k, each vote and a constant.
    voted_iv = (vote_ji.T[:, :, None] == np.arange(n_labels)).reshape(n_items, -1)
    x_iv = np.column_stack([voted_iv, np.ones(n_items)])
    x_iklv = np.einsum("iv,kl->iklv", x_iv, np.eye(n_labels)).reshape(n_items, n_labels, -1)
    x_ikf = np.concatenate([np.log(np.maximum(p_ik, 1e-4))[:, :, None], x_iklv], axis=2)
    centre_f = np.append(0.5, np.zeros(x_iklv.shape[2]))
    precision_f = np.append(TRUST_SD, np.tile([WEIGHT_SD] * voted_iv.shape[1] + [BIAS_SD], n_labels)) ** -2

    def penalised(weight_f: Floats, at: Ints) -> tuple[float, Floats]:
        log_ik, off_f = log_softmax(x_ikf[at] @ weight_f, axis=1), weight_f - centre_f
        joint_ik = log_ik + log_likelihood_ik[at]
        slope_f = np.einsum("ik,ikf->f", np.exp(log_ik) - softmax(joint_ik, axis=1), x_ikf[at])
        loss = float((precision_f * off_f) @ off_f / 2 - logsumexp(joint_ik, axis=1).sum())
        return loss, precision_f * off_f + slope_f

    def weigh(at: Ints, learn: Ints) -> Floats:
        weight_f = minimize(penalised, centre_f, args=(learn,), jac=True, method="L-BFGS-B").x
        return np.asarray(softmax(x_ikf[at] @ weight_f, axis=1))

    guess_ik = weigh(np.arange(n_items), rows)
    fold_g = np.random.default_rng(len(rows)).permutation(len(rows)) % FOLDS
    for fold in range(FOLDS):
        guess_ik[rows[fold_g == fold]] = weigh(rows[fold_g == fold], rows[fold_g != fold])
    gain_g = np.subtract(*(np.log((likelihood_ik * q_ik)[rows].sum(axis=1) + 1e-4) for q_ik in (guess_ik, p_ik)))
    return guess_ik if gain_g.mean() > gain_g.std() / len(rows) ** 0.5 else p_ik


def stratum_weights(strata: pl.Series, known_i: NDArray[np.bool_]) -> Floats:
    """Return weights by which items with known answers, and the others, are made up of strata as all items are.

    Examples
    --------
    >>> strata, known_i = pl.Series(["hard"] * 2 + ["easy"] * 4), np.array([True, False, True, False, False, False])
    >>> stratum_weights(strata, known_i).round(2)
    array([0.67, 1.33, 1.33, 0.89, 0.89, 0.89])
    """
    names, stratum_i, n_h = np.unique(strata.to_numpy(), return_inverse=True, return_counts=True)
    weight_i, known_h = np.ones(len(strata)), np.bincount(stratum_i, known_i)
    bad = [f"{name!r} ({n:,.0f} of {of:,})" for name, n, of in zip(names, known_h, n_h, strict=True) if not 0 < n < of]
    if bad and 0 < known_i.sum() < len(known_i):
        msg = f"{len(bad):,} of {len(names):,} strata have no known answer, or no other. First: {bad[0]}."
        raise UsageError(msg)
    for part_i in (known_i, ~known_i):
        share_h = np.bincount(stratum_i[part_i], minlength=len(names)) / max(part_i.sum(), 1)
        weight_i[part_i] = (n_h / len(strata) / np.maximum(share_h, 1e-12))[stratum_i[part_i]]
    return weight_i


def _answers(run: Run, question: Question, items: pl.Series) -> tuple[Ints, Floats, int]:
    """Return the answers of spot checks that measure, for how many items each was drawn, and how many were chosen."""
    rows = spot_checks(run).filter(pl.col("question") == question.name).drop_nulls("answer")
    random_rows = rows.filter(pl.col("purpose") == "measure")
    # Within a sheet rows stand for their blocks; the mean of a sheet's weights is 1.
    weight = pl.col("weight") / pl.col("weight").mean().over("sheet")
    joined = items.to_frame("item").join(
        random_rows.select("item", "answer", weight=weight).unique("item", keep="first"),
        on="item", how="left", maintain_order="left",
    )  # fmt: skip
    answer_i = _codes(joined["answer"], list(question.labels))
    return answer_i, joined["weight"].fill_null(1.0).to_numpy(), rows.height - random_rows.height


def _codes(names: pl.Series, labels: list[str]) -> Ints:
    return np.asarray(positions(names, labels, default=UNKNOWN), dtype=np.int64)


def _probabilities(run: Run, question: Question, items: pl.DataFrame, column: str) -> Floats:
    if question.positive is not None:
        p_i = items[column].to_numpy()
        p_ik = np.stack([1.0 - p_i, p_i], axis=1)
        return p_ik if question.labels[1] == question.positive else p_ik[:, ::-1]
    rows = run.table("posterior", where=pl.col("question") == question.name)
    by_item = rows.group_by("item", maintain_order=True).agg(column)
    joined = items.select("item").join(by_item, on="item", how="left", maintain_order="left")
    return np.asarray(joined[column].list.to_array(len(question.labels)).to_numpy(), dtype=np.float64)


def vote_matrix(votes: pl.DataFrame, items: pl.Series, judges: list[str], labels: list[str]) -> Ints:
    """Return the votes of judges on items, or `UNKNOWN`; of an item asked about twice the first: `vote_ji`."""
    places = pl.DataFrame({"item": items}).with_row_index("at")
    coded = votes.with_columns(judge=pl.col("annotator").cast(pl.String)).filter(pl.col("judge").is_in(judges))
    coded = coded.join(places, on="item", how="inner", maintain_order="left")
    vote_ji = np.full((len(judges), len(items)), UNKNOWN, dtype=np.int64)
    judge_v, item_v = positions(coded["judge"], judges, default=0), coded["at"].to_numpy()
    # Backwards: of two votes of one judge on one item the first stays.
    vote_ji[judge_v[::-1], item_v[::-1]] = _codes(coded["label"], labels)[::-1]
    return vote_ji


def _counts(votes: pl.DataFrame, items: pl.Series, labels: list[str]) -> Floats:
    coded = votes.select("item", "label").join(items.to_frame("item").with_row_index("at"), on="item", how="inner")
    at_v, n = coded["at"].to_numpy() * len(labels) + _codes(coded["label"], labels), len(items) * len(labels)
    return np.bincount(at_v, minlength=n).reshape(-1, len(labels)).astype(np.float64)


def systems_of(run: Run, question: Question, items: pl.Series, by: str | None) -> tuple[list[str], Ints]:
    """Return the systems that items are scored by, and which one each item is of.

    Parameters
    ----------
    run, question, items
        The run, and the items of one question.
    by
        A column: domain, or one that was kept with the votes. None for all items together.
    """
    if by is None:
        return [ALL], np.zeros(len(items), dtype=np.int64)
    values = _column(run, question, items, by, "score by", allow_mixed=False).fill_null(NO_DOMAIN)
    names = values.unique().sort().to_list()
    return names, positions(values, names, default=0).astype(np.int64)


def default_system(run: Run) -> str | None:
    """Return the column that scores are by unless another is named: system, else the domain where there are several."""
    if SYSTEM in run.scan("votes").collect_schema().names():
        return SYSTEM
    n_domains = run.scan("items").select(pl.col("domain").drop_nulls().n_unique()).collect(engine="streaming").item()
    return "domain" if n_domains > 1 else None


def _clusters(run: Run, question: Question, items: pl.Series, column: str | None) -> Ints:
    names = run.scan("votes").collect_schema().names()
    column = column or next((name for name in CLUSTERS if name in names), None)
    alone_i = np.arange(len(items))
    if column is None:
        return alone_i
    values = _column(run, question, items, column, "cluster by", allow_mixed=True)
    code_i = positions(values, values.drop_nulls().unique().sort().to_list(), default=UNKNOWN)
    return np.where(code_i == UNKNOWN, len(items) + alone_i, code_i)


def _column(run: Run, question: Question, items: pl.Series, name: str, purpose: str, *, allow_mixed: bool) -> pl.Series:
    """Return a column of the votes by item; refuse items with several values, unless they are allowed."""
    here = pl.col("question") == question.name
    if name in ("domain", run.manifest["columns"].get("domain")):
        rows = run.table("items", where=here).select("item", value=pl.col("domain").cast(pl.String))
        return items.to_frame("item").join(rows, on="item", how="left", maintain_order="left")["value"]
    votes = run.table("votes", where=here)
    if name not in votes.columns or name in (*KEYS, "annotator", "label"):
        columns = ["domain", *(column for column in votes.columns if column not in (*KEYS, "annotator", "label"))]
        msg = (
            f"{run.where} has no column {name!r} to {purpose}.{did_you_mean(name, columns)} Found: "
            f"{', '.join(columns)}. A column of the votes is there if the audit is told to keep it: --keep {name}."
        )
        raise UsageError(msg)
    value = pl.col(name).cast(pl.String)
    rows = votes.drop_nulls(name).group_by("item", maintain_order=True).agg(
        value=value.first(), n=value.n_unique(), last=value.last()
    )  # fmt: skip
    mixed = rows.filter(pl.col("n") > 1)
    if mixed.height and not allow_mixed:
        first = mixed.row(0, named=True)
        msg = (
            f"{mixed.height:,} items have more than one {name!r}. First: item {first['item']!r} has {first['value']!r} "
            f"and {first['last']!r}. An item is one answer of one system: give each its own id."
        )
        raise UsageError(msg)
    return items.to_frame("item").join(rows, on="item", how="left", maintain_order="left")["value"]
