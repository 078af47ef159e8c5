"""Fine-tuning a small BERT: it learns, what is frozen stays, the same seed gives the same bytes, MiniLM runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from train_support import CARE, TONE, needs_minilm, small_bert, targets_of_texts, tune

from moral_entropy.errors import TrainError, UsageError
from moral_entropy.train import features, loop
from moral_entropy.train.classifier import train_classifier
from moral_entropy.train.encoder import load_encoder, sorted_batches
from moral_entropy.train.features import encode
from moral_entropy.train.head import Head
from moral_entropy.train.loop import shuffled_batches
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.pretrained import SHA256, check_hash, minilm_folder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="Transformers is not installed")

QUICK = TrainOptions(epochs=1, batch_size=16, learning_rate=1e-3, max_length=24, device="cpu")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(small_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def weights(classifier):
    return {name: value.detach().clone().numpy() for name, value in classifier.encoder.model.named_parameters()}


def test_an_epoch_holds_every_text_once_in_an_order_of_its_own():
    length_i = np.random.default_rng(0).integers(3, 40, size=101)
    epochs = [shuffled_batches(length_i, 8, seed=1, epoch=epoch) for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(np.concatenate(batches).tolist()) == list(range(101))
        assert all(length_i[batch].max() - length_i[batch].min() <= 12 for batch in batches)
    assert [batch.tolist() for batch in epochs[0]] != [batch.tolist() for batch in epochs[1]]
    again = shuffled_batches(length_i, 8, seed=1, epoch=1)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in epochs[1]]
    assert sorted(np.concatenate(sorted_batches(length_i, 8)).tolist()) == list(range(101))


def test_it_learns_words_that_carry_the_answer(bert):
    train, validation = targets_of_texts(240, seed=1), targets_of_texts(60, seed=2)
    model = tune(bert, train, validation, replace(QUICK, epochs=10, learning_rate=3e-3, patience=0))
    tone_i = model.probabilities(validation.texts)[:, 1:].argmax(axis=1)
    assert (tone_i == validation.target_io[:, 1:].argmax(axis=1)).mean() > 0.9
    assert [point.step for point in model.curve[:4]] == [4, 8, 11, 15], "four points an epoch"
    best = min(point.validation_loss for point in model.curve[3::4])
    reached = validation.head.loss(model.logits(validation.texts), validation.target_io, validation.weight_iq)
    assert_allclose(reached, best, rtol=1e-5)


def test_the_loss_at_the_optimum_is_the_entropy_of_the_targets(tmp_path):
    # Eight texts and no dropout: the model can give each text just the answer it should.
    bert = small_bert(tmp_path / "bert", dropout=0.0)
    targets = targets_of_texts(8, sure=0.8)
    settings = replace(QUICK, epochs=400, batch_size=8, learning_rate=5e-3, weight_decay=0.0)
    model = tune(str(bert), targets, None, settings)
    entropy = targets.head.entropies(targets.target_io).sum() / 8
    reached = targets.head.loss(model.logits(targets.texts), targets.target_io, targets.weight_iq)
    assert entropy <= reached + 1e-6
    assert_allclose(reached, entropy, rtol=1e-3)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(bert):
    targets = targets_of_texts(48)
    first, again, other = (tune(bert, targets, None, replace(QUICK, seed=seed)) for seed in (3, 3, 4))
    for name, value in weights(first).items():
        assert_array_equal(value, weights(again)[name])
    assert any((value != weights(other)[name]).any() for name, value in weights(first).items())


def test_training_leaves_the_random_numbers_of_others_alone(bert):
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    tune(bert, targets_of_texts(20), None, QUICK)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("settings", "learns"),
    [
        (QUICK, ("embeddings", "layer.0", "layer.1", "pooler", "classifier")),
        (replace(QUICK, layers=1), ("layer.1", "pooler", "classifier")),
        (replace(QUICK, head_only=True), ("classifier",)),
    ],
    ids=["all", "last layer", "head"],
)
def test_only_what_shall_learn_moves(bert, settings, learns):
    targets = targets_of_texts(40)
    before = {
        name: value.detach().clone().numpy()
        for name, value in load_encoder(bert, targets.head, seed=settings.seed).model.named_parameters()
    }
    after = weights(tune(bert, targets, None, settings))
    moved = {name for name, value in after.items() if (value != before[name]).any()}
    assert moved and all(any(part in name for part in learns) for name in moved)
    assert all(any(part in name for name in moved) for part in learns)


def test_the_best_epoch_is_kept_and_patience_stops(bert):
    train = targets_of_texts(64, seed=1)
    # What holds in training is upside down in validation: the longer it learns, the worse.
    validation = replace(targets_of_texts(64, seed=2), target_io=1.0 - targets_of_texts(64, seed=2).target_io)
    settings = replace(QUICK, epochs=10, learning_rate=5e-3, patience=2)
    model = tune(bert, train, validation, settings)
    ends = [point for point in model.curve if point.step % 4 == 0]
    best = min(point.validation_loss for point in ends)
    assert model.curve[-1].step < 40
    reached = validation.head.loss(model.logits(validation.texts), validation.target_io, validation.weight_iq)
    assert_allclose(reached, best, rtol=1e-5)


def test_permuting_questions_permutes_outputs(bert):
    one, other = (targets_of_texts(40, head=Head(blocks)) for blocks in ((CARE, TONE), (TONE, CARE)))
    settings = replace(QUICK, head_only=True, epochs=150, learning_rate=0.05, weight_decay=0.0)
    first, second = (tune(bert, targets, None, settings) for targets in (one, other))
    # The starts differ, the optimum of a linear head does not.
    assert_allclose(second.probabilities(one.texts), first.probabilities(one.texts)[:, [1, 2, 3, 0]], atol=0.05)


class TestFeatures:
    def test_are_what_the_final_map_sees(self, bert):
        targets = targets_of_texts(20)
        encoder = load_encoder(bert, targets.head)
        feature_if = encode(encoder, targets.texts, 24)
        with torch.inference_mode():
            encoder.model.eval()
            ids = encoder.tokens(targets.texts, 24)
            whole = encoder.model(**encoder.padded(ids)).logits.numpy()
            ours = encoder.final(torch.from_numpy(feature_if)).numpy()
        assert_allclose(ours, whole, atol=1e-5)

    def test_are_encoded_once(self, bert, monkeypatch):
        texts = targets_of_texts(20).texts
        encoder = load_encoder(bert, Head((CARE,)))
        counted = []
        encode_now = features._encode_now
        monkeypatch.setattr(features, "_encode_now", lambda *given: counted.append(len(given[1])) or encode_now(*given))
        first = encode(encoder, texts[:15], 24)
        both = encode(encoder, texts, 24)
        assert counted == [15, 5]
        assert_array_equal(both[:15], first)
        # Another head, the same encoder; another length, other features.
        encode(load_encoder(bert, Head((TONE,)), seed=5), texts, 24)
        assert counted == [15, 5]
        encode(encoder, texts, 12)
        assert counted == [15, 5, 20]

    def test_survive_a_damaged_cache(self, bert, cache):
        texts = targets_of_texts(6).texts
        encoder = load_encoder(bert, Head((CARE,)))
        first = encode(encoder, texts, 24)
        for file in cache.rglob("*.npz"):
            file.write_bytes(b"not an archive")
        assert_array_equal(encode(encoder, texts, 24), first)


class TestBadModels:
    def test_a_folder_without_tokenizer(self, tmp_path):
        folder = small_bert(tmp_path / "bare", tokenizer=False)
        with pytest.raises(TrainError, match="has no tokenizer"):
            tune(str(folder), targets_of_texts(20), None, QUICK)

    def test_a_folder_that_is_no_model(self, tmp_path):
        with pytest.raises(TrainError, match=r"is no model: it has no config\.json"):
            tune(str(tmp_path), targets_of_texts(20), None, QUICK)

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(TrainError, match="there is no model folder"):
            tune(str(tmp_path / "nowhere"), targets_of_texts(20), None, QUICK)

    def test_a_hub_name_without_network(self, monkeypatch):
        import huggingface_hub

        def refuse(*_given, **_more):
            raise ConnectionError("[Errno -2] Name or service not known")

        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
        with pytest.raises(TrainError) as caught:
            tune("nobody/no-such-model", targets_of_texts(20), None, QUICK)
        assert "the hub cannot be reached" in str(caught.value) and "\n" not in str(caught.value)

    def test_more_layers_than_there_are(self, bert):
        with pytest.raises(UsageError, match="--layers 3: the model has 2 layers"):
            tune(bert, targets_of_texts(20), None, replace(QUICK, layers=3))

    def test_a_device_that_is_not_there(self, bert):
        with pytest.raises(TrainError, match="no device 'nonsense'"):
            tune(bert, targets_of_texts(20), None, replace(QUICK, device="nonsense"))

    def test_a_loss_that_explodes(self, bert, monkeypatch):
        monkeypatch.setattr(loop, "torch_loss", lambda _head, logits, *_: logits.sum() * float("nan"))
        with pytest.raises(TrainError, match=r"the loss is nan at step 1\. Lower the learning rate"):
            tune(bert, targets_of_texts(40), None, QUICK)


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0.0}, {"layers": 0}, {"warmup": 1.0}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is"):
        TrainOptions(**wrong)


def test_layers_and_head_only_exclude_each_other():
    with pytest.raises(UsageError, match="Choose one"):
        TrainOptions(layers=2, head_only=True)


class TestMinilm:
    def test_its_weights_are_those_published(self):
        needs_minilm()
        check_hash(minilm_folder() / "model.safetensors", SHA256)

    def test_it_trains_on_a_few_hundred_texts(self):
        needs_minilm()
        train, test = targets_of_texts(200, seed=1), targets_of_texts(80, seed=2)
        options = TrainOptions(model="minilm", epochs=30, max_length=20, head_only=True, device="cpu", patience=0)
        model = train_classifier(train, test, options)
        assert ((model.probabilities(test.texts)[:, 0] > 0.5) == (test.target_io[:, 0] > 0.5)).mean() > 0.8

    def test_its_last_two_layers_learn(self):
        needs_minilm()
        train, test = targets_of_texts(96, seed=1), targets_of_texts(24, seed=2)
        options = TrainOptions(model="minilm", epochs=2, max_length=16, layers=2, device="cpu", learning_rate=3e-4)
        curve = train_classifier(train, test, options).curve
        assert curve[-1].validation_loss < curve[0].validation_loss
