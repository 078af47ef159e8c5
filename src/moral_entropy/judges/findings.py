"""Findings about panels of judges: who fails, who always says the same, a panel of one, known answers of one label.

An audit looks for them in the votes (`judge_findings`); `moral-entropy judges` repeats what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np

from moral_entropy.findings import Finding
from moral_entropy.judges.roles import LLM
from moral_entropy.votes.formats.records import NO_VERDICT
from moral_entropy.votes.table import UNKNOWN, Ballot, Ints, Votes

SIDE = "judges"

FAILS, FAILS_OFTEN = 0.10, 0.25
"""Share of items without a vote from which a judge who should vote on all is said to fail, and is a doubt."""

MOST_VOTE_ON_ALL = 0.8
"""Share of the items that most judges must have voted on for gaps to be failures: crowds have gaps by design."""

ALWAYS, FEW_VOTES = 0.99, 20
"""Share of a judge's votes for one label from which it always says so, if it has that many votes."""

USUAL = 0.95
"""Share of the others' votes for a label from which whoever always says so says what is usual."""

FEW_ANSWERS = 5
"""Known answers from which it means something that all are of one label."""


def judge_findings(votes: Votes, roles: Mapping[str, str]) -> list[Finding]:
    """Look at the judges of every question.

    Parameters
    ----------
    votes
        The votes.
    roles
        Who the judges are, by name; whoever is not there is a person. Failures and judges who always say the same are
        looked for where a language model is among them: people may leave items out, and skip what they do not know.

    Examples
    --------
    >>> import moral_entropy as me
    >>> findings = judge_findings(me.simulate_votes(n_items=30, n_annotators=1, votes_per_item=1).votes, {})
    >>> [(finding.metric, finding.text) for finding in findings]
    [('one_judge', 'one judge gave all votes.')]
    """
    if votes.anonymous:
        return []
    names = [str(name) for name in votes.annotators]
    mute = [name for text in votes.reading.dropped if (name := text.removesuffix(NO_VERDICT)) not in (text, *names)]
    findings = []
    for ballot in votes.ballots:
        names_j, judge_a = np.unique([names[a] for a in ballot.annotator_a], return_inverse=True)
        judges: list[str] = names_j.tolist()
        if len(judges) == 1:
            findings.append(Finding(
                SIDE, "one_judge", 1.0, ballot.question, ballot.part, subject=judges[0], n=ballot.n_items,
                level="doubt", text="one judge gave all votes.",
                meaning="There is nobody to compare it with: the consensus is its own votes.",
                remedy="Check random items by hand, which says how right it is (moral-entropy spot-check); a second "
                "judge says where to look.",
            ))  # fmt: skip
        if (ballot.gold_i != UNKNOWN).any():
            findings += one_label(ballot.labels, ballot.gold_i, ballot.question, ballot.part)
        if models := {name for name in judges if roles.get(name) == LLM} | {*mute}:
            findings += _of_models(ballot, judges, judge_a, models, mute)
    return findings


def _of_models(
    ballot: Ballot, judges: Sequence[str], judge_a: Ints, models: Set[str], mute: Sequence[str]
) -> Iterator[Finding]:
    """Find judges who fail, `mute` ones on all items, and those who always say the same."""
    votes_c = np.bincount(ballot.code_v, minlength=ballot.n_annotators * ballot.n_labels).astype(np.float64)
    counts_jv = np.zeros((len(judges), ballot.n_labels))
    np.add.at(counts_jv, judge_a, votes_c.reshape(ballot.n_annotators, ballot.n_labels))
    missing_j = 1.0 - np.minimum(counts_jv.sum(axis=1) / max(int((ballot.votes_i > 0).sum()), 1), 1.0)
    complete = 1.0 - float(np.median(missing_j)) >= MOST_VOTE_ON_ALL
    share_of = {judge: float(share) for judge, share in zip(judges, missing_j, strict=True)
                if complete and share >= FAILS and judge in models} | dict.fromkeys(mute, 1.0)  # fmt: skip
    for judge in sorted(share_of, key=lambda name: -share_of[name]):
        yield Finding(
            SIDE, "judge_fails", share_of[judge], ballot.question, ballot.part, subject=judge,
            level="doubt" if share_of[judge] >= FAILS_OFTEN else "note",
            text=f"{judge} fails on {share_of[judge]:.0%} of the items.",
            meaning="It has no vote." if judge in mute else "If these are the hard ones, its figures flatter it.",
            remedy="Ask again there, or mend its prompt.",
        )  # fmt: skip
    for judge, counts_v in zip(judges, counts_jv, strict=True):
        n, favourite, others_v = float(counts_v.sum()), int(counts_v.argmax()), counts_jv.sum(axis=0) - counts_v
        share = float(counts_v[favourite]) / max(n, 1.0)
        if n >= FEW_VOTES and share >= ALWAYS and others_v[favourite] < USUAL * max(others_v.sum(), 1.0):
            always = "always" if share == 1.0 else "nearly always"
            yield Finding(
                SIDE, "always_the_same", share, ballot.question, ballot.part, subject=judge, n=round(n), level="doubt",
                text=f"{judge} {always} says {ballot.labels[favourite]!r} ({share:.1%} of {n:,.0f} votes).",
                meaning="Its votes tell nothing, and pull plain votes towards that label.",
                remedy="Leave it out (--exclude), or mend its prompt.",
            )  # fmt: skip


def one_label(labels: Sequence[str], gold_i: Ints, question: str, part: str = "") -> Iterator[Finding]:
    """Say so where all known answers are one label."""
    answers = gold_i[gold_i != UNKNOWN]
    if len(answers) >= FEW_ANSWERS and (answers == answers[0]).all():
        label = labels[int(answers[0])]
        yield Finding(
            SIDE, "one_label_known", float(len(answers)), question, part, subject=label, n=len(answers), level="doubt",
            text=f"all {len(answers):,} known answers are {label!r}.",
            meaning="How judges err on other labels is not known from them, and neither is how many labels are wrong.",
            remedy="Label random items, not those of one label (moral-entropy spot-check).",
        )  # fmt: skip
