"""`moral-entropy predict`: a trained model and a file of texts in, probabilities and their entropy out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Force, refuse_existing
from moral_entropy.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

Model = Annotated[str, Argument(metavar="MODEL", help="A model folder, as train wrote it.")]
Texts = Annotated[str, Argument(metavar="TEXTS", help="CSV, TSV, Parquet, JSON or JSON Lines; also gzipped.")]
Text = Annotated[str | None, Option(metavar="COLUMN", help="Column of the texts; guessed if not given.")]
Item = Annotated[str | None, Option(metavar="COLUMN", help="Column of ids; guessed, else rows are counted.")]
Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="Parquet, CSV or JSON Lines, by its ending.")]
Device = Annotated[str, Option(help="cpu, cuda, …; auto takes a GPU.")]

ENDINGS = (".parquet", ".csv", ".jsonl")


def predict(
    model: Model,
    texts: Texts,
    out: Out,
    text: Text = None,
    item: Item = None,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Predict p and its entropy for every text and question.

    Example: moral-entropy predict model/ texts.csv -o out.parquet
    """
    check_ending(out)
    refuse_existing(out, force=force)
    from moral_entropy.files import whole_file
    from moral_entropy.progress import bar
    from moral_entropy.train.classifier import load_classifier
    from moral_entropy.train.predict import predict as predict_texts
    from moral_entropy.train.predict import read_texts

    classifier = load_classifier(model, device=device)
    ids, found = read_texts(texts, text=text, item=item)
    with bar("predicting") as advance:
        frame = predict_texts(classifier, found, items=ids, advance=advance)
    with whole_file(out) as partial:
        write_frame(frame, partial, out.suffix)
    blank = sum(1 for one in found if not (one and one.strip()))
    left = f"; {blank:,} blank texts got no answer" if blank else ""
    typer.echo(f"{out}: {frame.height:,} rows about {len(found):,} texts{left}")


def check_ending(out: Path) -> None:
    """Refuse a name of which the format cannot be told."""
    if out.suffix not in ENDINGS:
        msg = f"{out} ends in none of {', '.join(ENDINGS)}, so its format is unknown. Choose another name with -o."
        raise UsageError(msg)


def write_frame(frame: pl.DataFrame, path: Path, ending: str) -> None:
    """Write a table in the format of an ending."""
    if ending == ".parquet":
        frame.write_parquet(path)
    elif ending == ".csv":
        frame.write_csv(path)
    else:
        frame.write_ndjson(path)
