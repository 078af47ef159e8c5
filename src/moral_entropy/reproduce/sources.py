"""The corpora of the study → `Votes`: the authors' files, a table that `corpus` made of them, or a simulated twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from moral_entropy.errors import VotesError
from moral_entropy.reproduce.options import Inputs
from moral_entropy.reproduce.published import CORPORA, foundations
from moral_entropy.votes.table import Votes

VOTE_COLUMNS = {"item", "annotator", "question", "label"}


def corpora_in(inputs: Inputs) -> tuple[str, ...]:
    """Return the short names of the given corpora, in the order of `CORPORA`."""
    return tuple(name for name in CORPORA if inputs.twins or name in inputs.files)


def load_votes(name: str, inputs: Inputs, seed: int = 0) -> Votes:
    """Read or simulate one corpus: one yes/no question per foundation.

    A published file is read as the paper counts: a text that occurs in two domains is two items.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    inputs
        Files or twins.
    seed
        Seed of a simulated twin.

    Examples
    --------
    >>> votes = load_votes("mfrc", Inputs(twins=True, scale=0.01))
    >>> votes.questions, votes.n_items
    (('authority', 'care', 'fairness', 'loyalty', 'sanctity'), 180)
    """
    from moral_entropy.votes.read import read_votes

    gold = inputs.gold if name == "emfd" else None
    if inputs.twins:
        from moral_entropy.corpora.twins import twin

        votes = read_votes(twin(name, seed=seed, scale=inputs.scale), text="")
        votes = replace(votes, reading=replace(votes.reading, source=f"the simulated twin of {CORPORA[name]}"))
    elif is_table_of_votes(inputs.files[name]):
        votes = read_votes(inputs.files[name], text="", gold_file=gold)
    else:
        votes = _published_file(name, inputs, gold)
    return _only_foundations(votes)


def is_table_of_votes(path: str | Path) -> bool:
    """Return whether a file is a table of votes, as `corpus` and `simulate` write it, and not a published file."""
    from moral_entropy.votes.source import MAGIC_PARQUET, head_of, open_source

    # A published MFTC is one large JSON: no need to parse it to know that it is no table.
    plain = Path(path).name.lower().removesuffix(".gz")
    if plain.endswith(".json") and not head_of(Path(path)).startswith(MAGIC_PARQUET):
        return False
    return set(open_source(path).columns) >= VOTE_COLUMNS


def _published_file(name: str, inputs: Inputs, gold: str | Path | None) -> Votes:
    import hashlib

    from moral_entropy.corpora.corpus import read_corpus
    from moral_entropy.votes.read import read_votes
    from moral_entropy.votes.source import hash_into

    path = Path(inputs.files[name])
    corpus = read_corpus(name, path, by_domain=True, themes=inputs.themes if name == "emfd" else None)
    digest = hashlib.sha256()
    hash_into(digest, path)
    votes = read_votes(corpus.votes, text="", gold_file=gold)
    notes = (*corpus.notes, *votes.reading.notes)
    reading = replace(
        votes.reading,
        source=path.name,
        sha256=digest.hexdigest(),
        rows=corpus.rows,
        dropped=corpus.dropped,
        notes=notes,
    )
    return replace(votes, reading=reading)


def _only_foundations(votes: Votes) -> Votes:
    ballots = tuple(ballot for ballot in votes.ballots if ballot.question in foundations())
    asked = {ballot.question for ballot in ballots}
    missing = [name for name in foundations() if name not in asked]
    if missing:
        msg = (
            f"{votes.reading.source} has no votes on {len(missing)} of the five foundations. First: {missing[0]!r}. "
            f"Questions found: {', '.join(votes.questions)}. Make the table with moral-entropy corpus."
        )
        raise VotesError(msg)
    many = [ballot for ballot in ballots if ballot.n_labels != 2]
    if many:
        msg = (
            f"{len(many)} of the five foundations in {votes.reading.source} have more than two labels. "
            f"First: {many[0].question!r} has {', '.join(many[0].labels)}. The study needs yes or no for each."
        )
        raise VotesError(msg)
    return replace(votes, ballots=ballots)
