"""Do soft labels win? The same split, seeds, steps and architecture for every kind of target.

Takes a `Consensus` with texts, returns a `Study`: scores of every model and target on items it has not seen, against
several references, paired differences with intervals, and learning curves. Touches no files.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.report.soft_labels import CONSTANT
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.progress_folder import ProgressFolder, Trained, training_key
from moral_entropy.study.references import ALL_VOTES, Condition, make_conditions
from moral_entropy.study.tables import Graded, Grades, Place, difference_table, score_table, with_means
from moral_entropy.train.classifier import Classifier, train_classifier
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.scores import by_question, draw_times, score
from moral_entropy.train.splits import Split, hash_texts, make_splits, normal_text
from moral_entropy.train.targets import Targets, check_classes
from moral_entropy.votes.table import Floats, Ints

CURVES = pl.Schema(
    {
        **dict.fromkeys(("split", "model", "target"), pl.String()),
        **dict.fromkeys(("seed", "step"), pl.Int64()),
        **dict.fromkeys(("train_loss", "validation_loss"), pl.Float64()),
    }
)

TrainModel = Callable[..., Classifier]
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


def compare_targets(
    consensus: Consensus,
    options: StudyOptions | None = None,
    *,
    train: TrainModel = train_classifier,
    progress: ProgressFolder | None = None,
    groups: pl.DataFrame | None = None,
    advance: Advance = ignore,
) -> Study:
    """Train the same models on every kind of target and score them on the same unseen items.

    Parameters
    ----------
    consensus
        The fit whose targets are compared; its votes need texts.
    options
        What to compare, and how.
    train
        What trains.
    progress
        Where finished trainings are kept and looked up; None for nowhere.
    groups
        Table `group_items` of the run, for targets per group of annotators.
    advance
        Called with the share done.
    """
    options = options or StudyOptions()
    conditions, notes = make_conditions(
        consensus, options.targets, held_out=options.held_out, seed=options.split_seed, groups=groups
    )
    comparison = _Comparison(options, train, progress, notes=list(notes))
    for n, condition in enumerate(conditions):
        comparison.run(condition, share_of(advance, n, len(conditions)))
    return comparison.study(conditions[0].rows)


@dataclass(eq=False)
class _Comparison:
    """Trains and scores, condition by condition, and collects what comes out."""

    options: StudyOptions
    train: TrainModel
    progress: ProgressFolder | None = None
    grades: Grades = field(default_factory=dict)
    curves: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)

    def run(self, condition: Condition, advance: Advance) -> None:
        """Train and score on every split that has something to learn."""
        by_split = list(self._splits(condition.rows))
        trained = 0
        for n, splits in enumerate(by_split):
            error = _nothing_to_learn(condition, splits)
            if error is None:
                self._run_split(condition, splits, share_of(advance, n, len(by_split)))
                trained += 1
            elif len(by_split) == 1:
                raise error
            else:
                self.notes.append(f"Split {splits[0].name!r} is left out ({condition.name}): {error}")
        if not trained:
            msg = f"no split can be trained on. The last: {self.notes[-1]}"
            raise TrainError(msg)

    def _splits(self, rows: Targets) -> Iterator[tuple[Split, ...]]:
        """Yield every split as all seeds have it: the tested items are the same, those for validation are not."""
        made = [
            make_splits(self.options.split, rows.texts, rows.domains, seed=self.options.split_seed, draw=seed)
            for seed in range(self.options.seeds)
        ]
        self.notes += [note for note in made[-1][1] if note not in self.notes]
        return zip(*(self._some(rows, splits) for splits, _ in made), strict=True)

    def _some(self, rows: Targets, splits: Sequence[Split]) -> tuple[Split, ...]:
        """Keep as many texts as asked for; the same ones in every seed, and validation in proportion to training."""
        draw_i = hash_texts(rows.texts, seed=self.options.split_seed, purpose="part")

        def some(split: Split) -> Split:
            train = (self.options.train_texts or np.inf) / max(len(split.train_i), 1)
            test = (self.options.test_texts or np.inf) / max(len(split.test_i), 1)
            sides = (split.train_i, train), (split.validation_i, train), (split.test_i, test)
            return Split(split.name, *(at_i[draw_i[at_i] < share] for at_i, share in sides))

        return tuple(map(some, splits))

    def _run_split(self, condition: Condition, splits: Sequence[Split], advance: Advance) -> None:
        """Train every model on every target with every seed, and score the answers."""
        options, first = self.options, splits[0]
        tested = condition.rows.take(first.test_i)
        parts = {"train": first.train_i, "validation": first.validation_i, "test": first.test_i}
        self.sizes.setdefault(first.name, {side: len(at_i) for side, at_i in parts.items()})
        jobs = list(itertools.product(options.models, range(options.seeds), options.targets))
        answers: dict[tuple[str, str], list[Floats]] = {}
        for done, (model, seed, kind) in enumerate(jobs):
            targets, split = condition.targets[kind], splits[seed]
            # No early stopping, so that every target gets the same steps.
            how = TrainOptions(**options.hyperparameters(), model=model, seed=seed, patience=0)
            sides = targets.take(split.train_i), targets.take(split.validation_i)
            trained = self._trained(*sides, how, tested.texts, share_of(advance, done, len(jobs)))
            answers.setdefault((model, kind), []).append(trained.p_io)
            if condition.name == ALL_VOTES:
                self._keep_curve(trained, {"split": split.name, "model": model, "target": kind, "seed": seed})
            advance((done + 1) / len(jobs))
        base = condition.targets[options.base]
        answers[CONSTANT, options.base] = [_mean_answer(base, split.train_i, tested) for split in splits]
        self._grade(condition, first.name, tested, answers)

    def _trained(
        self, train: Targets, validation: Targets, how: TrainOptions, tested: Sequence[str], advance: Advance
    ) -> Trained:
        """Train and answer, unless an earlier start of this study has done so."""
        if self.progress is None:
            return _answered(self.train(train, validation, how, advance=advance), tested)
        key = training_key(train, validation, how, tested)
        found = self.progress.read(key)
        if found is None:
            checkpoints = self.progress.checkpoints(key, how)
            classifier = self.train(train, validation, how, checkpoints=checkpoints, advance=advance)
            found = _answered(classifier, tested)
            self.progress.write(key, found)
        return found

    def _keep_curve(self, trained: Trained, place: dict[str, Any]) -> None:
        for step, *losses in trained.curve:
            train_loss, validation_loss = (None if math.isnan(loss) else loss for loss in losses)
            self.curves.append({**place, "step": step, "train_loss": train_loss, "validation_loss": validation_loss})

    def _grade(
        self, condition: Condition, split: str, tested: Targets, answers: Mapping[tuple[str, str], Sequence[Floats]]
    ) -> None:
        """Score answers about the tested items against every reference, as is and over resampled texts."""
        numbers: dict[str, int] = {}
        group_i = np.array([numbers.setdefault(normal_text(text), len(numbers)) for text in tested.texts])
        # Splits have streams of their own: what is averaged over them is resampled independently.
        seed = self.options.split_seed + zlib.crc32(split.encode())
        times_si = draw_times(group_i, replicates=self.options.replicates, seed=seed)
        references = {one.name: one.standards(tested.items) for one in condition.references}
        for (model, kind), p_nio in answers.items():
            answers_nq = [by_question(tested.head, p_io) for p_io in p_nio]
            for reference, standards in references.items():
                for q, standard in enumerate(standards):
                    if standard.n_items:
                        scored_n = [score(answers_q[q], standard, times_si) for answers_q in answers_nq]
                        value_ns = {metric: np.stack([one[metric] for one in scored_n]) for metric in scored_n[0]}
                        place = Place(split, model, kind, reference, tested.head.questions[q])
                        self.grades[place] = Graded(value_ns, standard.n_items)

    def study(self, rows: Targets) -> Study:
        """Make the tables."""
        options, grades = self.options, with_means(self.grades)
        if options.seeds == 1:
            self.notes.append("One seed: intervals are over items alone.")
        facts = {
            "base": options.base,
            "targets": list(options.targets),
            "models": list(options.models),
            "seeds": list(range(options.seeds)),
            "split": options.split,
            "split_seed": options.split_seed,
            "sizes": self.sizes,
            "items": rows.n_items,
            "questions": list(rows.head.questions),
            "replicates": options.replicates,
            "interval": options.interval,
        }
        return Study(
            scores=score_table(grades, seed=options.split_seed, interval=options.interval),
            differences=difference_table(grades, base=options.base, seed=options.split_seed, interval=options.interval),
            curves=pl.DataFrame(self.curves, schema=CURVES),
            notes=tuple(dict.fromkeys(self.notes)),
            facts=facts,
        )


def _answered(classifier: Classifier, tested: Sequence[str]) -> Trained:
    return Trained(np.asarray(classifier.probabilities(tested), dtype=float), tuple(classifier.curve))


def _nothing_to_learn(condition: Condition, splits: Sequence[Split]) -> TrainError | None:
    """Return the error of the first target that has only one answer among the training items of a seed."""
    for split in splits:
        for targets in condition.targets.values():
            try:
                check_classes(targets.take(split.train_i))
            except TrainError as error:
                return error
    return None


def _mean_answer(targets: Targets, train_i: Ints, tested: Targets) -> Floats:
    """Answer every text with the mean target of the training items."""
    p_o = np.empty(targets.head.n_outputs)
    for q, columns in enumerate(targets.head.columns):
        weight_i = targets.weight_iq[train_i, q]
        p_o[columns] = weight_i @ targets.target_io[train_i, columns] / weight_i.sum()
    return np.tile(p_o, (tested.n_items, 1))
