"""Options of a training: what to learn, which model learns it, and how."""

from __future__ import annotations

from dataclasses import dataclass

from moral_entropy.options import StageOptions, option

TFIDF = "tfidf"
LEARN, TRAIN = "What to learn", "How to train"


@dataclass(frozen=True)
class TrainOptions(StageOptions):
    """One training: targets, model and hyperparameters, which `tfidf` does not use."""

    labels: str = option(
        "soft",
        "Kind of target: soft (p), hard (the consensus label), gold, published, or a rule of the audit such as "
        "majority, any, strict-majority, two-vote or share.",
        panel=LEARN,
    )
    compare: bool = option(
        False,
        "Train on soft, majority, any and strict-majority labels too, with the same split and seeds, and score all of "
        "them on the same unseen texts.",
        panel=LEARN,
    )
    model: str = option(
        "minilm", "Model to train: minilm, tfidf, a folder or a name on the hub.", metavar="NAME|PATH", panel=TRAIN
    )
    epochs: int = option(3, "Passes over the texts.", panel=TRAIN, least=1)
    batch_size: int = option(32, "Texts per step.", panel=TRAIN, least=1)
    learning_rate: float = option(5e-5, "Learning rate at its highest.", panel=TRAIN, least=1e-9)
    max_length: int = option(128, "Tokens per text, at most.", panel=TRAIN, least=3)
    seed: int = option(
        0, "Seed of the tested texts, the start, the order and dropout; same seed, same model on a CPU.",
        panel=TRAIN, least=0,
    )  # fmt: skip
