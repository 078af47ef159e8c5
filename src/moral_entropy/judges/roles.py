"""Who the judges are: people or language models.

Stated in a file, a dict, a column that was kept with the votes, or as plain names of people; else guessed from names:
`gpt-4o` and whatever has a slash, as `nli/strict`, is a language model. A name that is also a
first name (Claude, Gemma) is that of a model only among models, or with a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.findings import listed, many
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Run
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import Votes

PERSON, LLM = "person", "llm"
MODELS = re.compile(
    r"(?<![a-z0-9])(?:(?:chat)?gpt|gemini|llama|mistral|mixtral|qwen|deepseek|vicuna|alpaca|falcon-|command-r|chatglm|cohere"
    r"|pandalm|haiku|sonnet|opus-|(?:claude|gemma|bard|grok|palm|phi|nova|yi)[-_. ]?\d|(?:claude|gemma)-|llm|o[134]-"
    r"|judge|grader|scorer|rubric|model_graded|anthropic|openai|davinci)|[-_ ]\d+b\b|[-_]eval\b|/",
    re.IGNORECASE,
)
"""Names that language models, their prompts and scorers have, and people have not."""

EITHER = re.compile(r"claude|gemma|bard|grok|palm|falcon|nova|opus", re.IGNORECASE)
"""Names of models that people have too."""

SPELLINGS = {
    **dict.fromkeys(("person", "human", "people", "annotator", "expert"), PERSON),
    **dict.fromkeys(("llm", "model", "ai", "machine", "language model", "judge"), LLM),
}
MACHINES = tuple(f"format: {tool} " for tool in ("inspect", "promptfoo", "deepeval", "lm-eval", "openai-evals"))
"""How notes begin about logs in which nobody is a person."""


def guess_roles(names: Sequence[str]) -> dict[str, str]:
    """Guess from names who the judges are: "person" or "llm" by name.

    Examples
    --------
    >>> guess_roles(["Anna", "Claude", "Gemma"])
    {'Anna': 'person', 'Claude': 'person', 'Gemma': 'person'}
    >>> guess_roles(["gpt-4o/strict", "llama", "claude", "Anna"])
    {'gpt-4o/strict': 'llm', 'llama': 'llm', 'claude': 'llm', 'Anna': 'person'}
    """
    surely = {name for name in names if MODELS.search(name)}
    either = {name for name in names if EITHER.search(name)} - surely
    # Written small, as other models are; or nobody else is a person.
    if len(surely | either) < len(names):
        either = {name for name in either if name.islower() and any(model_name.islower() for model_name in surely)}
    return {name: LLM if surely and name in surely | either else PERSON for name in names}


def roles_of(run: Run, judges: Sequence[str], roles: Any = None) -> tuple[dict[str, str], str]:
    """Return who every judge is, and how that is known: a sentence.

    Parameters
    ----------
    run, judges
        The run, and the judges of it.
    roles
        A file or dataframe with the columns judge and role, a dict of roles by judge, names of people, or a column that
        was kept with the votes. None for what the audit was told, else for a guess.
    """
    if roles is None and (stored := run.manifest.get("roles")):
        role_of = {row["judge"]: row["role"] for row in stored["judges"]}
        return {name: role_of.get(name, PERSON) for name in judges}, str(stored["said"])
    return _decide(judges, roles, lambda column: _column_of_run(run, column))


def roles_at_audit(votes: Votes, roles: Any) -> dict[str, Any] | None:
    """Return who the judges of votes are, as a manifest keeps it; None where all are people as far as names tell.

    Parameters
    ----------
    votes
        The votes; where `roles` names a column, they must have kept it.
    roles
        As in `roles_of`.
    """
    if votes.anonymous:
        if roles is not None:
            msg = "roles need annotators, and these votes are anonymous. Leave out --roles."
            raise VotesError(msg)
        return None
    names = [str(name) for name in votes.annotators]
    if roles is None and any(note.startswith(MACHINES) for note in votes.reading.notes):
        sentence = "all judges are scorers of a log: none of them is taken for a person"
        return {"said": sentence, "judges": [{"judge": name, "role": LLM} for name in names]}
    # Without a name that only a model has, nobody is taken for one.
    if roles is None and not any(map(MODELS.search, names)):
        return None
    decided, sentence = _decide(names, roles, lambda column: _column_of_votes(votes, column))
    stored = [{"judge": name, "role": role} for name, role in decided.items() if roles is not None or role == LLM]
    return {"said": sentence, "judges": stored} if stored else None


def _decide(
    judges: Sequence[str], roles: Any, column: Callable[[str], pl.DataFrame | None]
) -> tuple[dict[str, str], str]:
    guesses = guess_roles(judges)
    if roles is None:
        people = [name for name in judges if guesses[name] == PERSON]
        n_models, ending = len(judges) - len(people), f"; people: {listed(people)}" if people else ""
        sentence = f"{n_models:,} of {len(judges):,} judges are taken for language models, by their names{ending}"
        return guesses, sentence
    rows = column(roles) if isinstance(roles, str) else None
    stated = dict(map(_role, _rows(roles) if rows is None else _one_each(rows, roles)))
    unknown = [name for name in stated if name not in guesses]
    if unknown and rows is None:
        msg = (
            f"{len(unknown):,} of {len(stated):,} judges in the roles never voted. First: {unknown[0]!r}."
            f"{did_you_mean(unknown[0], judges)} Judges: {listed(list(judges))}."
        )
        raise VotesError(msg)
    missing = [name for name in judges if name not in stated]
    guessed = f", {len(missing):,} guessed from their names" if missing else ""
    sentence = f"roles of {many(len(judges) - len(missing), 'judge')} as told{guessed}"
    return {name: stated.get(name, guesses[name]) for name in judges}, sentence


def _column_of_run(run: Run, column: str) -> pl.DataFrame | None:
    votes = run.scan("votes")
    if column not in votes.collect_schema().names():
        return None
    return votes.select(judge=pl.col("annotator").cast(pl.String), role=pl.col(column).cast(pl.String)).collect()


def _column_of_votes(votes: Votes, column: str) -> pl.DataFrame | None:
    if column not in votes.kept:
        return None
    frames = [
        pl.DataFrame({
            "judge": votes.annotators.gather(ballot.annotator_a[ballot.code_v // ballot.n_labels]).cast(pl.String),
            "role": votes.kept[column].gather(ballot.row_v).cast(pl.String),
        })
        for ballot in votes.ballots if ballot.row_v is not None
    ]  # fmt: skip
    return pl.concat(frames) if frames else None


def _one_each(rows: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    """Return the role of every judge that has one; two roles of one judge are an error."""
    rows = rows.drop_nulls().unique(maintain_order=True)
    twice = rows.filter(pl.col("judge").is_duplicated())
    if twice.height:
        judge = twice["judge"][0]
        roles = twice.filter(judge=judge)["role"].to_list()
        msg = (
            f"{twice['judge'].n_unique():,} judges have two roles in the column {column!r}. First: {judge!r} is "
            f"{roles[0]!r} and {roles[1]!r}. A role describes the judge, not the vote."
        )
        raise VotesError(msg)
    return rows.to_dicts()


def _rows(roles: Any) -> list[dict[str, Any]]:
    """Return the rows of roles that are stated as a dict, as names (`anna,ben=llm`), or in a table."""
    if isinstance(roles, str) and ("," in roles or "=" in roles):
        roles = roles.split(",")
    if isinstance(roles, list | tuple):
        pairs = [str(name).partition("=") for name in roles]
        roles = {name.strip(): role or PERSON for name, _, role in pairs}
    if isinstance(roles, Mapping):
        return [{"judge": str(judge), "role": role} for judge, role in roles.items()]
    if isinstance(roles, str) and not Path(roles).exists():
        msg = f"there is no file {roles!r}, and no such column with the votes: it is there after audit --roles {roles}."
        raise VotesError(msg)
    source = open_source(roles)
    for name in ("judge", "role"):
        if name not in source.columns:
            msg = f"{source.name} has no column {name!r}. Found: {', '.join(source.columns)}. It needs judge and role."
            raise VotesError(msg)
    return pl.DataFrame([source.column(name).cast(pl.String).alias(name) for name in source.columns]).to_dicts()


def _role(row: dict[str, Any]) -> tuple[str, str]:
    judge, role = str(row["judge"]).strip(), SPELLINGS.get(str(row["role"] or "").strip().casefold())
    if role is None:
        msg = f"judge {row['judge']!r} has the role {row['role']!r}; write person or llm."
        raise VotesError(msg)
    return judge, role
