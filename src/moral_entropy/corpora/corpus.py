"""The published files of a corpus → a long table of votes, and what became of every annotation.

The table has the columns of the simulated twins, so that `audit` reads it without options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy.corpora.annotations import add_foundations, add_items, settle_repeats, tidy_domains
from moral_entropy.corpora.facts import CorpusFacts, PublishedFiles, corpus_facts, published_files
from moral_entropy.corpora.options import CorpusOptions
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.options import lists_options
from moral_entropy.votes.table import ReadingLog

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Corpus:
    """A corpus that was read.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    votes
        One row per vote: item, annotator, question (the foundation), label (0 or 1), domain, text. Sorted.
    rows
        Annotations in the files.
    annotations
        Those that became votes: item, annotator, domain, and one 0/1 column per foundation (null: no vote).
    by_domain
        Whether a text that occurs in two domains is two items.
    dropped
        Annotations left out, by reason.
    notes
        Notes, one sentence each.
    """

    name: str
    votes: pl.DataFrame
    rows: int
    annotations: pl.DataFrame
    by_domain: bool
    dropped: Mapping[str, int]
    notes: tuple[str, ...]


@lists_options(CorpusOptions)
def read_corpus(
    name: str, paths: str | Path | Sequence[str | Path], options: CorpusOptions | None = None, **changes: Any
) -> Corpus:
    r"""Read the published files of a moral corpus.

    Items are the distinct texts; an item without text (MFTC) is named by its tweet. An annotator of a text votes
    on all five foundations: yes for those they named, no for the others.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    paths
        A file, or several that together are the corpus.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.

    Returns
    -------
    Corpus
        Its `votes` can be written to a file, or handed to `read_votes`.

    Raises
    ------
    VotesError
        If a file cannot be read, or is not of this corpus.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "final_mfrc_data.csv"
    >>> _ = path.write_text("text,subreddit,bucket,annotator,annotation,confidence\n"
    ...                     'Be kind.,europe,US Politics,ann,"Care, Purity",Confident\n')
    >>> corpus = read_corpus("mfrc", path)
    >>> corpus.votes.filter(label=1)["question"].to_list()
    ['care', 'sanctity']
    """
    options = (options or CorpusOptions()).changed(changes, "read_corpus")
    known, facts, name = published_files(name), corpus_facts(name), name.lower()
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    _check(name, listed, options)
    log, only_assigned = ReadingLog(), options.emfd_votes == "assigned"
    frame = _read_files(name, listed, options.themes, options.theme_map)
    annotations = _answers(frame, name, known, facts, log, options.ignore_unknown)
    annotations = add_items(tidy_domains(annotations, _domains(facts)), name, log, by_domain=options.by_domain)
    if only_assigned:
        annotations = _only_assigned(annotations, facts.foundations)
    also = facts.foundations if only_assigned else ()
    annotations = settle_repeats(annotations, options.on_repeat or known.on_repeat, log, also=also)
    votes = _long_table(annotations, facts.foundations)
    if only_assigned:
        log.note("every vote is a yes, so nothing can be fitted to these votes alone (see docs/how-to/corpora.md).")
    return Corpus(name, votes, frame.height, annotations, options.by_domain, dict(log.dropped), tuple(log.notes))


def write_corpus(corpus: Corpus, path: str | Path) -> int:
    """Write the votes of a corpus to a Parquet file, which appears when it is complete.

    Parameters
    ----------
    corpus
        From `read_corpus`.
    path
        The file.

    Returns
    -------
    int
        How many votes were written.
    """
    from moral_entropy.files import whole_file

    with whole_file(path) as partial:
        corpus.votes.write_parquet(partial)
    return corpus.votes.height


def _check(name: str, paths: Sequence[str | Path], options: CorpusOptions) -> None:
    themes, is_emfd = options.themes, name == "emfd"
    rules = [
        (not paths, f"no file of {name} is named. Expected: {published_files(name).files}."),
        (not is_emfd and options.emfd_votes != "all", f"emfd_votes (--emfd-votes) is for eMFD, not for {name}."),
        (not is_emfd and themes is not None, f"themes (--themes) are for eMFD; {name} has domains of its own."),
        (
            themes is None and options.theme_map is not None,
            "a theme map (--theme-map) needs the themes of the documents. Name them with themes (--themes).",
        ),
    ]
    for wrong, msg in rules:
        if wrong:
            raise UsageError(msg)


def _read_files(
    name: str, paths: Sequence[str | Path], themes: str | Path | None, theme_map: str | Path | None
) -> pl.DataFrame:
    import polars as pl

    from moral_entropy.corpora.emfd import load_theme_map, read_emfd, read_themes
    from moral_entropy.corpora.mfrc import read_mfrc
    from moral_entropy.corpora.mftc import read_mftc

    if name == "emfd":
        domains = None if themes is None else read_themes(themes, load_theme_map(theme_map))
        return pl.concat([read_emfd(path, domains) for path in paths])
    read = {"mftc": read_mftc, "mfrc": read_mfrc}[name]
    return pl.concat([read(path) for path in paths])


def _answers(
    frame: pl.DataFrame, name: str, known: PublishedFiles, facts: CorpusFacts, log: ReadingLog, ignore_unknown: bool
) -> pl.DataFrame:
    """Leave out what is no annotation, and read the labels of the others."""
    import polars as pl

    missing = {
        "no text": pl.col("text").is_null() & pl.col("source_id").is_null(),
        "no annotator": pl.col("annotator").is_null(),
        "no label": pl.col("cell").is_null(),
    }
    for reason, is_missing in missing.items():
        kept = frame.filter(~is_missing)
        log.drop(reason, frame.height - kept.height)
        frame = kept
    frame = add_foundations(
        frame, facts.foundations, known.foundation_of(), log, corpus=name, ignore_unknown=ignore_unknown
    )
    if not frame.height:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in log.dropped.items()) or "no annotation at all"
        msg = f"no annotation is left of {name}: {reasons}. Is it the published file? Expected: {known.files}."
        raise VotesError(msg)
    return frame


def _domains(facts: CorpusFacts) -> list[str]:
    return [domain.name for domain in facts.domains]


def _only_assigned(annotations: pl.DataFrame, foundations: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    return annotations.with_columns(pl.when(pl.col(foundations) == 1).then(pl.col(foundations)).name.keep())


def _long_table(annotations: pl.DataFrame, foundations: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    index = ["item", "annotator", "domain", "text"]
    long = annotations.unpivot(foundations, index=index, variable_name="question", value_name="label")
    columns = ["item", "annotator", "question", "label", "domain", "text"]
    return long.filter(pl.col("label").is_not_null()).select(columns).sort("item", "annotator", "question", "label")
