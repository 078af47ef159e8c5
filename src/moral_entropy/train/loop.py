"""The training loop: step after step, with points of a curve, early stopping and checkpoints.

Everything that decides a step is a function of the seed and the step's number, or is in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance
from moral_entropy.train.batches import shuffled_batches, sorted_batches
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.encoder import Encoder
from moral_entropy.train.features import Features
from moral_entropy.train.head import Head
from moral_entropy.train.settings import Point, TrainSettings, Watch
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Ints

POINTS = 4
"""Points of the learning curve an epoch."""

EVALUATED_AT_ONCE = 128


def torch_loss(head: Head, logits: Any, target: Any, weight: Any) -> Any:
    """Give `Head.loss` as PyTorch computes it: summed over questions, averaged over items."""
    from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

    total = logits.new_zeros(())
    for q, columns in enumerate(head.columns):
        said, meant = logits[:, columns], target[:, columns]
        if said.shape[1] == 1:
            losses = binary_cross_entropy_with_logits(said, meant, reduction="none")[:, 0]
        else:
            losses = -(meant * log_softmax(said, dim=1)).sum(dim=1)
        total = total + (losses * weight[:, q]).sum()
    return total / max(len(logits), 1)


@dataclass(frozen=True, eq=False)
class Lesson:
    """Targets with their texts prepared: cut in tokens, or encoded as features."""

    targets: Targets
    ids: list[list[int]] | None = None
    features: Features | None = None

    @property
    def length_i(self) -> list[int]:
        """Tokens of each text; features are all of a length."""
        return [len(one) for one in self.ids] if self.ids is not None else [1] * self.targets.n_items


@dataclass(frozen=True)
class Schedule:
    """The learning rate: up to its peak in the first steps, then down to 0, in straight lines.

    Examples
    --------
    >>> schedule = Schedule(peak=1.0, steps=10, warmup=0.2)
    >>> [round(schedule.rate(step), 2) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.12]
    """

    peak: float
    steps: int
    warmup: float

    def rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 0."""
        rising = round(self.steps * self.warmup)
        if step < rising:
            return self.peak * (step + 1) / rising
        return self.peak * (self.steps - step) / max(self.steps - rising, 1)


@dataclass
class Progressed:
    """How far a training has come: what a checkpoint holds beside weights and optimizer."""

    step: int = 0
    stopped: bool = False
    loss_sum: float = 0.0
    loss_items: int = 0
    best_loss: float = float("inf")
    best_epoch: int = -1
    curve: list[Point] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {**vars(self), "curve": [tuple(point) for point in self.curve]}


@dataclass(eq=False)
class Training:
    """One training of one model; `run` does all of it."""

    torch: Any
    head: Head
    encoder: Encoder
    settings: TrainSettings
    lesson: Lesson
    validation: Lesson | None

    def __post_init__(self) -> None:
        """Find what learns, and how long."""
        named = self.encoder.model.named_parameters()
        self.learning = {name: parameter for name, parameter in named if parameter.requires_grad}
        self.optimizer = self.torch.optim.AdamW(
            self.learning.values(), lr=self.settings.peak_rate, weight_decay=self.settings.weight_decay
        )
        self.n_batches = len(self._batches(0))
        self.n_steps = self.n_batches * self.settings.epochs
        self.schedule = Schedule(self.settings.peak_rate, self.n_steps, self.settings.warmup)
        self.at = Progressed()
        self.best: dict[str, Any] = {}

    def run(
        self, checkpoints: Checkpoints | None, belongs: Mapping[str, Any], *, advance: Advance, watch: Watch
    ) -> list[Point]:
        """Train to the end and leave the best weights in the model; give the learning curve."""
        devices = [self.encoder.device] if self.encoder.device.type == "cuda" else []
        with self.torch.random.fork_rng(devices=devices):
            self.torch.manual_seed(self.settings.seed)
            self._restore(checkpoints.read(belongs) if checkpoints else None)
            while self.at.step < self.n_steps and not self.at.stopped:
                self._step()
                self._look(watch)
                if checkpoints and (self.at.step % checkpoints.every == 0 or self.at.step == self.n_steps):
                    checkpoints.write(self._state(belongs))
                advance(self.at.step / self.n_steps)
        self._take_best()
        advance(1.0)
        return self.at.curve

    def _batches(self, epoch: int) -> list[Ints]:
        size, seed = self.settings.batch_size, self.settings.seed
        return shuffled_batches(self.lesson.length_i, size, seed=seed, epoch=epoch)

    def _step(self) -> None:
        epoch, at = divmod(self.at.step, self.n_batches)
        if at == 0 or not hasattr(self, "_today"):
            self._today = self._batches(epoch)
        batch = self._today[at]
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate(self.at.step)
        self.encoder.model.train()
        loss = self._loss(self.lesson, batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.learning.values(), self.settings.clip)
        self.optimizer.step()
        found = float(loss.detach())
        if not np.isfinite(found):
            msg = f"the loss is {found} at step {self.at.step + 1:,}. Lower the learning rate with --learning-rate."
            raise TrainError(msg)
        self.at.step += 1
        self.at.loss_sum += found * len(batch)
        self.at.loss_items += len(batch)

    def _loss(self, lesson: Lesson, batch: Ints) -> Any:
        device = self.encoder.device
        targets = lesson.targets
        target = self.torch.from_numpy(targets.target_io[batch]).float().to(device)
        weight = self.torch.from_numpy(targets.weight_iq[batch]).float().to(device)
        with self._precision():
            logits = self._logits(lesson, batch)
        return torch_loss(self.head, logits.float(), target, weight)

    def _logits(self, lesson: Lesson, batch: Ints) -> Any:
        if lesson.features is not None:
            return self.encoder.final(self.torch.from_numpy(lesson.features[batch]).to(self.encoder.device))
        ids = lesson.ids or []
        return self.encoder.model(**self.encoder.padded([ids[i] for i in batch])).logits

    def _precision(self) -> Any:
        on_gpu = self.encoder.device.type == "cuda" and self.torch.cuda.is_bf16_supported()
        return self.torch.autocast("cuda", dtype=self.torch.bfloat16, enabled=on_gpu)

    def _look(self, watch: Watch) -> None:
        """Add a point to the curve when one is due, and at the end of an epoch think about stopping."""
        epoch, done = divmod(self.at.step, self.n_batches)
        due = {round(self.n_batches * part / POINTS) for part in range(1, POINTS)}
        if done and done not in due:
            return
        validation_loss = self._validation_loss()
        point = Point(self.at.step, self.at.loss_sum / max(self.at.loss_items, 1), validation_loss)
        self.at.loss_sum, self.at.loss_items = 0.0, 0
        self.at.curve.append(point)
        watch(point)
        if done == 0 and self.validation is not None:
            self._judge(epoch - 1, validation_loss)

    def _judge(self, epoch: int, validation_loss: float) -> None:
        if validation_loss < self.at.best_loss:
            self.at.best_loss, self.at.best_epoch = validation_loss, epoch
            self.best = {name: parameter.detach().clone() for name, parameter in self.learning.items()}
        elif self.settings.patience and epoch - self.at.best_epoch >= self.settings.patience:
            self.at.stopped = True

    def _validation_loss(self) -> float:
        if self.validation is None:
            return float("nan")
        self.encoder.model.eval()
        total, lesson = 0.0, self.validation
        with self.torch.inference_mode():
            for batch in sorted_batches(lesson.length_i, EVALUATED_AT_ONCE):
                total += float(self._loss(lesson, batch)) * len(batch)
        return total / max(lesson.targets.n_items, 1)

    def _take_best(self) -> None:
        with self.torch.no_grad():
            for name, value in self.best.items():
                self.learning[name].copy_(value)

    def _state(self, belongs: Mapping[str, Any]) -> dict[str, Any]:
        rng = {"cpu": self.torch.get_rng_state()}
        if self.encoder.device.type == "cuda":
            rng["cuda"] = self.torch.cuda.get_rng_state(self.encoder.device)
        return {
            "belongs": dict(belongs),
            "at": self.at.facts(),
            "weights": {name: parameter.detach() for name, parameter in self.learning.items()},
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "rng": rng,
        }

    def _restore(self, state: dict[str, Any] | None) -> None:
        if state is None:
            return
        self.at = Progressed(**{**state["at"], "curve": [Point(*point) for point in state["at"]["curve"]]})
        with self.torch.no_grad():
            for name, value in state["weights"].items():
                self.learning[name].copy_(value)
        self.optimizer.load_state_dict(state["optimizer"])
        self.best = {name: value.to(self.encoder.device) for name, value in state["best"].items()}
        self.torch.set_rng_state(state["rng"]["cpu"])
        if "cuda" in state["rng"] and self.encoder.device.type == "cuda":
            self.torch.cuda.set_rng_state(state["rng"]["cuda"], self.encoder.device)
