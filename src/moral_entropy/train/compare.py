"""Do soft labels win? The same split, seeds, steps and architecture for every kind of target.

Takes a `Consensus` with texts, gives a `Study`: scores of every model and target on items it has not seen, against
several references, paired differences with intervals, and learning curves. Touches no files.
"""

from __future__ import annotations

import difflib
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import TrainError, UsageError
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.arms import ALL_VOTES, Arm, make_arms
from moral_entropy.train.classifier import Classifier, train_classifier
from moral_entropy.train.references import SHARE
from moral_entropy.train.scores import by_question, draw_times, score
from moral_entropy.train.settings import Point, TrainSettings
from moral_entropy.train.splits import Split, make_splits, normal_text
from moral_entropy.train.study_tables import (
    CONSTANT,
    Graded,
    Grades,
    Place,
    difference_table,
    score_table,
    with_means,
)
from moral_entropy.train.targets import Targets, check_classes, check_kind
from moral_entropy.votes.table import Floats

TARGETS = ("soft", "share", "any", "majority", "two-vote")
MODELS = ("tfidf", "minilm")

CURVES = pl.Schema(
    {
        **dict.fromkeys(("split", "model", "target"), pl.String()),
        **dict.fromkeys(("seed", "step"), pl.Int64()),
        **dict.fromkeys(("train_loss", "validation_loss"), pl.Float64()),
    }
)


Trainer = Callable[..., Classifier]
"""Called as `train_classifier` is."""


@dataclass(frozen=True, eq=False)
class Study:
    """What a comparison of targets found.

    Parameters
    ----------
    scores
        split, model, target, reference, question, metric, value, low, high, seed_sd, n, seeds.
    differences
        The same places: difference (base less target), low, high, better (the base, the target or "neither").
    curves
        split, model, target, seed, step, train_loss, validation_loss.
    notes
        What was left out or stands out, one sentence each.
    facts
        How it was made: base, targets, models, seeds, split, items, interval and the like.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    curves: pl.DataFrame
    notes: tuple[str, ...]
    facts: dict[str, Any]


@dataclass(eq=False)
class _Log:
    # What comes out of training, as it comes.
    grades: Grades = field(default_factory=dict)
    curves: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Plan:
    # Everything that is the same for every target.
    kinds: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    split: str
    split_seed: int
    settings: TrainSettings
    replicates: int
    train: Trainer

    @property
    def base(self) -> str:
        return "soft" if "soft" in self.kinds else self.kinds[0]


def compare_targets(
    consensus: Consensus,
    *,
    kinds: Sequence[str] = TARGETS,
    models: Sequence[str] = ("tfidf",),
    seeds: int | Sequence[int] = 5,
    split: str = "items",
    settings: TrainSettings | None = None,
    held_out: float = SHARE,
    fit_options: Mapping[str, Any] | None = None,
    split_seed: int = 0,
    replicates: int = 400,
    interval: float = 0.9,
    train: Trainer = train_classifier,
    advance: Advance = ignore,
) -> Study:
    """Train the same models on every kind of target and score them on the same unseen items.

    Parameters
    ----------
    consensus
        The fit whose targets are compared; its votes need texts.
    kinds
        Kinds of target. Differences are those of "soft", or else of the first, less each other one.
    models
        "tfidf", "minilm", a folder or a hub name.
    seeds
        How many, or which. A seed decides which of the items not tested are for validation, and all chance in training.
    split
        "items", "domains" or "leave-domain-out".
    settings
        The same for all; its seed and patience are not used: nobody stops early.
    held_out
        Share of the annotators whose votes are held out for a reference of its own; 0 leaves it out.
    fit_options
        Further keywords of `fit` that the consensus was fitted with, for the fit without the votes held out.
    split_seed
        Decides which items are tested, and who is held out.
    replicates, interval
        Resamplings of the items and seeds, and the mass of the intervals from them.
    train
        What trains.
    advance
        Called with the share done.
    """
    _check_names(kinds, models)
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen:
        msg = "no seed, no study: give at least one, and several for intervals over them."
        raise UsageError(msg)
    plan = _Plan(
        tuple(kinds), tuple(models), chosen, split, split_seed, settings or TrainSettings(), replicates, train
    )  # fmt: skip
    log = _Log()
    arms, notes = make_arms(consensus, plan.kinds, held_out=held_out, seed=split_seed, fit_options=fit_options)
    log.notes += notes
    for n, arm in enumerate(arms):
        _run_arm(arm, plan, log, lambda share, n=n: advance((n + share) / len(arms)))  # type: ignore[misc]
    return _study(log, plan, interval, arms)


def _check_names(kinds: Sequence[str], models: Sequence[str]) -> None:
    for what, names in (("target", kinds), ("model", models)):
        twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
        if not names or twice:
            msg = f"{what} {twice[0]!r} is named twice." if twice else f"name at least one {what} to compare."
            raise UsageError(msg)
    if len(kinds) < 2:
        msg = f"one kind of target, {kinds[0]!r}, cannot be compared with itself. Name several, such as soft,majority."
        raise UsageError(msg)
    for kind in kinds:
        check_kind(kind)
    for model in models:
        if model not in MODELS and "/" not in model and not Path(model).exists():
            close = difflib.get_close_matches(model, MODELS, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            msg = (
                f"there is no model {model!r}{meant} Choose {' or '.join(MODELS)}, a folder, or a hub name OWNER/NAME."
            )
            raise UsageError(msg)


def _run_arm(arm: Arm, plan: _Plan, log: _Log, advance: Advance) -> None:
    splits_by_seed = []
    for seed in plan.seeds:
        splits, notes = make_splits(plan.split, arm.rows.texts, arm.rows.domains, seed=plan.split_seed, draw=seed)
        splits_by_seed.append(splits)
    log.notes += [note for note in notes if note not in log.notes]
    by_split = list(zip(*splits_by_seed, strict=True))
    trained = 0
    for n, same in enumerate(by_split):
        why_not = _unlearnable(arm, same)
        if why_not is None:
            _run_split(arm, same, plan, log, lambda share, n=n: advance((n + share) / len(by_split)))  # type: ignore[misc]
            trained += 1
        elif len(by_split) == 1:
            raise why_not
        else:
            log.notes.append(f"Split {same[0].name!r} is left out ({arm.name}): {why_not}")
    if not trained:
        msg = f"no split can be trained on. The last: {log.notes[-1]}"
        raise TrainError(msg)


def _unlearnable(arm: Arm, same: Sequence[Split]) -> TrainError | None:
    """Give the error of the first target that has only one answer among the training items of a seed."""
    for split in same:
        for targets in arm.lessons.values():
            try:
                check_classes(targets.take(split.train_i))
            except TrainError as error:
                return error
    return None


def _run_split(arm: Arm, same: Sequence[Split], plan: _Plan, log: _Log, advance: Advance) -> None:
    """Train every model on every target with every seed, and grade the answers."""
    name, test_i = same[0].name, same[0].test_i
    tested = arm.rows.take(test_i)
    grader = _Grader(arm, name, tested, plan)
    sides = {"train": same[0].train_i, "validation": same[0].validation_i, "test": test_i}
    log.sizes.setdefault(name, {side: len(at_i) for side, at_i in sides.items()})
    jobs = [(model, kind, n) for model in plan.models for n in range(len(plan.seeds)) for kind in plan.kinds]
    answers: dict[tuple[str, str], list[Floats]] = {}
    for done, (model, kind, n) in enumerate(jobs):
        lesson, split = arm.lessons[kind], same[n]
        classifier = plan.train(
            model,
            lesson.take(split.train_i),
            lesson.take(split.validation_i),
            # Nobody stops early, so that every target gets the same steps.
            replace(plan.settings, seed=plan.seeds[n], patience=0),
            advance=lambda share, done=done: advance((done + share) / len(jobs)),
        )
        answers.setdefault((model, kind), []).append(np.asarray(classifier.probabilities(tested.texts), dtype=float))
        if arm.name == ALL_VOTES:
            place = {"split": name, "model": model, "target": kind, "seed": plan.seeds[n]}
            log.curves += [{**place, **_point(point)} for point in classifier.curve]
        advance((done + 1) / len(jobs))
    answers[CONSTANT, plan.base] = [_constant(arm.lessons[plan.base], split.train_i, tested) for split in same]
    for (model, kind), p_nio in answers.items():
        log.grades |= grader.grade(name, model, kind, p_nio)


def _point(point: Point) -> dict[str, Any]:
    losses = {"train_loss": point[1], "validation_loss": point[2]}
    return {"step": int(point[0]), **{name: None if math.isnan(loss) else loss for name, loss in losses.items()}}


def _constant(lesson: Targets, train_i: Any, tested: Targets) -> Floats:
    """Answer every text with the mean target of the training items."""
    p_o = np.empty(lesson.head.n_outputs)
    for q, columns in enumerate(lesson.head.columns):
        weight_i = lesson.weight_iq[train_i, q]
        p_o[columns] = weight_i @ lesson.target_io[train_i, columns] / weight_i.sum()
    return np.tile(p_o, (tested.n_items, 1))


class _Grader:
    """Holds answers about the tested items of a split against every reference, as is and over resampled texts."""

    def __init__(self, arm: Arm, split: str, tested: Targets, plan: _Plan) -> None:
        numbers: dict[str, int] = {}
        group_i = np.array([numbers.setdefault(normal_text(text), len(numbers)) for text in tested.texts])
        # Splits have streams of their own: what is averaged over them is resampled independently.
        seed = plan.split_seed + zlib.crc32(split.encode())
        self.times_si = draw_times(group_i, replicates=plan.replicates, seed=seed)
        self.head = tested.head
        self.standards = {one.name: one.standards(tested.items) for one in arm.references}

    def grade(self, split: str, model: str, kind: str, p_nio: Sequence[Floats]) -> Grades:
        answers_nq = [by_question(self.head, p_io) for p_io in p_nio]
        found: Grades = {}
        for reference, standards in self.standards.items():
            for q, standard in enumerate(standards):
                if not standard.n_items:
                    continue
                scored_n = [score(answers_q[q], standard, self.times_si) for answers_q in answers_nq]
                value_ns = {metric: np.stack([one[metric] for one in scored_n]) for metric in scored_n[0]}
                place = Place(split, model, kind, reference, self.head.questions[q])
                found[place] = Graded(value_ns, standard.n_items)
        return found


def _study(log: _Log, plan: _Plan, interval: float, arms: Sequence[Arm]) -> Study:
    grades = with_means(log.grades)
    if len(plan.seeds) == 1:
        log.notes.append("One seed: intervals are over items alone.")
    facts = {
        "base": plan.base,
        "targets": list(plan.kinds),
        "models": list(plan.models),
        "seeds": list(plan.seeds),
        "split": plan.split,
        "split_seed": plan.split_seed,
        "sizes": log.sizes,
        "items": arms[0].rows.n_items,
        "questions": list(arms[0].rows.head.questions),
        "replicates": plan.replicates,
        "interval": interval,
    }
    return Study(
        scores=score_table(grades, seed=plan.split_seed, interval=interval),
        differences=difference_table(grades, base=plan.base, seed=plan.split_seed, interval=interval),
        curves=pl.DataFrame(log.curves, schema=CURVES),
        notes=tuple(dict.fromkeys(log.notes)),
        facts=facts,
    )
