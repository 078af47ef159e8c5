"""`train` and `predict`: votes with texts to a model to predictions, without PyTorch too, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from numpy.testing import assert_allclose
from train_support import small_bert, texts_and_truth, votes_csv

from moral_entropy.cli.main import main

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

WITHOUT_TORCH = """
import json, sys

class Without:
    # Passes on what a finder finds, but for some packages: these are as absent as if they had never been installed.
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "huggingface_hub"):
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from moral_entropy.cli.main import main
print([main(command) for command in json.loads(sys.argv[1])])
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A run folder of votes with texts; nobody writes to it."""
    folder = tmp_path_factory.mktemp("audited")
    votes_csv(folder / "votes.csv")
    audit = ["audit", str(folder / "votes.csv"), "--label", "care", "-o", str(folder / "run"), "--draws", "20", "-q"]
    assert main([*audit, "--no-report"]) == 0
    return folder / "run"


@pytest.fixture
def texts(folder):
    made, care_i, _ = texts_and_truth(40, seed=7)
    pl.DataFrame({"item": range(40), "text": made}).write_csv(folder / "texts.csv")
    return care_i


def test_tfidf_from_votes_to_predictions(run, audited, texts):
    code, out, err = run("train", audited, "--model", "tfidf", "--labels", "soft", "-o", "model")
    assert (code, err) == (0, "")
    assert "targets: soft" in out and "model: the model\nnext: moral-entropy predict" in out
    code, out, err = run("predict", "model", "texts.csv", "-o", "out.parquet")
    assert (code, err, out) == (0, "", "out.parquet: 40 rows about 40 texts\n")
    frame = pl.read_parquet("out.parquet")
    assert frame.columns == ["item", "question", "label", "p", "entropy"]
    # Forty texts: a coin gets half of them, give or take 3.
    assert ((frame["p"].to_numpy() > 0.5) == texts).mean() > 0.75
    card = Path("model/README.md").read_text()
    assert (
        "# A classifier of care" in card
        and "480 votes by 4 annotators on 120 items" in card
        and "## What it is worth" in card
    )


@pytest.mark.parametrize("labels", ["share", "any", "majority", "strict-majority", "hard"])
def test_every_kind_of_target_trains(run, audited, labels):
    code, out, err = run("train", audited, "--model", "tfidf", "--labels", labels, "-o", "model")
    assert (code, err) == (0, "") and f"targets: {labels}" in out


def test_a_comparison_of_targets_is_printed_and_written(run, audited):
    code, out, err = run("train", audited, "--model", "tfidf", "--compare", "-o", "model")
    assert (code, err) == (0, "")
    assert "against majority: soft less majority" in out and "gold favours none" in out
    table = pl.read_csv("model/comparison.csv")
    assert set(table["reference"]) == {"majority", "any", "strict-majority"}, "there is no gold"
    assert set(table["target"]) == {"soft", "majority", "any", "strict-majority"}
    value = table.filter(question="(mean)", reference="any", target="any", metric="accuracy")["value"][0]
    [line] = [line for line in out.splitlines() if line.split()[:2] == ["any", "any"]]
    assert line.split()[2] == f"{100 * value:.1f}%"
    assert run("predict", "model", Path(audited).parent / "votes.csv", "-o", "out.parquet")[0] == 0


def test_a_folder_is_trained(run, audited, texts, tmp_path):
    bert = small_bert(tmp_path / "bert")
    training = ["train", audited, "--model", bert, "--epochs", 1, "--max-length", 20, "-o", "model"]
    code, out, err = run(*training)
    assert (code, err) == (0, "") and "worth, on" in out
    assert json.loads(Path("model/moral_entropy.json").read_text())["settings"]["epochs"] == 1
    code, out, err = run("predict", "model", "texts.csv", "-o", "out.csv")
    assert code == 0 and pl.read_csv("out.csv").height == 40, err
    assert_allclose(pl.read_csv("out.csv")["p"], by_hand("model", max_length=20), atol=1e-5)
    code, _, err = run(*training)
    assert code == 1 and "A model replaces nothing" in err
    code, _, err = run("predict", bert, "texts.csv", "-o", "other.csv")
    assert code == 1 and "it has no moral_entropy.json" in err


def by_hand(folder, *, max_length):
    """What Transformers alone makes of the texts."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    said = []
    with torch.inference_mode():
        for text in pl.read_csv("texts.csv")["text"]:
            batch = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
            said.append(float(torch.sigmoid(model.eval()(**batch).logits)))
    return said


def test_a_run_without_texts_is_refused(run, folder):
    votes_csv(folder / "with.csv")
    assert run("audit", "with.csv", "--label", "care", "--text", "", "-o", "bare", "--draws", 20, "-q")[0] == 0
    code, _, err = run("train", "bare", "--model", "tfidf", "-o", "model")
    assert code == 1 and "bare has no texts" in err and "--text COLUMN" in err


def test_without_pytorch_tfidf_works_and_other_models_name_the_extra(folder, audited, texts):
    commands = [
        ["train", str(audited), "--model", "tfidf", "-o", "model"],
        ["predict", "model", "texts.csv", "-o", "out.parquet"],
        ["train", str(audited), "--model", "minilm", "-o", "other"],
    ]
    command = [sys.executable, "-c", WITHOUT_TORCH, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[0, 0, 1]", done.stderr
    assert pl.read_parquet("out.parquet").height == 40
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr and not (folder / "other").exists()
    assert "needs PyTorch and Transformers" in done.stderr and "pip install 'moral-entropy[train]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--labels", "fuzzy"], 1, "there is no rule 'fuzzy'"),
        (["--labels", "published"], 1, "no published labels"),
        (["--model", "./nowhere"], 1, "nowhere is no model folder"),
        (["--learning-rate", "0"], 2, "--set learning-rate is 0"),
        (["--layers", "2"], 2, "--layers"),
    ],
)
def test_what_is_refused(run, audited, arguments, code, said):
    found, out, err = run("train", audited, *arguments, "-o", "model")
    assert (found, out) == (code, "") and said in err and "Traceback" not in err


def test_a_name_on_the_hub_is_not_downloaded(run, audited):
    code, _, err = run("train", audited, "--model", "nobody/nothing", "-o", "model")
    assert code == 1 and "hf download nobody/nothing --local-dir FOLDER" in err and err.count("\n") <= 2


def test_predictions_are_never_written_over(run, audited, texts):
    assert run("train", audited, "--model", "tfidf", "-o", "model", "-q")[:2] == (0, "")
    Path("out.csv").touch()
    code, _, err = run("predict", "model", "texts.csv", "-o", "out.csv")
    assert code == 2 and "out.csv exists" in err
    assert run("predict", "model", "texts.csv", "-o", "out.csv", "--force")[0] == 0
    first = pl.read_csv("out.csv")
    run("predict", "model", "texts.csv", "-o", "out.jsonl")
    assert_allclose(pl.read_ndjson("out.jsonl")["p"], first["p"])
    code, _, err = run("predict", "model", "texts.csv", "-o", "out.xlsx")
    assert code == 2 and "its format is unknown" in err


def test_what_is_no_model_is_refused(run, audited, texts):
    code, _, err = run("predict", audited, "texts.csv", "-o", "out.parquet")
    assert code == 1 and "is no trained model: it has no moral_entropy.json" in err


def test_ids_that_are_formulas_are_harmless_in_a_csv_and_as_they_are_elsewhere(run, audited, folder):
    assert run("train", audited, "--model", "tfidf", "-o", "model", "-q")[0] == 0
    pl.DataFrame({"item": ["=cmd|' /C calc'!A0", "b"], "text": ["hurt them", "the river"]}).write_csv("hostile.csv")
    assert run("predict", "model", "hostile.csv", "-o", "out.csv")[0] == 0
    assert run("predict", "model", "hostile.csv", "-o", "out.parquet")[0] == 0
    assert pl.read_csv("out.csv")["item"].to_list() == ["'=cmd|' /C calc'!A0", "b"]
    assert pl.read_parquet("out.parquet")["item"].to_list() == ["=cmd|' /C calc'!A0", "b"]
