"""Fine-tuning: an encoder and `Targets` in, a trained classifier out.

A plain PyTorch loop: AdamW, a learning rate that rises and then falls, clipped gradients, bfloat16 on a GPU that has
it, early stopping by the validation loss. On a CPU the same seed gives the same bytes, killed and resumed or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moral_entropy.progress import Advance, ignore
from moral_entropy.train.batches import sorted_batches
from moral_entropy.train.checkpoint import Checkpoints, identity
from moral_entropy.train.encoder import Encoder, freeze_all_but, freeze_below, hushed, import_torch, load_encoder
from moral_entropy.train.features import encode
from moral_entropy.train.head import Head
from moral_entropy.train.loop import Lesson, Training
from moral_entropy.train.settings import Point, TrainSettings, Watch, look_away
from moral_entropy.train.targets import Targets, mean_logits
from moral_entropy.votes.table import Floats

TEXTS_AT_ONCE = 64


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
        Tokens a text at most.
    curve
        How the losses fell.
    cached
        Whether only the final map was trained, so that texts are encoded once and for all.
    """

    head: Head
    encoder: Encoder
    max_length: int
    curve: tuple[Point, ...] = field(default=())
    cached: bool = False

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Give the logit of every output for every text: `logits_io`."""
        import torch

        if self.cached:
            feature_if = encode(self.encoder, texts, self.max_length, advance=advance)
            with torch.inference_mode():
                logits = self.encoder.final(torch.from_numpy(feature_if).to(self.encoder.device))
            return np.asarray(logits.double().cpu().numpy())
        return forward(self.encoder, self.encoder.tokens(texts, self.max_length), self.head.n_outputs, advance)

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Give the probability of every output for every text: `p_io`."""
        return self.head.probabilities(self.logits(texts, advance=advance))

    def save(self, folder: Path) -> None:
        """Write model and tokenizer into a folder, for `from_pretrained`."""
        with hushed():
            self.encoder.model.save_pretrained(folder)
            self.encoder.tokenizer.save_pretrained(folder)


def finetune(
    model: str,
    train: Targets,
    validation: Targets | None,
    settings: TrainSettings,
    *,
    checkpoints: Checkpoints | None = None,
    advance: Advance = ignore,
    watch: Watch = look_away,
) -> Finetuned:
    """Train a classifier of the Hugging Face kind.

    Parameters
    ----------
    model
        "minilm", a folder, or a name on the hub.
    train, validation
        What to learn, and what to stop early by.
    settings
        How to train.
    checkpoints
        Where to keep the state of the training; None for nowhere.
    advance, watch
        Told the share done, and every point of the learning curve.
    """
    torch, _ = import_torch()
    encoder = load_encoder(model, train.head, device=settings.device, seed=settings.seed)
    _start_at(encoder, mean_logits(train))
    if settings.head_only:
        freeze_all_but(encoder.final, encoder.model)
    elif settings.layers is not None:
        freeze_below(encoder.model, settings.layers)
    begin = 0.8 if settings.head_only else 0.0
    lessons = _lessons(encoder, train, validation, settings, lambda share: advance(begin * share))
    training = Training(torch, train.head, encoder, settings, *lessons)
    curve = training.run(
        checkpoints,
        identity(model, train, validation, settings),
        advance=lambda share: advance(begin + (1.0 - begin) * share),
        watch=watch,
    )
    encoder.model.eval()
    return Finetuned(train.head, encoder, settings.max_length, tuple(curve), settings.head_only)


def _start_at(encoder: Encoder, logit_o: Floats) -> None:
    """Begin with the mean answers, lest the first steps be spent on finding them."""
    import torch

    if encoder.final.bias is not None:
        with torch.no_grad():
            encoder.final.bias.copy_(torch.from_numpy(logit_o))


def forward(encoder: Encoder, ids: Sequence[list[int]], n_outputs: int, advance: Advance = ignore) -> Floats:
    """Give the logits of texts already cut in tokens: `logits_io`."""
    import torch

    logits_io = np.empty((len(ids), n_outputs))
    encoder.model.eval()
    batches = sorted_batches([len(one) for one in ids], TEXTS_AT_ONCE)
    with torch.inference_mode():
        for done, batch in enumerate(batches):
            logits = encoder.model(**encoder.padded([ids[i] for i in batch])).logits
            logits_io[batch] = logits.double().cpu().numpy()
            advance((done + 1) / len(batches))
    return logits_io


def _lessons(
    encoder: Encoder, train: Targets, validation: Targets | None, settings: TrainSettings, advance: Advance
) -> tuple[Lesson, Lesson | None]:
    """Prepare the texts: as features where only the head is trained, else as tokens."""
    texts = train.texts if validation is None else (*train.texts, *validation.texts)
    cut = train.n_items
    if settings.head_only:
        feature_if = encode(encoder, texts, settings.max_length, advance=advance)
        first = Lesson(train, features=feature_if[:cut])
        return first, None if validation is None else Lesson(validation, features=feature_if[cut:])
    ids = encoder.tokens(texts, settings.max_length)
    return Lesson(train, ids=ids[:cut]), None if validation is None else Lesson(validation, ids=ids[cut:])
