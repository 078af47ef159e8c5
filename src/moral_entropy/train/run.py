"""A training on a run folder: targets and texts of the run in, a model in a folder of its own out.

`run_training` does what `moral-entropy train` does, and prints nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moral_entropy import __version__
from moral_entropy.errors import TrainError
from moral_entropy.files import without_formulas
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.run import Run, read_run
from moral_entropy.train.classifier import CARD, check_out, save_classifier, train_classifier
from moral_entropy.train.compare import COMPARED, TABLE, compare_targets
from moral_entropy.train.model_card import model_card
from moral_entropy.train.scores import find_worth
from moral_entropy.train.targets import check_classes, has_labels, probabilities, read_targets, split_targets

TEST, TEST_TO_COMPARE = 0.1, 0.2
"""Share of the texts that are not learnt from but tested on."""

SETTINGS = ("epochs", "batch_size", "learning_rate", "max_length", "seed")


def run_training(
    run: Run | str | Path, out: str | Path, options: TrainOptions | None = None, *, advance: Advance = ignore
) -> dict[str, Any]:
    """Train a classifier on the labels of a run and save it.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        Folder of the model; it appears when the model is complete, or not at all.
    options
        What to learn, which model to train, and how.
    advance
        Called with the share done.

    Returns
    -------
    dict
        What `moral_entropy.json` holds, and with `compare` the table `comparison`.
    """
    options = options or TrainOptions()
    check_out(out)
    run = run if isinstance(run, Run) else read_run(run)
    kinds = [options.labels, "soft", "hard", "smoothed-share", *(COMPARED if options.compare else ())]
    kinds += ["gold"] if has_labels(run, "gold") else []
    targets = read_targets(run, list(dict.fromkeys(kinds)), votes=options.votes, text=options.text)
    train, test = split_targets(targets, TEST_TO_COMPARE if options.compare else TEST, seed=options.seed)
    check_classes(train, options.labels)
    # Progress: as much for every training, of which the comparison has four kinds.
    share = 1.0 / (1 + len(COMPARED)) if options.compare else 1.0
    classifier = train_classifier(train, options.labels, options, advance=lambda done: advance(share * done))
    worth = None
    if test.texts:
        p_io = probabilities(test.questions, classifier.logits(test.texts))
        worth = find_worth(p_io, train, test, options.labels)
    facts = {
        "version": __version__,
        "model": options.model,
        "labels": options.labels,
        "max_length": options.max_length,
        "settings": {} if options.model == TFIDF else {name: getattr(options, name) for name in SETTINGS},
        "items": len(train.known(options.labels).texts),
        "test_items": len(test.texts),
        "notes": list(targets.notes),
        "worth": worth,
    }
    more, comparison = {}, {}
    if options.compare:
        if not test.texts:
            msg = f"none of the {len(train.texts):,} texts is left to test on. Audit more items with a text."
            raise TrainError(msg)
        rest = 1.0 - share
        table = compare_targets(train, test, options, classifier, advance=lambda done: advance(share + rest * done))
        more[TABLE], comparison = without_formulas(table).write_csv(), {"comparison": table}
    save_classifier(classifier, out, facts, {**more, CARD: model_card(run, classifier, facts | comparison)})
    return facts | comparison
