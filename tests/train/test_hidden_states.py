"""Frozen layers are computed once: the same answers, from memory or disk, and the same training killed or not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from train_support import CARE, small_bert, targets_of_texts, tune

from moral_entropy.train import hidden_states as module
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.encoder import chosen_precision, freeze_below, load_encoder
from moral_entropy.train.head import Head
from moral_entropy.train.hidden_states import hidden_states, lower_layers
from moral_entropy.train.options import TrainOptions

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="Transformers is not installed")

QUICK = TrainOptions(epochs=1, batch_size=16, learning_rate=1e-3, max_length=24, device="cpu", layers=1)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(small_bert(tmp_path_factory.mktemp("bert"), dropout=0.0))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def lower_of(bert, *, layers=1, head=None):
    encoder = load_encoder(bert, head or Head((CARE,)), device="cpu")
    freeze_below(encoder.model, layers)
    lower = lower_layers(encoder, layers)
    assert lower is not None
    return lower


def test_the_upper_layers_answer_as_the_whole_model_does(bert):
    texts = targets_of_texts(20).texts
    lower = lower_of(bert)
    ids = lower.encoder.tokens(texts, 24)
    states = hidden_states(lower, texts, 24)
    assert [len(one) for one in states] == [len(one) for one in ids], "one row per token, none for padding"
    with torch.inference_mode():
        whole = lower.encoder.model(**lower.encoder.padded(ids)).logits
        ours = lower.logits(ids, states)
    assert_allclose(ours.numpy(), whole.numpy(), atol=1e-3)
    assert all("forward" not in vars(layer) for layer in lower.encoder.model.base_model.encoder.layer)


def test_states_are_kept_in_16_bits_and_computed_once(bert, cache, monkeypatch):
    texts, counted = targets_of_texts(20).texts, []
    make = module._make
    monkeypatch.setattr(module, "_make", lambda *given: counted.append(len(given[1])) or make(*given))
    first = hidden_states(lower_of(bert), texts[:15], 24)
    both = hidden_states(lower_of(bert), texts, 24)
    assert counted == [15, 5]
    assert all(one.dtype == np.float16 and isinstance(one, np.memmap) for one in both)
    for one, other in zip(first, both, strict=False):
        assert_array_equal(one, other)
    # Another length, other states; so has a model whose lower layers are others.
    hidden_states(lower_of(bert), texts, 12)
    assert counted == [15, 5, 20]
    for file in cache.rglob("*.keys.npy"):
        file.write_bytes(b"no array")
    hidden_states(lower_of(bert), texts[:15], 24)
    assert counted == [15, 5, 20, 15], "a damaged file counts as none"


def test_without_room_for_a_cache_states_stay_in_memory(bert, cache, monkeypatch):
    texts = targets_of_texts(12).texts
    on_disk = hidden_states(lower_of(bert), texts, 24)
    blocked = cache.with_name("blocked")
    blocked.write_text("a file where a folder should be")
    monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(blocked))
    for one, other in zip(hidden_states(lower_of(bert), texts, 24), on_disk, strict=True):
        assert not isinstance(one, np.memmap)
        assert_array_equal(one, other)


def test_no_layer_is_frozen_where_all_learn(bert):
    encoder = load_encoder(bert, Head((CARE,)), device="cpu")
    assert lower_layers(encoder, 2) is None


def test_training_on_states_is_training_on_texts(bert, monkeypatch):
    """Without dropout, frozen layers give the same in every step: replacing them changes no more than rounding does."""
    train, validation = targets_of_texts(64, seed=1), targets_of_texts(16, seed=2)
    settings = replace(QUICK, epochs=2, precision="float32")
    ours = tune(bert, train, validation, settings)
    monkeypatch.setattr("moral_entropy.train.finetune.lower_layers", lambda *_: None)
    plain = tune(bert, train, validation, settings)
    assert ours.lower is not None and plain.lower is None
    assert_allclose(np.array(ours.curve), np.array(plain.curve), rtol=1e-3)
    assert_allclose(ours.logits(validation.texts), plain.logits(validation.texts), atol=5e-3)


def test_stopped_and_resumed_it_gives_the_same_bytes(tmp_path):
    bert = str(small_bert(tmp_path / "bert"))
    train, validation = targets_of_texts(64, seed=1), targets_of_texts(16, seed=2)
    settings = replace(QUICK, epochs=2, accumulate=2)
    whole = tune(bert, train, validation, settings)

    def stop(share):
        if share > 0.8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(bert, train, validation, settings, checkpoints=Checkpoints(tmp_path / "state", 1), advance=stop)
    resumed = tune(bert, train, validation, settings, checkpoints=Checkpoints(tmp_path / "state", 1, resume=True))
    assert resumed.curve == whole.curve and len(whole.curve) > 2
    pairs = zip(resumed.encoder.model.parameters(), whole.encoder.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_added_gradients_are_those_of_one_large_batch(bert):
    targets = targets_of_texts(30)
    settings = replace(QUICK, layers=None, precision="float32", batch_size=30, clip=1e9)
    large = tune(bert, targets, None, settings)
    added = tune(bert, targets, None, replace(settings, batch_size=8, accumulate=4))
    assert [point.step for point in added.curve] == [point.step for point in large.curve] == [1]
    assert_allclose(added.curve[0].train_loss, large.curve[0].train_loss, rtol=1e-5)
    assert_allclose(added.logits(targets.texts), large.logits(targets.texts), atol=1e-4)


class TestPrecision:
    def test_bfloat16_learns_what_float32_does(self, bert):
        train, validation = targets_of_texts(96, seed=1), targets_of_texts(32, seed=2)
        settings = replace(QUICK, layers=None, epochs=3, learning_rate=3e-3)
        short, long = (
            tune(bert, train, validation, replace(settings, precision=precision)).curve
            for precision in ("bfloat16", "float32")
        )
        assert short != long
        assert_allclose(
            [point.validation_loss for point in short], [point.validation_loss for point in long], rtol=0.05
        )

    @pytest.mark.parametrize(
        ("known", "expected"),
        [({"avx512_bf16": True}, "bfloat16"), ({"amx_bf16": True}, "bfloat16"), ({"avx512_f": True}, "float32")],
    )
    def test_auto_asks_the_processor(self, known, expected):
        fake = SimpleNamespace(cpu=SimpleNamespace(get_capabilities=lambda: known))
        assert chosen_precision(fake, torch.device("cpu"), "auto") == expected
        assert chosen_precision(fake, torch.device("cpu"), "float32") == "float32"

    def test_auto_asks_the_gpu(self):
        fake = SimpleNamespace(cuda=SimpleNamespace(is_bf16_supported=lambda: False))
        assert chosen_precision(fake, SimpleNamespace(type="cuda"), "auto") == "float32"
