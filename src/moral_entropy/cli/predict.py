"""`moral-entropy predict`: a trained model and a file of texts in, probabilities and their entropy out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Force
from moral_entropy.errors import UsageError
from moral_entropy.files import check_free

Model = Annotated[str, Argument(metavar="MODEL", help="A model folder, as train wrote it.")]
Texts = Annotated[str, Argument(metavar="TEXTS", help="CSV, TSV, Parquet, JSON or JSON Lines; also gzipped.")]
Text = Annotated[str | None, Option(metavar="COLUMN", help="Column of the texts; guessed if not given.")]
Item = Annotated[str | None, Option(metavar="COLUMN", help="Column of ids; guessed, else rows are counted.")]
Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="Parquet, CSV or JSON Lines, by its ending.")]

ENDINGS = (".parquet", ".csv", ".jsonl")


def predict(model: Model, texts: Texts, out: Out, text: Text = None, item: Item = None, force: Force = False) -> None:
    """Predict p and its entropy for every text and question.

    Example: moral-entropy predict model/ texts.csv -o out.parquet
    """
    if out.suffix not in ENDINGS:
        msg = f"{out} ends in none of {', '.join(ENDINGS)}, so its format is unknown. Choose another name with -o."
        raise UsageError(msg)
    check_free(out, force=force)
    from moral_entropy.progress import show_progress
    from moral_entropy.report.export import write_frame
    from moral_entropy.train.classifier import load_classifier, read_texts
    from moral_entropy.train.classifier import predict as predict_texts

    classifier = load_classifier(model)
    ids, sentences = read_texts(texts, text=text, item=item)
    with show_progress() as progress:
        frame = predict_texts(classifier, sentences, items=ids, advance=partial(progress, "predicting"))
    write_frame(frame.lazy(), out)
    blank = sum(1 for sentence in sentences if not (sentence and sentence.strip()))
    skipped = f"; {blank:,} blank texts got no answer" if blank else ""
    typer.echo(f"{out}: {frame.height:,} rows about {len(sentences):,} texts{skipped}")
