"""The flags of `moral-entropy train` and `study`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from typer import Option

TARGETS, TRAINING, STUDY = "What to learn", "How to train", "What to compare"

WeightBy = Literal["epistemic", "votes"]
SplitBy = Literal["items", "domains", "leave-domain-out"]


@dataclass(frozen=True)
class LabelFlags:
    """What to learn."""

    labels: Annotated[
        str, Option(help="soft,share,any,majority,two-vote,hard,published, or a rule.", rich_help_panel=TARGETS)
    ] = "soft"
    weight: Annotated[
        WeightBy | None, Option(help="Weight items; all alike if not given.", rich_help_panel=TARGETS)
    ] = None


@dataclass(frozen=True)
class TextFlags:
    """Where the texts are."""

    votes: Annotated[
        str | None, Option(metavar="FILE", help="File with the texts, by item.", rich_help_panel=TARGETS)
    ] = None
    text: Annotated[str | None, Option(metavar="COLUMN", help="Column of the texts.", rich_help_panel=TARGETS)] = None


@dataclass(frozen=True)
class TrainFlags:
    """Which model, when to stop, and how to go on after a kill."""

    model: Annotated[
        str, Option(metavar="NAME|PATH", help="minilm, tfidf, a folder or a hub name.", rich_help_panel=TRAINING)
    ] = "minilm"
    patience: Annotated[
        int, Option(min=0, metavar="N", help="Stop after N epochs without gain; 0 never.", rich_help_panel=TRAINING)
    ] = 1
    validation: Annotated[float, Option(help="Share of texts to stop by.", rich_help_panel=TRAINING)] = 0.1
    seed: Annotated[int, Option(min=0, help="Same seed, same model on a CPU.", rich_help_panel=TRAINING)] = 0
    checkpoint_steps: Annotated[
        int, Option(min=1, metavar="N", help="Keep the state every N steps.", rich_help_panel=TRAINING)
    ] = 50
    resume: Annotated[bool, Option("--resume", help="Go on after a kill.", rich_help_panel=TRAINING)] = False


@dataclass(frozen=True)
class HyperparameterFlags:
    """How a neural model is trained."""

    layers: Annotated[
        int | None, Option(min=1, metavar="N", help="Train the last N layers only.", rich_help_panel=TRAINING)
    ] = None
    head_only: Annotated[
        bool, Option("--head-only", help="Encode texts once, train the head.", rich_help_panel=TRAINING)
    ] = False
    epochs: Annotated[int, Option(min=1, help="Passes over the texts, at most.", rich_help_panel=TRAINING)] = 3
    batch_size: Annotated[int, Option(min=1, help="Texts per step.", rich_help_panel=TRAINING)] = 32
    learning_rate: Annotated[
        float | None, Option(help="At its highest; 3e-5, for a head alone 5e-3.", rich_help_panel=TRAINING)
    ] = None
    max_length: Annotated[int, Option(min=3, help="Tokens per text, at most.", rich_help_panel=TRAINING)] = 128
    device: Annotated[str, Option(help="cpu, cuda, …; auto takes a GPU.", rich_help_panel=TRAINING)] = "auto"


@dataclass(frozen=True)
class StudyFlags:
    """What to compare, and how."""

    targets: Annotated[str, Option(metavar="A,B,…", help="Kinds of target to compare.", rich_help_panel=STUDY)] = (
        "soft,share,any,majority,two-vote"
    )
    models: Annotated[str, Option(metavar="A,B,…", help="Models to compare them with.", rich_help_panel=STUDY)] = (
        "tfidf,minilm"
    )
    seeds: Annotated[int, Option(min=1, metavar="N", help="Trainings per model and target.", rich_help_panel=STUDY)] = 5
    split: Annotated[SplitBy, Option(help="How texts are held out.", rich_help_panel=STUDY)] = "items"
