"""Fine-tuning a small BERT with `Trainer`: the loss by hand, seeds, what is saved, and models that are refused."""

from __future__ import annotations

import copy
import json
import resource
import shutil
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from train_support import CARE, TONE, needs_minilm, small_bert, targets_of_texts

from moral_entropy.errors import TrainError
from moral_entropy.options import TrainOptions
from moral_entropy.train import encoder
from moral_entropy.train.classifier import load_classifier, predict, save_classifier, train_classifier
from moral_entropy.train.encoder import _soft_loss, minilm_folder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
pytest.importorskip("accelerate", reason="Accelerate is not installed")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(small_bert(tmp_path_factory.mktemp("bert")))


def tune(bert, targets, **options):
    quick = {"epochs": 1, "batch_size": 16, "learning_rate": 3e-3, "max_length": 24}
    return train_classifier(targets, "soft", TrainOptions(model=bert, **quick | options))


@pytest.fixture(scope="module")
def trained(bert):
    return tune(bert, targets_of_texts(48))


@pytest.fixture
def saved(trained, bert, tmp_path):
    return save_classifier(trained, tmp_path / "model", {"model": bert, "max_length": 24}, {})


def test_the_loss_is_cross_entropy_against_soft_targets():
    logits = np.array([[0.3, 1.0, -1.0, 0.5], [-2.0, 0.0, 0.2, 0.4], [1.0, 2.0, 0.0, 0.0]])
    target = np.array([[0.7, 0.2, 0.5, 0.3], [np.nan, 0.1, 0.1, 0.8], [0.0, np.nan, np.nan, np.nan]])
    count = np.array([1.0, 2.0, 3.0])
    yes = 1 / (1 + np.exp(-logits[:, 0]))
    care = [-(0.7 * np.log(yes[0]) + 0.3 * np.log(1 - yes[0])), 0.0, -3 * np.log(1 - yes[2])]
    log_tone = logits[:, 1:] - np.log(np.exp(logits[:, 1:]).sum(axis=1, keepdims=True))
    tone = [-(target[0, 1:] @ log_tone[0]), -2 * (target[1, 1:] @ log_tone[1]), 0.0]
    outputs = transformers.utils.ModelOutput(logits=torch.tensor(logits, requires_grad=True))
    loss = _soft_loss(torch, (CARE, TONE))(outputs, torch.tensor(np.column_stack([target, count])))
    assert_allclose(loss.item(), (sum(care) + sum(tone)) / 3, rtol=1e-6)
    loss.backward()
    assert outputs.logits.grad.isfinite().all() and outputs.logits.grad[1, 0] == 0.0


def test_it_learns_words_that_carry_the_answer(bert):
    train, unseen = targets_of_texts(200, questions=(TONE,), seed=1), targets_of_texts(60, questions=(TONE,), seed=2)
    shares = []
    model = train_classifier(
        train, "soft", TrainOptions(model=bert, epochs=12, batch_size=16, learning_rate=1e-3, max_length=24),
        advance=shares.append,
    )  # fmt: skip
    answer_i = model.logits(unseen.texts).argmax(axis=1)
    assert (answer_i == unseen.by_kind["soft"].argmax(axis=1)).mean() > 0.9
    assert shares == sorted(shares) and len(shares) == 12 * 13 and shares[-1] == 1.0


def test_the_same_seed_gives_the_same_model(bert, trained, capfd):
    targets = targets_of_texts(48)
    again, another = tune(bert, targets), tune(bert, targets, seed=1)
    assert_array_equal(again.logits(targets.texts), trained.logits(targets.texts))
    assert not np.array_equal(another.logits(targets.texts), trained.logits(targets.texts))
    assert capfd.readouterr() == ("", ""), "Trainer prints nothing"


def test_a_saved_model_says_the_same_here_and_in_transformers(trained, saved):
    targets = targets_of_texts(20, seed=3)
    loaded = load_classifier(saved)
    assert loaded.questions == trained.questions
    assert_allclose(loaded.logits(targets.texts), trained.logits(targets.texts), atol=1e-6)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(saved).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved)
    with torch.inference_mode():
        batch = tokenizer(list(targets.texts), truncation=True, max_length=24, padding=True, return_tensors="pt")
        assert_allclose(model(**batch).logits.numpy(), trained.logits(targets.texts), atol=1e-5)
    assert model.config.id2label == {0: "care", 1: "tone: anger", 2: "tone: joy", 3: "tone: none"}


@pytest.mark.parametrize(
    ("questions", "expected"),
    [((CARE,), "multi_label_classification"), ((TONE,), "single_label_classification"), ((CARE, TONE), None)],
)
def test_the_folder_says_what_kind_of_problem_it_is(bert, questions, expected):
    assert tune(bert, targets_of_texts(16, questions=questions)).model.config.problem_type == expected


def test_a_folder_without_a_trained_head_is_refused(bert, saved):
    shutil.copy(f"{bert}/model.safetensors", saved / "model.safetensors")
    with pytest.raises(TrainError, match=r"holds no trained classifier of 4 outputs: .* First: classifier\.bias"):
        load_classifier(saved)


def test_a_head_of_another_width_is_refused(saved):
    facts = json.loads((saved / "moral_entropy.json").read_text())
    (saved / "moral_entropy.json").write_text(json.dumps(facts | {"head": facts["head"][:1]}))
    with pytest.raises(TrainError, match="holds no trained classifier of 1 outputs"):
        load_classifier(saved)


SETTINGS = {
    "config.json": [[], {"hidden_size": "x"}, {"id2label": 3}],
    "tokenizer.json": [3, {"model": 3}, {"added_tokens": [{"id": 2, "content": {}}]}, {"post_processor": "x"}],
    "tokenizer_config.json": [None, {"do_lower_case": [1]}, {"pad_token": ["x"]}, {"pad_token": "unknown"}],
    "moral_entropy.json": [{"max_length": 10**30}, {"max_length": "long"}, {"model": None}],
    "model.safetensors": [None, [], {"x": 1}],
}


@pytest.mark.parametrize(("name", "content"), [(name, content) for name in SETTINGS for content in SETTINGS[name]])
def test_damaged_settings_end_in_one_sentence(saved, name, content):
    if isinstance(content, dict) and name.endswith(".json"):
        content = json.loads((saved / name).read_text()) | content
    (saved / name).write_text(json.dumps(content))
    with pytest.raises(TrainError) as raised:
        predict(saved, ["protect the river", "a"])
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400 + len(str(saved))


@pytest.mark.parametrize("name", [*SETTINGS])
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "garbage"])
def test_damaged_files_end_in_one_sentence(saved, name, damage):
    content = (saved / name).read_bytes()
    changed = {"empty": b"", "half": content[: len(content) // 2], "garbage": np.random.default_rng(0).bytes(2_000)}
    (saved / name).unlink()
    if damage in changed:
        (saved / name).write_bytes(changed[damage])
    elif name == "tokenizer_config.json":
        return  # Transformers does without it.
    with pytest.raises(TrainError) as raised:
        predict(saved, ["protect the river", "a"])
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400 + len(str(saved))


def test_weights_that_are_not_finite_are_refused(trained, saved, tmp_path):
    broken = copy.deepcopy(trained)
    torch.nn.init.constant_(next(broken.model.parameters()), float("nan"))
    save_classifier(broken, tmp_path / "broken", {"model": "x", "max_length": 24}, {})
    with pytest.raises(TrainError, match="cannot answer: what it answers is not finite"):
        predict(tmp_path / "broken", ["protect the river"])


def test_pickled_weights_are_refused(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "pickled")
    torch.save(transformers.AutoModel.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(TrainError, match="has no weights in safetensors, and those in other formats can run code"):
        tune(str(folder), targets_of_texts(16))


def test_code_that_comes_with_a_model_is_never_run(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "hostile")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    config = json.loads((folder / "config.json").read_text())
    hooks = {"AutoConfig": "own.Own", "AutoModelForSequenceClassification": "own.Own"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": hooks}))
    with pytest.raises(TrainError, match="cannot be loaded"):
        tune(str(folder), targets_of_texts(16))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("missing", "said"), [("config.json", "is no model folder"), ("tokenizer.json", "has no tokenizer")]
)
def test_a_folder_that_is_no_model_is_refused(bert, tmp_path, missing, said):
    folder = shutil.copytree(bert, tmp_path / "broken")
    (folder / missing).unlink()
    (folder / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(TrainError, match=said):
        tune(str(folder), targets_of_texts(16))


def test_a_training_that_diverges_is_refused(bert):
    targets = targets_of_texts(16, questions=(CARE,))
    with pytest.raises(TrainError, match="Lower the learning rate: --set learning-rate"):
        tune(bert, replace(targets, by_kind={"soft": targets.by_kind["soft"] * 1e38}), learning_rate=9.0)


@contextmanager
def small_disk(most=60_000):
    """Let the system refuse to write in mid-file: a limit on the size of files stands in for the end of the disk."""
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_disk_that_is_full_leaves_no_broken_model(trained, bert, tmp_path):
    with small_disk(), pytest.raises(TrainError, match=r"cannot write the model to .*model: .*\. Make room"):
        save_classifier(trained, tmp_path / "model", {"model": bert, "max_length": 24}, {})
    assert list(tmp_path.iterdir()) == []


def test_minilm_is_the_one_that_was_published(monkeypatch):
    needs_minilm()
    assert (minilm_folder() / "config.json").is_file()
    monkeypatch.setattr(encoder, "SHA256", "0" * 64)
    with pytest.raises(TrainError, match=r"has SHA-256 53aa5117… and should have 00000000…"):
        minilm_folder()
