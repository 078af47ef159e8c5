"""The training loop: step after step, with a learning curve, early stopping and checkpoints.

Everything that decides a step is a function of the seed and the step's number, or is in the checkpoint, so that a
training which was killed and resumed gives the same result. Why it is our own: docs/adr/0014-own-training-loop.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.classifier import Point, Watch
from moral_entropy.train.encoder import Encoder, chosen_precision, import_torch, sorted_batches
from moral_entropy.train.features import Features
from moral_entropy.train.head import Head
from moral_entropy.train.hidden_states import LowerLayers
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Ints

POINTS = 4
"""Points of the learning curve per epoch."""

EVALUATED_AT_ONCE = 128
BUCKET = 50
"""Batches from which texts of similar length are put together; more would make batches less random."""


def torch_loss(head: Head, logits: Any, target: Any, weight: Any) -> Any:
    """Compute `Head.loss` with PyTorch: summed over questions, averaged over items."""
    from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

    total = logits.new_zeros(())
    for q, columns in enumerate(head.columns):
        own, wanted = logits[:, columns], target[:, columns]
        if own.shape[1] == 1:
            losses = binary_cross_entropy_with_logits(own, wanted, reduction="none")[:, 0]
        else:
            losses = -(wanted * log_softmax(own, dim=1)).sum(dim=1)
        total = total + (losses * weight[:, q]).sum()
    return total / max(len(logits), 1)


def shuffled_batches(length_i: Sequence[int], batch_size: int, *, seed: int, epoch: int) -> list[Ints]:
    """Cut the texts of one epoch into batches of similar length, so that little is padded, in a random order.

    Parameters
    ----------
    length_i
        Tokens of each text.
    batch_size
        Texts per batch; the last of a bucket may have fewer.
    seed, epoch
        What the order depends on, and nothing else.

    Examples
    --------
    >>> batches = shuffled_batches([5, 9, 5, 9], 2, seed=0, epoch=0)
    >>> sorted(batch.tolist() for batch in batches)
    [[0, 2], [1, 3]]
    """
    lengths = np.asarray(length_i)
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    batches: list[Ints] = []
    for start in range(0, len(order), batch_size * BUCKET):
        bucket = order[start : start + batch_size * BUCKET]
        bucket = np.sort(bucket)[np.argsort(lengths[np.sort(bucket)], kind="stable")]
        batches += [bucket[at : at + batch_size] for at in range(0, len(bucket), batch_size)]
    return [batches[at] for at in rng.permutation(len(batches))]


def learning_rate(step: int, *, peak: float, n_steps: int, warmup: float) -> float:
    """Compute the learning rate of a step, counted from 0: up to the peak in the first steps, then down to 0.

    Examples
    --------
    >>> [round(learning_rate(step, peak=1.0, n_steps=10, warmup=0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.12]
    """
    rising = round(n_steps * warmup)
    if step < rising:
        return peak * (step + 1) / rising
    return peak * (n_steps - step) / max(n_steps - rising, 1)


@dataclass(frozen=True, eq=False)
class PreparedTargets:
    """Targets with their texts prepared: cut into tokens, or encoded as features.

    Parameters
    ----------
    targets
        The targets.
    ids
        Tokens of each text.
    features
        What the final layer takes, where it alone learns.
    states
        What the first layer that learns takes, text by text, where there are frozen ones below it.
    """

    targets: Targets
    ids: list[list[int]] | None = None
    features: Features | None = None
    states: list[Any] | None = None

    @property
    def length_i(self) -> list[int]:
        """Tokens of each text; features are all of the same length."""
        return [len(one) for one in self.ids] if self.ids is not None else [1] * self.targets.n_items


@dataclass
class State:
    """How far a training has come: what a checkpoint holds besides weights and optimizer."""

    step: int = 0
    stopped: bool = False
    loss_sum: float = 0.0
    loss_items: int = 0
    best_loss: float = float("inf")
    best_epoch: int = -1
    curve: list[Point] = field(default_factory=list)


@dataclass(eq=False)
class Training:
    """One training of one model; `run` does all of it."""

    encoder: Encoder
    options: TrainOptions
    train: PreparedTargets
    validation: PreparedTargets | None
    lower: LowerLayers | None = None

    def __post_init__(self) -> None:
        """Find the parameters that learn, and the number of steps."""
        self.torch, _ = import_torch()
        named = self.encoder.model.named_parameters()
        self.learning = {name: parameter for name, parameter in named if parameter.requires_grad}
        self.optimizer = self.torch.optim.AdamW(
            self.learning.values(), lr=self.options.peak_rate, weight_decay=self.options.weight_decay, fused=True
        )
        self.precision = chosen_precision(self.torch, self.encoder.device, self.options.precision)
        self.batches = self._batches(0)
        self.steps_per_epoch = len(self.batches)
        self.n_steps = self.steps_per_epoch * self.options.epochs
        self.state = State()
        self.best: dict[str, Any] = {}

    def run(
        self, checkpoints: Checkpoints | None, belongs: Mapping[str, Any], *, advance: Advance, watch: Watch
    ) -> list[Point]:
        """Train to the end, leave the best weights in the model, and return the learning curve."""
        devices = [self.encoder.device] if self.encoder.device.type == "cuda" else []
        with self.torch.random.fork_rng(devices=devices):
            self.torch.manual_seed(self.options.seed)
            self._restore(checkpoints.read(belongs) if checkpoints else None)
            while self.state.step < self.n_steps and not self.state.stopped:
                self._step()
                self._add_point(watch)
                if checkpoints and (self.state.step % checkpoints.every == 0 or self.state.step == self.n_steps):
                    checkpoints.write(self._checkpoint(belongs))
                advance(self.state.step / self.n_steps)
        self._set_weights(self.best)
        advance(1.0)
        return self.state.curve

    def _batches(self, epoch: int) -> list[list[Ints]]:
        """Return the batches of every step of an epoch: one, or as many as gradients are added up."""
        options = self.options
        cut = shuffled_batches(self.train.length_i, options.batch_size, seed=options.seed, epoch=epoch)
        return [cut[at : at + options.accumulate] for at in range(0, len(cut), options.accumulate)]

    def _step(self) -> None:
        epoch, at = divmod(self.state.step, self.steps_per_epoch)
        if at == 0:
            self.batches = self._batches(epoch)
        rate = learning_rate(
            self.state.step, peak=self.options.peak_rate, n_steps=self.n_steps, warmup=self.options.warmup
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.encoder.model.train()
        n_items, total = sum(map(len, self.batches[at])), 0.0
        self.optimizer.zero_grad(set_to_none=True)
        for batch in self.batches[at]:
            # Each text counts alike, however it is spread over batches.
            loss = self._loss(self.train, batch) * (len(batch) / n_items)
            loss.backward()
            total += float(loss.detach())
        self.torch.nn.utils.clip_grad_norm_(self.learning.values(), self.options.clip)
        self.optimizer.step()
        self.state.step += 1
        self._add_loss(total, n_items)

    def _add_loss(self, loss: float, n_items: int) -> None:
        if not np.isfinite(loss):
            msg = f"the loss is {loss} at step {self.state.step:,}. Lower the learning rate with --learning-rate."
            raise TrainError(msg)
        self.state.loss_sum += loss * n_items
        self.state.loss_items += n_items

    def _loss(self, prepared: PreparedTargets, batch: Ints) -> Any:
        targets = prepared.targets
        target, weight = (
            self.torch.from_numpy(values[batch]).float().to(self.encoder.device)
            for values in (targets.target_io, targets.weight_iq)
        )
        # What is validated is what predicts: with all 32 bits.
        short = self.precision == "bfloat16" and self.encoder.model.training
        with self.torch.autocast(self.encoder.device.type, dtype=self.torch.bfloat16, enabled=short):
            logits = self._logits(prepared, batch)
        return torch_loss(targets.head, logits.float(), target, weight)

    def _logits(self, prepared: PreparedTargets, batch: Ints) -> Any:
        if prepared.features is not None:
            return self.encoder.final(self.torch.from_numpy(prepared.features[batch]).to(self.encoder.device))
        ids = [(prepared.ids or [])[i] for i in batch]
        if self.lower is not None and prepared.states is not None:
            return self.lower.logits(ids, [prepared.states[i] for i in batch])
        return self.encoder.model(**self.encoder.padded(ids)).logits

    def _add_point(self, watch: Watch) -> None:
        """Add a point to the curve when one is due, and at the end of an epoch decide whether to stop."""
        epoch, done = divmod(self.state.step, self.steps_per_epoch)
        due = {round(self.steps_per_epoch * n / POINTS) for n in range(1, POINTS)}
        if done and done not in due:
            return
        validation_loss = self._validation_loss()
        point = Point(self.state.step, self.state.loss_sum / max(self.state.loss_items, 1), validation_loss)
        self.state.loss_sum, self.state.loss_items = 0.0, 0
        self.state.curve.append(point)
        watch(point)
        if done == 0 and self.validation is not None:
            self._stop_early(epoch - 1, validation_loss)

    def _stop_early(self, epoch: int, validation_loss: float) -> None:
        """Keep the weights of the best epoch, and stop when there was none for too long."""
        if validation_loss < self.state.best_loss:
            self.state.best_loss, self.state.best_epoch = validation_loss, epoch
            self.best = {name: parameter.detach().clone() for name, parameter in self.learning.items()}
        elif self.options.patience and epoch - self.state.best_epoch >= self.options.patience:
            self.state.stopped = True

    def _validation_loss(self) -> float:
        if self.validation is None:
            return float("nan")
        self.encoder.model.eval()
        total = 0.0
        with self.torch.inference_mode():
            for batch in sorted_batches(self.validation.length_i, EVALUATED_AT_ONCE):
                total += float(self._loss(self.validation, batch)) * len(batch)
        return total / max(self.validation.targets.n_items, 1)

    def _set_weights(self, weights: Mapping[str, Any]) -> None:
        with self.torch.no_grad():
            for name, value in weights.items():
                self.learning[name].copy_(value)

    def _checkpoint(self, belongs: Mapping[str, Any]) -> dict[str, Any]:
        rng = {"cpu": self.torch.get_rng_state()}
        if self.encoder.device.type == "cuda":
            rng["cuda"] = self.torch.cuda.get_rng_state(self.encoder.device)
        return {
            "belongs": dict(belongs),
            "at": {**vars(self.state), "curve": [tuple(point) for point in self.state.curve]},
            "weights": {name: parameter.detach() for name, parameter in self.learning.items()},
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "rng": rng,
        }

    def _restore(self, checkpoint: dict[str, Any] | None) -> None:
        if checkpoint is None:
            return
        self.state = State(**{**checkpoint["at"], "curve": [Point(*point) for point in checkpoint["at"]["curve"]]})
        self.batches = self._batches(self.state.step // self.steps_per_epoch)
        self._set_weights(checkpoint["weights"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.best = {name: value.to(self.encoder.device) for name, value in checkpoint["best"].items()}
        self.torch.set_rng_state(checkpoint["rng"]["cpu"])
        if "cuda" in checkpoint["rng"] and self.encoder.device.type == "cuda":
            self.torch.cuda.set_rng_state(checkpoint["rng"]["cuda"], self.encoder.device)
