"""Encoder: a Hugging Face sequence classifier and its tokenizer, by name, folder or hub name.

Loads and freezes; `finetune` trains. Folders are read without a look at the network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging import ERROR
from pathlib import Path
from typing import Any

from moral_entropy.errors import MissingExtraError, TrainError, UsageError
from moral_entropy.train.head import Head
from moral_entropy.train.minilm import minilm_folder
from moral_entropy.votes.source import one_line

MINILM = "minilm"
CONFIG = "config.json"
TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model",
)  # fmt: skip
"""Files one of which a tokenizer must have."""

SECONDS = 10.0
"""How long the hub may take to answer whether it has a model."""


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
        The linear map that gives the outputs.
    device
        Where it computes.
    """

    name: str
    model: Any
    tokenizer: Any
    final: Any
    device: Any

    def tokens(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Cut texts in tokens, at most so many each."""
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
        return ids

    def padded(self, ids: Sequence[list[int]]) -> dict[str, Any]:
        """Lay texts of different length out in one rectangle."""
        with hushed():
            batch = self.tokenizer.pad({"input_ids": list(ids)}, padding=True, return_tensors="pt")
        return {name: tensor.to(self.device) for name, tensor in batch.items()}


def load_encoder(name: str, head: Head, *, device: str = "auto", seed: int = 0) -> Encoder:
    """Load a classifier with one output for each of the head's; those it did not have start at random.

    Parameters
    ----------
    name
        "minilm", a folder, or a name on the hub.
    head
        What the outputs shall be.
    device
        As `TrainSettings` has it.
    seed
        Of outputs that start at random.
    """
    torch, transformers = import_torch()
    where = chosen_device(torch, device)
    place = _place(name)
    with hushed(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(place, local_files_only=True)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                place, local_files_only=True, **_outputs(head), ignore_mismatched_sizes=True, dtype=torch.float32
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            msg = f"the model {name!r} cannot be loaded: {one_line(error)}."
            raise TrainError(msg) from error
    _pad_with_something(model, tokenizer)
    return Encoder(name, model.to(where), tokenizer, final_map(torch, model, head.n_outputs), where)


def import_torch() -> tuple[Any, Any]:
    """Give PyTorch and Transformers, or say which extra brings them."""
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
        # A name may be known and the device absent: only computing there tells.
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        msg = f"there is no device {device!r} to train on: {one_line(error)}. Choose another with --device cpu."
        raise TrainError(msg) from error
    return torch.device(device)


def final_map(torch: Any, model: Any, n_outputs: int) -> Any:
    """Find the linear map that gives the outputs: the last one of that width."""
    linear = [one for one in model.modules() if isinstance(one, torch.nn.Linear) and one.out_features == n_outputs]
    if not linear:
        msg = f"{type(model).__name__} has no linear map to {n_outputs} outputs, so its head cannot be found."
        raise TrainError(msg)
    return linear[-1]


def freeze_below(model: Any, layers: int) -> None:
    """Let only the last so many layers learn, and what follows them.

    Raises
    ------
    UsageError
        If the model has fewer layers.
    """
    base = model.base_model
    stack = _layers(base)
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
    """Let only one map learn."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter in final.parameters():
        parameter.requires_grad_(True)


def fingerprint(encoder: Encoder) -> str:
    """Hash everything between the text and the final map: two encoders of one hash encode alike."""
    digest = hashlib.sha256(type(encoder.model).__name__.encode())
    digest.update(f"{type(encoder.tokenizer).__name__} {len(encoder.tokenizer)}".encode())
    own = {id(parameter) for parameter in encoder.final.parameters()}
    for name, parameter in encoder.model.named_parameters():
        if id(parameter) not in own:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def hushed() -> Iterator[None]:
    """Keep Transformers from chatting: what matters is said by us."""
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    before, bars, hub_before = logging.get_verbosity(), logging.is_progress_bar_enabled(), hub_logging.get_verbosity()
    logging.set_verbosity_error()
    hub_logging.set_verbosity(ERROR)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        hub_logging.set_verbosity(hub_before)
        if bars:
            logging.enable_progress_bar()


def _place(name: str) -> str:
    """Find the folder of a model."""
    if name == MINILM:
        return str(minilm_folder())
    folder = Path(name)
    if not folder.is_dir():
        if folder.is_file() or name.startswith((".", "/", "~")) or name.count("/") > 1:
            msg = f"there is no model folder {name!r}. Give a folder with {CONFIG}, a name on the hub, or minilm."
            raise TrainError(msg)
        return _from_hub(name)
    if not (folder / CONFIG).is_file():
        msg = f"{folder} is no model: it has no {CONFIG}. Give the folder that save_pretrained wrote."
        raise TrainError(msg)
    if not any((folder / file).is_file() for file in TOKENIZERS):
        msg = (
            f"{folder} has no tokenizer (none of {', '.join(TOKENIZERS[:3])}, …). "
            f"Put the one the model was trained with beside it: tokenizer.save_pretrained({str(folder)!r})."
        )
        raise TrainError(msg)
    return str(folder)


def _outputs(head: Head) -> dict[str, Any]:
    names = dict(enumerate(head.names))
    widths = [block.width for block in head.blocks]
    # Transformers has no word for a head of both kinds; prediction goes by our own file there.
    kind = "multi_label_classification" if max(widths) == 1 else None
    return {
        "num_labels": head.n_outputs,
        "id2label": names,
        "label2id": {name: at for at, name in names.items()},
        "problem_type": "single_label_classification" if len(widths) == 1 and kind is None else kind,
    }


def _from_hub(name: str) -> str:
    """Give the folder of a model of the hub: from the cache on this machine, else by download."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    needed = ["*.json", "*.txt", "*.model", "*.safetensors"]
    with hushed():
        try:
            return str(snapshot_download(name, local_files_only=True))
        except HFValidationError as error:
            msg = f"{name!r} is neither a folder nor a name on the hub. Use --model minilm, or name a model folder."
            raise TrainError(msg) from error
        except OSError:
            pass
        try:
            # Asked once, and briefly: a download would try for most of a minute before it gave up.
            files = [file.rfilename for file in HfApi().model_info(name, timeout=SECONDS).siblings or ()]
            old = [] if any(file.endswith(".safetensors") for file in files) else ["pytorch_model*.bin"]
            return str(snapshot_download(name, allow_patterns=[*needed, *old]))
        except OfflineModeIsEnabled as error:
            raise _no_such_model(name, "HF_HUB_OFFLINE is set") from error
        except HfHubHTTPError as error:
            raise _no_such_model(name, "the hub has no such model, or none that it gives to everybody") from error
        except Exception as error:
            raise _no_such_model(name, "the hub cannot be reached") from error


def _no_such_model(name: str, why: str) -> TrainError:
    return TrainError(
        f"there is no folder {name!r}, nor such a model in the hub's cache, and it cannot be downloaded: {why}. "
        "Give a folder with --model, or use --model minilm, which needs no network."
    )


def _pad_with_something(model: Any, tokenizer: Any) -> None:
    # Models that write text have no token to pad with.
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id


def _layers(base: Any) -> Any:
    """Find the stack of layers: the longest list of modules of one kind."""
    from torch.nn import ModuleList

    stacks = [one for one in base.modules() if isinstance(one, ModuleList) and len({type(layer) for layer in one}) == 1]
    if not stacks:
        msg = f"{type(base).__name__} has no stack of layers. Leave --layers out to train all of it."
        raise UsageError(msg)
    return max(stacks, key=len)
