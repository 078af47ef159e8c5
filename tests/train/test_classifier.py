"""Saved models: whole or not at all, loadable by Transformers; and a killed training goes on as if it had not been."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from train_support import CARE, TONE, small_bert, targets_of_texts, tune

from moral_entropy.errors import TrainError
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.classifier import FACTS, load_classifier, save_classifier
from moral_entropy.train.head import Head
from moral_entropy.train.options import TrainOptions

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

QUICK = TrainOptions(epochs=2, batch_size=8, learning_rate=1e-3, max_length=24, device="cpu")
TRAIN = """
import sys, time
from pathlib import Path
from train_support import targets_of_texts, tune
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.classifier import save_classifier
from moral_entropy.train.options import TrainOptions

bert, out, state, resume, pause = sys.argv[1:]
settings = TrainOptions(epochs=3, batch_size=8, learning_rate=1e-3, max_length=24, device="cpu", patience=0)

def advance(share):
    print(share, flush=True)
    time.sleep(float(pause))

checkpoints = Checkpoints(Path(state), every=3, resume=resume == "resume")
train, validation = targets_of_texts(72, seed=1), targets_of_texts(24, seed=2)
model = tune(bert, train, validation, settings, checkpoints=checkpoints, advance=advance)
save_classifier(model, out, {"model": bert, "max_length": 24})
print([tuple(point) for point in model.curve])
"""


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(small_bert(tmp_path_factory.mktemp("bert")))


def facts(model):
    return {"model": model, "max_length": 24}


def start(bert, out, state, *, resume="anew", pause=0.0):
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", TRAIN, bert, str(out), str(state), resume, str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out.splitlines()[-1]


def test_killed_in_mid_epoch_and_resumed_it_gives_the_same_bytes(bert, tmp_path):
    whole = start(bert, tmp_path / "whole", tmp_path / "state-whole")
    killed = start(bert, tmp_path / "killed", tmp_path / "state", pause=0.2)
    # 9 steps an epoch, a checkpoint every 3: step 14 is in the middle of the second epoch, past a checkpoint.
    while float(killed.stdout.readline()) < 14 / 27:
        pass
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL and not (tmp_path / "killed").exists()
    at = torch.load(tmp_path / "state" / "state.pt", weights_only=True)["at"]["step"]
    assert 9 < at < 18 and at % 9 != 0
    resumed = start(bert, tmp_path / "killed", tmp_path / "state", resume="resume")
    assert finished(resumed) == finished(whole), "the learning curves differ"
    names = ["model.safetensors", "config.json", "tokenizer.json"]
    for name in names:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_transformers_loads_the_folder_and_agrees(bert, tmp_path):
    targets = targets_of_texts(32)
    model = tune(bert, targets, None, QUICK)
    save_classifier(model, tmp_path / "model", facts(bert), card="# A card\n")
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    with torch.inference_mode():
        batch = tokenizer(list(targets.texts), padding=True, truncation=True, max_length=24, return_tensors="pt")
        logits_io = loaded.eval()(**batch).logits.double().numpy()
    assert_allclose(logits_io, model.logits(targets.texts), atol=1e-5)
    assert loaded.config.id2label == dict(enumerate(targets.head.names))
    assert (tmp_path / "model" / "README.md").read_text() == "# A card\n"


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ((CARE,), "multi_label_classification"),
        ((TONE,), "single_label_classification"),
        ((CARE, TONE), None),
    ],
)
def test_the_folder_says_what_kind_of_problem_it_is(bert, tmp_path, blocks, expected):
    targets = targets_of_texts(16, head=Head(blocks))
    save_classifier(tune(bert, targets, None, replace(QUICK, epochs=1)), tmp_path / "model", facts(bert))
    assert json.loads((tmp_path / "model" / "config.json").read_text()).get("problem_type") == expected


def test_a_saved_model_predicts_the_same(bert, tmp_path):
    targets = targets_of_texts(32)
    model = tune(bert, targets, None, QUICK)
    save_classifier(model, tmp_path / "model", facts(bert))
    loaded = load_classifier(tmp_path / "model", device="cpu")
    assert loaded.head == model.head
    assert_array_equal(loaded.probabilities(targets.texts), model.probabilities(targets.texts))


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


def test_a_disk_that_is_full_leaves_no_broken_model(bert, tmp_path):
    model = tune(bert, targets_of_texts(16), None, replace(QUICK, epochs=1))
    with small_disk(), pytest.raises(TrainError, match=r"cannot write the model to .*model: .*\. Make room"):
        save_classifier(model, tmp_path / "model", facts(bert))
    assert list(tmp_path.iterdir()) == []
    save_classifier(model, tmp_path / "model", facts(bert))
    assert (tmp_path / "model" / "model.safetensors").stat().st_size > 60_000


def test_a_checkpoint_that_does_not_fit_leaves_the_one_before(bert, tmp_path):
    checkpoints = Checkpoints(tmp_path / "state", every=2)
    tune(bert, targets_of_texts(16), None, QUICK, checkpoints=checkpoints)
    before = checkpoints.file.read_bytes()
    with small_disk(), pytest.raises(TrainError, match="cannot write a checkpoint"):
        tune(bert, targets_of_texts(24), None, QUICK, checkpoints=checkpoints)
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["state.pt"]
    assert checkpoints.file.read_bytes() == before


def test_a_folder_that_holds_something_is_never_replaced(bert, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    model = tune(bert, targets_of_texts(16), None, replace(QUICK, epochs=1))
    with pytest.raises(TrainError, match=r"holds 1 file\. First: thesis\.tex"):
        save_classifier(model, tmp_path, facts(bert))


def test_what_is_no_trained_model_is_refused(tmp_path):
    with pytest.raises(TrainError, match=f"it has no {FACTS}"):
        load_classifier(tmp_path)
    (tmp_path / FACTS).write_text("{")
    with pytest.raises(TrainError, match="is damaged"):
        load_classifier(tmp_path)
    (tmp_path / FACTS).write_text("{}")
    with pytest.raises(TrainError, match="is incomplete"):
        load_classifier(tmp_path)


class TestResuming:
    @pytest.fixture
    def state(self, bert, tmp_path):
        tune(bert, targets_of_texts(24), None, QUICK, checkpoints=Checkpoints(tmp_path / "state", every=2))
        return Checkpoints(tmp_path / "state", resume=True)

    def test_needs_something_to_resume(self, bert, tmp_path):
        with pytest.raises(TrainError, match="nothing to resume"):
            tune(bert, targets_of_texts(24), None, QUICK, checkpoints=Checkpoints(tmp_path / "none", resume=True))

    def test_needs_the_same_settings(self, bert, state):
        with pytest.raises(
            TrainError, match=r"another training: 1 of \d+ settings differ\. First: epochs was 2 and is 3"
        ):
            tune(bert, targets_of_texts(24), None, replace(QUICK, epochs=3), checkpoints=state)

    def test_needs_the_same_texts(self, bert, state):
        with pytest.raises(TrainError, match="First: texts and targets was"):
            tune(bert, targets_of_texts(24, seed=9), None, QUICK, checkpoints=state)

    def test_needs_a_checkpoint_that_is_whole(self, bert, state):
        state.file.write_bytes(state.file.read_bytes()[:1_000])
        with pytest.raises(TrainError, match="is damaged"):
            tune(bert, targets_of_texts(24), None, QUICK, checkpoints=state)

    def test_of_a_finished_training_takes_no_step(self, bert, state):
        again = tune(bert, targets_of_texts(24), None, QUICK, checkpoints=state)
        afresh = tune(bert, targets_of_texts(24), None, QUICK)
        assert again.curve[-1].step == afresh.curve[-1].step == 6
        pairs = zip(again.encoder.model.parameters(), afresh.encoder.model.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
