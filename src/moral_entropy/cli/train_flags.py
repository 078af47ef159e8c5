"""The flags of `moral-entropy train`, and what they mean as options of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

if TYPE_CHECKING:
    from moral_entropy.pipeline.train import TrainOptions
    from moral_entropy.train.settings import TrainSettings

TARGETS, TRAINING, STUDY = "What to learn", "How to train", "Study: which targets win"

WeighBy = Literal["epistemic", "votes"]
SplitBy = Literal["items", "domains", "leave-domain-out"]


@dataclass(frozen=True)
class LabelFlags:
    """What to learn, and from which texts."""

    labels: Annotated[
        str, Option(help="soft,share,any,majority,two-vote,hard,published, or a rule.", rich_help_panel=TARGETS)
    ] = "soft"
    votes: Annotated[
        str | None, Option(metavar="FILE", help="File with the texts, by item.", rich_help_panel=TARGETS)
    ] = None
    text: Annotated[str | None, Option(metavar="COLUMN", help="Column of the texts.", rich_help_panel=TARGETS)] = None
    weight: Annotated[WeighBy | None, Option(help="Weigh items; all alike if not given.", rich_help_panel=TARGETS)] = (
        None
    )


@dataclass(frozen=True)
class TrainFlags:
    """How to train."""

    model: Annotated[
        str, Option(metavar="NAME|PATH", help="minilm, tfidf, a folder or a hub name.", rich_help_panel=TRAINING)
    ] = "minilm"
    layers: Annotated[
        int | None, Option(min=1, metavar="N", help="Train the last N layers only.", rich_help_panel=TRAINING)
    ] = None
    head_only: Annotated[
        bool, Option("--head-only", help="Encode texts once, train the head.", rich_help_panel=TRAINING)
    ] = False
    epochs: Annotated[int, Option(min=1, help="Passes over the texts, at most.", rich_help_panel=TRAINING)] = 3
    batch_size: Annotated[int, Option(min=1, help="Texts a step.", rich_help_panel=TRAINING)] = 32
    learning_rate: Annotated[
        float | None, Option(help="At its peak; 3e-5, for a head alone 5e-3.", rich_help_panel=TRAINING)
    ] = None
    max_length: Annotated[int, Option(min=3, help="Tokens a text, at most.", rich_help_panel=TRAINING)] = 128
    patience: Annotated[
        int, Option(min=0, metavar="N", help="Stop after N epochs without gain; 0 never.", rich_help_panel=TRAINING)
    ] = 1
    validation: Annotated[float, Option(help="Share of texts to stop by.", rich_help_panel=TRAINING)] = 0.1
    seed: Annotated[int, Option(min=0, help="Same seed, same model on a CPU.", rich_help_panel=TRAINING)] = 0
    device: Annotated[str, Option(help="cpu, cuda, …; auto takes a GPU.", rich_help_panel=TRAINING)] = "auto"
    checkpoint_steps: Annotated[
        int, Option(min=1, metavar="N", help="Keep the state every N steps.", rich_help_panel=TRAINING)
    ] = 50
    resume: Annotated[bool, Option("--resume", help="Go on after a kill.", rich_help_panel=TRAINING)] = False

    def settings(self) -> TrainSettings:
        """Give the settings that these flags mean."""
        from moral_entropy.train.settings import TrainSettings

        names = ("epochs", "batch_size", "learning_rate", "max_length", "layers", "head_only", "seed", "patience")
        return TrainSettings(**{name: getattr(self, name) for name in names}, device=self.device)

    def options(self, labels: LabelFlags) -> TrainOptions:
        """Give the options that these flags and those of the labels mean."""
        from moral_entropy.pipeline.train import TrainOptions

        return TrainOptions(
            model=self.model,
            **vars(labels),
            validation=self.validation,
            settings=self.settings(),
            resume=self.resume,
            checkpoint_steps=self.checkpoint_steps,
        )


@dataclass(frozen=True)
class StudyFlags:
    """Which targets to hold against each other, and how."""

    compare: Annotated[
        str | None, Option(metavar="A,B,…", help="Kinds of targets to compare.", rich_help_panel=STUDY)
    ] = None
    models: Annotated[str, Option(metavar="A,B,…", help="Models to compare them with.", rich_help_panel=STUDY)] = (
        "tfidf,minilm"
    )
    seeds: Annotated[int, Option(min=1, metavar="N", help="Trainings of each.", rich_help_panel=STUDY)] = 5
    split: Annotated[SplitBy, Option(help="How texts are held out.", rich_help_panel=STUDY)] = "items"
