"""Calls with wrong keywords: `make check` fails where a type checker would let one of them pass. Nothing runs this."""

import moral_entropy as me


def misspelt() -> None:
    me.audit("votes.csv", gold_flie="gold.csv")  # type: ignore[call-arg]
    me.fit("votes.csv", drwas=100)  # type: ignore[call-arg]
    me.read_votes("votes.csv", anotator="rater")  # type: ignore[call-arg]
    me.audit("votes.csv", draws="many")  # type: ignore[arg-type]
    me.audit("votes.csv", rules=["any", "majority"], labels={"nm": ""}, draws=0)
