"""Fine-tuning: an encoder and `Targets` in, a trained classifier out.

AdamW, a learning rate that rises and then falls, clipped gradients, bfloat16 where the device computes with it, early
stopping by the validation loss. On a CPU the same seed gives the same bytes, killed and resumed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.progress import Advance, ignore
from moral_entropy.train.checkpoint import Checkpoints, identity
from moral_entropy.train.classifier import Point, Watch, ignore_point
from moral_entropy.train.encoder import Encoder, freeze_all_but, freeze_below, load_encoder
from moral_entropy.train.features import encode
from moral_entropy.train.head import Head
from moral_entropy.train.hidden_states import LowerLayers, hidden_states, lower_layers
from moral_entropy.train.loop import PreparedTargets, Training
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.pretrained import quiet_transformers
from moral_entropy.train.targets import Targets, mean_logits
from moral_entropy.votes.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class Finetuned:
    """A trained classifier of the Hugging Face kind.

    Parameters
    ----------
    head
        What its outputs mean.
    encoder
        Model and tokenizer.
    max_length
        Tokens per text, at most.
    curve
        How the losses fell.
    cached
        Whether only the final layer was trained, so that the features of a text can be kept.
    lower
        The layers that did not learn, so that what they make of a text can be kept.
    """

    head: Head
    encoder: Encoder
    max_length: int
    curve: tuple[Point, ...] = field(default=())
    cached: bool = False
    lower: LowerLayers | None = None

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        import torch

        if self.cached:
            feature_if = encode(self.encoder, texts, self.max_length, advance=advance)
            with torch.inference_mode():
                logits = self.encoder.final(torch.from_numpy(feature_if).to(self.encoder.device))
            return np.asarray(logits.double().cpu().numpy())
        ids = self.encoder.tokens(texts, self.max_length)
        some: Callable[[Ints], Any] | None = None
        if self.lower is not None:
            lower, states = self.lower, hidden_states(self.lower, texts, self.max_length)
            some = lambda batch: lower.logits([ids[i] for i in batch], [states[i] for i in batch])  # noqa: E731
        logits_io = np.empty((len(texts), self.head.n_outputs))
        for batch, logits in self.encoder.logits(ids, advance, some):
            logits_io[batch] = logits.double().cpu().numpy()
        return logits_io

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the probability of every output for every text: `p_io`."""
        return self.head.probabilities(self.logits(texts, advance=advance))

    def cooled(self, temperature: float) -> Finetuned:
        """Divide the logits by a temperature, in the weights of the final layer, and return the model."""
        import torch

        with torch.no_grad():
            for parameter in self.encoder.final.parameters():
                parameter.div_(temperature)
        return self

    def save(self, folder: Path) -> None:
        """Write model and tokenizer into a folder, for `from_pretrained`."""
        with quiet_transformers():
            self.encoder.model.save_pretrained(folder)
            self.encoder.tokenizer.save_pretrained(folder)


def finetune(
    train: Targets,
    validation: Targets | None,
    options: TrainOptions,
    *,
    checkpoints: Checkpoints | None = None,
    advance: Advance = ignore,
    watch: Watch = ignore_point,
) -> Finetuned:
    """Train a classifier of the Hugging Face kind.

    Parameters
    ----------
    train, validation
        What to learn, and what to stop early by.
    options
        Which model to train, and how.
    checkpoints
        Where to keep the state of the training; None for nowhere.
    advance, watch
        Called with the share done, and with every point of the learning curve.
    """
    encoder = load_encoder(options.model, train.head, device=options.device, seed=options.seed)
    _start_at(encoder, mean_logits(train))
    if options.head_only:
        freeze_all_but(encoder.final, encoder.model)
    elif options.layers is not None:
        freeze_below(encoder.model, options.layers)
    lower = lower_layers(encoder, options.layers) if options.layers is not None else None
    # Where the head alone is trained, most of the time goes into encoding the texts.
    begin = 0.8 if options.head_only else 0.1 if lower else 0.0
    prepared = _prepare(encoder, lower, train, validation, options, lambda share: advance(begin * share))
    training = Training(encoder, options, *prepared, lower)
    curve = training.run(
        checkpoints,
        {**identity(train, validation, options), "precision": training.precision},
        advance=lambda share: advance(begin + (1.0 - begin) * share),
        watch=watch,
    )
    encoder.model.eval()
    return Finetuned(train.head, encoder, options.max_length, tuple(curve), options.head_only, lower)


def _start_at(encoder: Encoder, logit_o: Floats) -> None:
    """Start with the mean answers, so that the first steps are not spent on finding them."""
    import torch

    if encoder.final.bias is not None:
        with torch.no_grad():
            encoder.final.bias.copy_(torch.from_numpy(logit_o))


def _prepare(
    encoder: Encoder,
    lower: LowerLayers | None,
    train: Targets,
    validation: Targets | None,
    options: TrainOptions,
    advance: Advance,
) -> tuple[PreparedTargets, PreparedTargets | None]:
    """Prepare the texts: as features where only the head is trained, else as tokens and what frozen layers make."""
    texts = train.texts if validation is None else (*train.texts, *validation.texts)
    cut = train.n_items
    if options.head_only:
        feature_if = encode(encoder, texts, options.max_length, advance=advance)
        first = PreparedTargets(train, features=feature_if[:cut])
        return first, None if validation is None else PreparedTargets(validation, features=feature_if[cut:])
    ids = encoder.tokens(texts, options.max_length)
    states = None if lower is None else hidden_states(lower, texts, options.max_length, advance=advance)

    def of(targets: Targets, some: slice) -> PreparedTargets:
        return PreparedTargets(targets, ids=ids[some], states=None if states is None else states[some])

    return of(train, slice(cut)), None if validation is None else of(validation, slice(cut, None))
