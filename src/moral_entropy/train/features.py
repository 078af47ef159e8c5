"""Features: the input of an encoder's final layer for each text, computed once and kept on disk.

Training only the head, on many targets or seeds, then costs seconds. A feature is stored under a hash of its text, in
a folder named by the encoder's hash and the length of texts. Deleting the cache loses nothing but time.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.cache import cache_folder
from moral_entropy.errors import FileError, UsageError
from moral_entropy.files import whole_file
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.encoder import Encoder, fingerprint
from moral_entropy.train.text_cache import file_name, of_texts

Features = NDArray[np.float32]


def encode(encoder: Encoder, texts: Sequence[str], max_length: int, *, advance: Advance = ignore) -> Features:
    """Return the features of every text: `feature_if`, from the cache where it has them.

    Parameters
    ----------
    encoder
        Its final layer alone may have been trained.
    texts
        The texts.
    max_length
        Tokens per text, at most.
    advance
        Called with the share done.
    """
    folder = cache_folder() / f"features-{fingerprint(encoder)[:32]}-{max_length}"
    found = of_texts(
        texts,
        lambda wanted: _read(folder, wanted),
        lambda some, share: _encode_now(encoder, some, max_length, share),
        lambda keys, made: _keep(folder, keys, made),
        advance=advance,
    )
    width = encoder.final.in_features
    return np.array(found, dtype=np.float32).reshape(len(texts), width)


def _encode_now(encoder: Encoder, texts: Sequence[str], max_length: int, advance: Advance) -> Features:
    seen: list[Any] = []
    hook = encoder.final.register_forward_pre_hook(lambda _module, given: seen.append(given[0]))
    feature_if = np.empty((len(texts), encoder.final.in_features), dtype=np.float32)
    try:
        for batch, _ in encoder.logits(encoder.tokens(texts, max_length), advance):
            feature = seen.pop()
            if feature.ndim != 2:
                msg = (
                    f"the head of {encoder.name!r} looks at every token, so it cannot be trained alone. "
                    "Leave --head-only out."
                )
                raise UsageError(msg)
            feature_if[batch] = feature.float().cpu().numpy()
    finally:
        hook.remove()
    return feature_if


def _read(folder: Path, wanted: set[str]) -> dict[str, Features]:
    known: dict[str, Features] = {}
    for path in sorted(folder.glob("*.npz")):
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                keys, features = stored["keys"].tolist(), stored["features"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            continue  # A damaged file counts as none.
        known.update((key, feature) for key, feature in zip(keys, features, strict=True) if key in wanted)
    return known


def _keep(folder: Path, keys: list[str], feature_if: Features) -> dict[str, Features]:
    # Without a place for a cache, texts are encoded anew the next time.
    with suppress(OSError, FileError):
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / f"{file_name(keys)}.npz") as partial, partial.open("wb") as file:
            np.savez(file, keys=np.array(keys), features=feature_if)
    return dict(zip(keys, feature_if, strict=True))
