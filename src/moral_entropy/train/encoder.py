"""Encoder: a Hugging Face sequence classifier and its tokenizer. Loads, freezes and runs it; `finetune` trains it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moral_entropy.errors import MissingExtraError, TrainError, UsageError
from moral_entropy.progress import Advance
from moral_entropy.train.head import Head
from moral_entropy.train.pretrained import model_folder, quiet_transformers
from moral_entropy.votes.table import Ints, one_line

TEXTS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Encoder:
    """A classifier that can be trained.

    Parameters
    ----------
    name
        What the user called it.
    model, tokenizer
        Of Transformers.
    final
        The linear layer that computes the outputs.
    device
        Where it computes.
    """

    name: str
    model: Any
    tokenizer: Any
    final: Any
    device: Any

    def tokens(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Cut texts into tokens, at most so many each."""
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
        return ids

    def padded(self, ids: Sequence[list[int]]) -> dict[str, Any]:
        """Pad texts of different length to one rectangle, as the model takes them."""
        with quiet_transformers():
            batch = self.tokenizer.pad({"input_ids": list(ids)}, padding=True, return_tensors="pt")
        return {name: tensor.to(self.device) for name, tensor in batch.items()}

    def logits(
        self, ids: Sequence[list[int]], advance: Advance, some: Callable[[Ints], Any] | None = None
    ) -> Iterator[tuple[Ints, Any]]:
        """Run tokenised texts through the model, batch by batch; yields the positions of a batch and its logits.

        Parameters
        ----------
        ids
            Tokens of each text.
        advance
            Called with the share done.
        some
            What computes the logits of a batch; by default the whole model.
        """
        import torch

        some = some or (lambda batch: self.model(**self.padded([ids[i] for i in batch])).logits)
        self.model.eval()
        batches = sorted_batches([len(one) for one in ids], TEXTS_AT_ONCE)
        for done, batch in enumerate(batches):
            with torch.inference_mode():
                logits = some(batch)
            yield batch, logits
            advance((done + 1) / len(batches))


def sorted_batches(length_i: Sequence[int], batch_size: int) -> list[Ints]:
    """Cut texts into batches of similar length, longest first, so that memory runs out at once or never."""
    order = np.argsort(-np.asarray(length_i), kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def load_encoder(name: str, head: Head, *, device: str = "auto", seed: int = 0) -> Encoder:
    """Load a classifier with one output for each of the head's; those it did not have start at random.

    Parameters
    ----------
    name
        "minilm", a folder, or a name on the hub.
    head
        What the outputs shall be.
    device
        As `Hyperparameters` has it.
    seed
        Of outputs that start at random.
    """
    torch, transformers = import_torch()
    where = chosen_device(torch, device)
    folder = model_folder(name)
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, **_config_of(head), ignore_mismatched_sizes=True, dtype=torch.float32
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            msg = f"the model {name!r} cannot be loaded: {one_line(error)}."
            raise TrainError(msg) from error
    _set_padding(model, tokenizer)
    return Encoder(name, model.to(where), tokenizer, final_layer(torch, model, head.n_outputs), where)


def import_torch() -> tuple[Any, Any]:
    """Import PyTorch and Transformers, or say which extra brings them."""
    try:
        import torch
        import transformers
    except ImportError as error:
        what = f"this model needs PyTorch and Transformers, and {error.name or 'one of them'} is missing"
        raise MissingExtraError(what, "train") from error
    return torch, transformers


def chosen_device(torch: Any, device: str) -> Any:
    """Find the device to compute on, and check that it is there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # PyTorch knows names of devices that this machine does not have: only a computation shows it.
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        msg = f"there is no device {device!r} to train on: {one_line(error)}. Choose another with --device cpu."
        raise TrainError(msg) from error
    return torch.device(device)


def chosen_precision(torch: Any, device: Any, precision: str) -> str:
    """Decide which numbers to train with: float32 or bfloat16.

    On a processor without bfloat16 instructions it would be emulated, and slower than float32.
    """
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    if device.type != "cpu":
        return "float32"
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if known.get("avx512_bf16") or known.get("amx_bf16") else "float32"


def _config_of(head: Head) -> dict[str, Any]:
    names = dict(enumerate(head.names))
    widths = [block.width for block in head.blocks]
    # Transformers has no name for a head of both kinds; prediction goes by our own file there.
    kind = "multi_label_classification" if max(widths) == 1 else None
    return {
        "num_labels": head.n_outputs,
        "id2label": names,
        "label2id": {name: at for at, name in names.items()},
        "problem_type": "single_label_classification" if len(widths) == 1 and kind is None else kind,
    }


def _set_padding(model: Any, tokenizer: Any) -> None:
    # Models that generate text have no token to pad with.
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id


def final_layer(torch: Any, model: Any, n_outputs: int) -> Any:
    """Find the linear layer that computes the outputs: the last one of that width."""
    linear = [one for one in model.modules() if isinstance(one, torch.nn.Linear) and one.out_features == n_outputs]
    if not linear:
        msg = f"{type(model).__name__} has no linear map to {n_outputs} outputs, so its head cannot be found."
        raise TrainError(msg)
    return linear[-1]


def freeze_below(model: Any, layers: int) -> None:
    """Train only the last so many layers, and what follows them.

    Raises
    ------
    UsageError
        If the model has fewer layers.
    """
    base = model.base_model
    stack = layers_of(model)
    if layers > len(stack):
        msg = f"--layers {layers}: the model has {len(stack)} layers. Leave --layers out to train all of it."
        raise UsageError(msg)
    first = next(iter(stack[len(stack) - layers].parameters()))
    learns = False
    # Parameters come in the order of the computation: embeddings, layers, pooler.
    for parameter in base.parameters():
        learns = learns or parameter is first
        parameter.requires_grad_(learns)


def freeze_all_but(final: Any, model: Any) -> None:
    """Train only the final layer."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter in final.parameters():
        parameter.requires_grad_(True)


def layers_of(model: Any) -> Any:
    """Find the stack of layers: the longest list of modules of one type."""
    from torch.nn import ModuleList

    base = model.base_model
    stacks = [one for one in base.modules() if isinstance(one, ModuleList) and len({type(layer) for layer in one}) == 1]
    if not stacks:
        msg = f"{type(base).__name__} has no stack of layers. Leave --layers out to train all of it."
        raise UsageError(msg)
    return max(stacks, key=len)


def fingerprint(encoder: Encoder) -> str:
    """Hash everything between the text and the final layer: encoders with the same hash compute the same features."""
    digest = hashlib.sha256(type(encoder.model).__name__.encode())
    digest.update(f"{type(encoder.tokenizer).__name__} {len(encoder.tokenizer)}".encode())
    own = {id(parameter) for parameter in encoder.final.parameters()}
    for name, parameter in encoder.model.named_parameters():
        if id(parameter) not in own:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
