"""What the frozen lower layers of an encoder make of each text, computed once and kept on disk.

With `--layers N` only the last N layers learn. What goes into the first of them is the same in every step, so it is
computed once, without dropout, rounded to 16 bits and memory-mapped; a step then costs N layers. States are stored
under a hash of their text, in a folder named by the encoder's hash, the layer and the length of texts. Deleting the
cache loses nothing but time. A model that does not give the same answer with its lower layers replaced is trained in
full instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.cache import cache_folder
from moral_entropy.errors import FileError
from moral_entropy.files import whole_file
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.encoder import Encoder, layers_of, sorted_batches
from moral_entropy.train.text_cache import file_name, of_texts

TEXTS_AT_ONCE = 64
CLOSE = 1e-3
"""Replaced lower layers may move a logit by so much, which 16 bits explain; a model that moves further is refused."""


@dataclass(frozen=True, eq=False)
class LowerLayers:
    """The layers of an encoder that are frozen, and how to do without them.

    Parameters
    ----------
    encoder
        The whole model.
    cut
        How many layers are frozen, from the first.
    in_tuple
        Whether a layer returns its states inside a tuple.
    """

    encoder: Encoder
    cut: int
    in_tuple: bool

    def states(self, ids: Sequence[list[int]]) -> list[Any]:
        """Run texts through the frozen layers and return their states: one array of tokens × width per text."""
        import torch

        seen: list[Any] = []
        stack = layers_of(self.encoder.model)
        batch = self.encoder.padded(ids)

        def keep(hidden: Any) -> Any:
            seen.append(hidden)
            return hidden

        upper: list[Callable[[Any], Any]] = [keep, *[_same] * (len(stack) - self.cut - 1)]
        self.encoder.model.eval()
        with torch.inference_mode(), self._replaced(stack[self.cut :], upper):
            self.encoder.model(**batch)
        mask = batch["attention_mask"].bool()
        return [states[own].float().cpu().numpy() for states, own in zip(seen[0], mask, strict=True)]

    def logits(self, ids: Sequence[list[int]], states: Sequence[Any]) -> Any:
        """Compute the logits of texts from the states that the frozen layers gave."""
        import torch

        batch = self.encoder.padded(ids)
        mask = batch["attention_mask"].bool()
        flat = torch.from_numpy(np.concatenate(states).astype(np.float32)).to(self.encoder.device)
        hidden = flat.new_zeros((*mask.shape, flat.shape[1]))
        hidden[mask] = flat
        stack = layers_of(self.encoder.model)
        with self._replaced(stack[: self.cut], [lambda _hidden: hidden] * self.cut):
            return self.encoder.model(**batch).logits

    @contextmanager
    def _replaced(self, layers: Any, functions: Sequence[Callable[[Any], Any]]) -> Iterator[None]:
        """Let layers compute something else while the block runs."""
        with ExitStack() as undo:
            for layer, function in zip(layers, functions, strict=True):
                layer.forward = self._forward(function)
                undo.callback(delattr, layer, "forward")
            yield

    def _forward(self, function: Callable[[Any], Any]) -> Callable[..., Any]:
        def forward(hidden_states: Any, *_given: Any, **_more: Any) -> Any:
            found = function(hidden_states)
            return (found,) if self.in_tuple else found

        return forward


def _same(hidden: Any) -> Any:
    return hidden


def lower_layers(encoder: Encoder, layers: int) -> LowerLayers | None:
    """Return the layers below the last so many; None where there is none, or where the model cannot do without them.

    Parameters
    ----------
    encoder
        The model.
    layers
        How many layers learn.
    """
    import torch

    cut = len(layers_of(encoder.model)) - layers
    if cut <= 0:
        return None
    ids = encoder.tokens(["a text", "and another one, longer than the first"], 16)
    with torch.inference_mode():
        try:
            encoder.model.eval()
            in_tuple, whole = _whole_answer(encoder, cut, ids)
            lower = LowerLayers(encoder, cut, in_tuple)
            states = [one.astype(np.float16) for one in lower.states(ids)]
            close = torch.allclose(lower.logits(ids, states), whole, atol=CLOSE, rtol=CLOSE)
        except (RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError):
            return None
    return lower if close else None


def _whole_answer(encoder: Encoder, cut: int, ids: Sequence[list[int]]) -> tuple[bool, Any]:
    """Run the model as it is: whether its layers return tuples, and the logits."""
    returned: list[bool] = []
    hook = layers_of(encoder.model)[cut - 1].register_forward_hook(
        lambda _layer, _given, found: returned.append(isinstance(found, tuple))
    )
    try:
        whole = encoder.model(**encoder.padded(ids)).logits
    finally:
        hook.remove()
    return returned[-1], whole


def hidden_states(lower: LowerLayers, texts: Sequence[str], max_length: int, *, advance: Advance = ignore) -> list[Any]:
    """Return the states of every text: 16-bit arrays of tokens × width, mapped from the cache where it has them.

    Parameters
    ----------
    lower
        The frozen layers.
    texts
        The texts.
    max_length
        Tokens per text, at most.
    advance
        Called with the share done.
    """
    folder = _folder(lower, max_length)
    return of_texts(
        texts,
        lambda wanted: _read(folder, wanted),
        lambda some, share: _make(lower, some, max_length, share),
        lambda keys, made: _keep(folder, keys, made),
        advance=advance,
    )


def _folder(lower: LowerLayers, max_length: int) -> Path | None:
    try:
        return cache_folder() / f"hidden-{_fingerprint(lower)[:32]}-{max_length}"
    except OSError:
        return None


def _fingerprint(lower: LowerLayers) -> str:
    """Hash everything between the text and the first layer that learns."""
    digest = hashlib.sha256(f"{type(lower.encoder.model).__name__} {lower.cut}".encode())
    digest.update(f"{type(lower.encoder.tokenizer).__name__} {len(lower.encoder.tokenizer)}".encode())
    for name, parameter in lower.encoder.model.named_parameters():
        if not parameter.requires_grad:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _make(lower: LowerLayers, texts: Sequence[str], max_length: int, advance: Advance) -> list[Any]:
    ids = lower.encoder.tokens(texts, max_length)
    made: list[Any] = [None] * len(ids)
    batches = sorted_batches([len(one) for one in ids], TEXTS_AT_ONCE)
    for done, batch in enumerate(batches):
        for i, states in zip(batch.tolist(), lower.states([ids[i] for i in batch]), strict=True):
            made[i] = _rounded(states)
        advance((done + 1) / len(batches))
    return made


def _rounded(states: Any) -> Any:
    # The few models whose states do not fit into 16 bits keep 32.
    with np.errstate(over="ignore"):
        small = states.astype(np.float16)
    return small if np.isfinite(small).all() else states


def _keep(folder: Path | None, keys: list[str], made: list[Any]) -> dict[str, Any]:
    """Write states and map them from the file; without room for it they stay in memory."""
    if folder is not None:
        with suppress(OSError, FileError):
            name = file_name(keys)
            _write(folder / f"{name}.npy", np.concatenate(made))
            lengths = np.array([len(one) for one in made], dtype=np.int64)
            # The index comes last: states without one are not looked at.
            _write(folder / f"{name}.lengths.npy", lengths)
            _write(folder / f"{name}.keys.npy", np.array(keys))
            return _mapped(folder / f"{name}.keys.npy", set(keys))
    return dict(zip(keys, made, strict=True))


def _write(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _read(folder: Path | None, wanted: set[str]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for index in sorted(folder.glob("*.keys.npy")) if folder is not None else ():
        # A damaged file counts as none.
        with suppress(OSError, ValueError, EOFError):
            known.update(_mapped(index, wanted))
    return known


def _mapped(index: Path, wanted: set[str]) -> dict[str, Any]:
    name = index.name.removesuffix(".keys.npy")
    keys = np.load(index, allow_pickle=False).tolist()
    lengths = np.load(index.with_name(f"{name}.lengths.npy"), allow_pickle=False)
    states = np.load(index.with_name(f"{name}.npy"), mmap_mode="r", allow_pickle=False)
    ends = np.cumsum(lengths)
    if len(keys) != len(ends) or states.ndim != 2 or (len(ends) and ends[-1] != len(states)):
        msg = f"{name} is damaged"
        raise ValueError(msg)
    rows = zip(keys, (ends - lengths).tolist(), ends.tolist(), strict=True)
    return {key: states[start:end] for key, start, end in rows if key in wanted}
