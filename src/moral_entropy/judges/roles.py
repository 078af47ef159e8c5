"""Who the judges are: people or language models, and of which model, prompt and order of answers.

Told in a file or a column that was kept with the votes, else guessed from names: `gpt-4o/strict/ba` is the model
gpt-4o, its prompt strict, and the answers in the order b, a; `gpt-4o#2` is gpt-4o asked a second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.findings import listed
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Run
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import Votes

PERSON, LLM = "person", "llm"
MODELS = re.compile(
    r"gpt|claude|gemini|gemma|llama|mistral|mixtral|qwen|deepseek|palm|bard|vicuna|alpaca|falcon|command-r|grok|phi-?\d"
    r"|chatglm|cohere|\bllm|\bo[134]-|[-_ ]\d+b\b",
    re.IGNORECASE,
)
"""Names that language models and their prompts have."""

SPELLINGS = {
    **dict.fromkeys(("person", "human", "people", "annotator", "expert"), PERSON),
    **dict.fromkeys(("llm", "model", "ai", "machine", "language model"), LLM),
}
ORDERS = re.compile(r"(?:^|[/_\-.|: ])(ab|ba|swap|swapped|original|forward|reversed)$", re.IGNORECASE)
REPEAT = re.compile(r"(?:#|[/_\-.|: ](?:run|rep|repeat|sample|seed|try)[ _-]?)(\d+)$", re.IGNORECASE)
"""How names end of judges who see the answers in another order, or are asked again."""

SWAPPED = ("ba", "swap", "swapped", "reversed")


@dataclass(frozen=True)
class Role:
    """Who one judge is.

    Parameters
    ----------
    judge
        The name, as the votes have it.
    role
        "person" or "llm".
    model, prompt, order, repeat
        Of a language model; empty where unknown.
    """

    judge: str
    role: str
    model: str = ""
    prompt: str = ""
    order: str = ""
    repeat: str = ""

    @property
    def asked(self) -> tuple[str, str, str]:
        """Model, prompt and order: judges alike in these are one judge asked again."""
        return self.model, self.prompt, self.order

    @property
    def swapped(self) -> bool:
        """Whether the answers came in the other order."""
        return self.order.casefold() in SWAPPED


def mostly_models(names: Sequence[str]) -> bool:
    """Guess from the annotators' names whether the panel is one of language models.

    Examples
    --------
    >>> mostly_models(["gpt-4o", "claude-3", "ann"]), mostly_models(["A1", "A2"])
    (True, False)
    """
    return 2 * sum(bool(MODELS.search(name)) for name in names) > len(names)


def guess_role(name: str, *, models: bool) -> Role:
    """Guess from a name who a judge is.

    Parameters
    ----------
    name
        The name.
    models
        Whether the panel as a whole is one of language models.

    Examples
    --------
    >>> guess_role("gpt-4o/strict/ba", models=False)
    Role(judge='gpt-4o/strict/ba', role='llm', model='gpt-4o', prompt='strict', order='ba', repeat='')
    >>> guess_role("llama#2", models=True).repeat, guess_role("ann", models=False).role
    ('2', 'person')
    """
    if not models and not MODELS.search(name):
        return Role(name, PERSON)
    rest, repeat, order = name, "", ""
    if found := REPEAT.search(rest):
        rest, repeat = rest[: found.start()], found[1]
    if found := ORDERS.search(rest):
        rest, order = rest[: found.start()], found[1]
    model, _, prompt = rest.partition("/")
    return Role(name, LLM, model, prompt, order, repeat)


def roles_of(run: Run, judges: Sequence[str], told: Any = None) -> tuple[list[Role], str]:
    """Return who every judge is, and how that is known: a sentence.

    Parameters
    ----------
    run, judges
        The run, and the judges of it.
    told
        A file or dataframe with the columns judge and role, or a column that was kept with the votes. None for what
        the audit was told, else for a guess.
    """
    if told is None and (stored := run.manifest.get("roles")):
        known = {row["judge"]: Role(**row) for row in stored["judges"]}
        return [known.get(name, Role(name, PERSON)) for name in judges], str(stored["said"])
    return _settled(judges, told, mostly_models(judges), lambda column: _kept_in_run(run, column))


def roles_at_audit(votes: Votes, told: Any) -> dict[str, Any] | None:
    """Return who the judges of votes are, as a manifest keeps it; None where all are people as far as names tell.

    Parameters
    ----------
    votes
        The votes; where `told` names a column, they must have kept it.
    told
        As in `roles_of`.
    """
    if votes.anonymous:
        if told is not None:
            msg = "roles need annotators, and these votes are anonymous. Leave out --roles."
            raise VotesError(msg)
        return None
    names = [str(name) for name in votes.annotators]
    models = mostly_models(names)
    roles, said = _settled(names, told, models, lambda column: _kept_in_votes(votes, column))
    stored = [asdict(role) for role in roles if told is not None or role.role == LLM]
    return {"said": said, "judges": stored} if stored else None


def _settled(
    judges: Sequence[str], told: Any, models: bool, column: Callable[[str], pl.DataFrame | None]
) -> tuple[list[Role], str]:
    guessed = {name: guess_role(name, models=models) for name in judges}
    if told is None:
        n = sum(role.role == LLM for role in guessed.values())
        return list(guessed.values()), f"{n:,} of {len(judges):,} judges are taken for language models, by their names"
    kept = column(told) if isinstance(told, str) else None
    known = {role.judge: role for role in map(_role, _rows(told) if kept is None else _one_each(kept, told))}
    unknown = [name for name in known if name not in guessed]
    if unknown and kept is None:
        msg = (
            f"{len(unknown):,} of {len(known):,} judges in the file of roles never voted. First: {unknown[0]!r}."
            f"{did_you_mean(unknown[0], judges)} Judges: {listed(list(judges))}."
        )
        raise VotesError(msg)
    missing = [name for name in judges if name not in known]
    said = f"roles of {len(judges) - len(missing):,} judges as told"
    return [known.get(name, guessed[name]) for name in judges], (
        f"{said}, {len(missing):,} guessed from their names" if missing else said
    )


def _kept_in_run(run: Run, column: str) -> pl.DataFrame | None:
    votes = run.scan("votes")
    if column not in votes.collect_schema().names():
        return None
    return votes.select(judge=pl.col("annotator").cast(pl.String), role=pl.col(column).cast(pl.String)).collect()


def _kept_in_votes(votes: Votes, column: str) -> pl.DataFrame | None:
    if column not in votes.kept:
        return None
    frames = []
    for ballot in votes.ballots:
        if ballot.row_v is not None:
            who_v = votes.annotators.gather(ballot.annotator_a[ballot.code_v // ballot.n_labels]).cast(pl.String)
            roles_v = votes.kept[column].gather(ballot.row_v).cast(pl.String)
            frames.append(pl.DataFrame({"judge": who_v, "role": roles_v}).unique(maintain_order=True))
    return pl.concat(frames) if frames else None


def _one_each(rows: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    """Return the role of every judge that has one; two roles of one judge are an error."""
    rows = rows.drop_nulls().unique(maintain_order=True)
    twice = rows.filter(pl.col("judge").is_duplicated())
    if twice.height:
        who = twice["judge"][0]
        roles = twice.filter(judge=who)["role"].to_list()
        msg = (
            f"{twice['judge'].n_unique():,} judges have two roles in the column {column!r}. First: {who!r} is "
            f"{roles[0]!r} and {roles[1]!r}. A role describes the judge, not the vote."
        )
        raise VotesError(msg)
    return rows.to_dicts()


def _rows(told: Any) -> list[dict[str, Any]]:
    source = open_source(told)
    for name in ("judge", "role"):
        if name not in source.columns:
            msg = f"{source.name} has no column {name!r}. Found: {', '.join(source.columns)}. It needs judge and role."
            raise VotesError(msg)
    return pl.DataFrame([source.column(name).cast(pl.String).alias(name) for name in source.columns]).to_dicts()


def _role(row: dict[str, Any]) -> Role:
    given = str(row["role"] or "").strip().casefold()
    if given not in SPELLINGS:
        msg = f"judge {row['judge']!r} has the role {row['role']!r}; write person or llm."
        raise VotesError(msg)
    more = {name: str(row.get(name) or "").strip() for name in ("model", "prompt", "order", "repeat")}
    if SPELLINGS[given] == LLM and not more["model"]:
        return Role(row["judge"], LLM, **{k: v for k, v in vars(guess_role(row["judge"], models=True)).items()
                                          if k not in ("judge", "role")})  # fmt: skip
    return Role(str(row["judge"]).strip(), SPELLINGS[given], **more)
