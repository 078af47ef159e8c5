"""The study of alarms: its corpora have just the trouble they are said to have, and its counts are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import load_script

from moral_entropy.findings import Finding

ROOT = Path(__file__).parents[2]


study = load_script("studies/false_alarms.py")


def rows_of(votes):
    ballot = votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    return {(int(i), int(c) // 2): int(c) % 2 for i, c in zip(item_v, ballot.code_v, strict=True)}


def test_the_adversary_alone_is_reversed():
    before, after = rows_of(study.clean(2)), rows_of(study.adversary(2))
    assert before.keys() == after.keys()
    assert all(after[i, a] == (1 - label if a == 3 else label) for (i, a), label in before.items())


def test_copies_are_copies_and_nothing_else_changes():
    before, after = rows_of(study.clean(2)), rows_of(study.copied(2))
    shared = [i for i, a in before if a == 4 and (i, 1) in before]
    assert len(shared) > 100 and all(after[i, 4] == before[i, 1] for i in shared)
    assert all(after[i, a] == label for (i, a), label in before.items() if a != 4 or i not in set(shared))


@pytest.mark.parametrize("links", [0, 3])
def test_teams_share_just_the_links(links):
    rows, reversed_rows = (rows_of(study.two_teams(1, links=links, reversed_team=flag)) for flag in (False, True))
    both = {i for i, a in rows if a >= 6} & {i for i, a in rows if a < 6}
    assert both == set(range(links))
    assert all(reversed_rows[i, a] == (1 - label if a >= 6 else label) for (i, a), label in rows.items())


def test_hard_items_are_a_coin_toss():
    agree = [
        np.mean([max(labels.count(0), labels.count(1)) == len(labels) for labels in by_item(study_votes).values()])
        for study_votes in (study.clean(0), study.shared_difficulty(0))
    ]
    # Half at a sixteenth, the others mostly unanimous.
    assert 0.3 < agree[1] < 0.55


def by_item(votes):
    found = {}
    for (i, _), label in rows_of(votes).items():
        found.setdefault(i, []).append(label)
    return found


def test_alarms_are_counted_by_corpus():
    calm, loud = Finding("gold", "ece", 0.1), Finding("gold", "ece", 0.4, level="bad", text="off.")
    table = study.clean_table([[calm, loud, loud], [calm], [calm, Finding("temper", "exponent", 1.0)], [loud]])
    assert "| gold | ece | 2 | 50.0% |" in table and "| any of them | | 2 | 50.0% |" in table
    assert "by side: temper 1." in table


def test_the_right_name_must_come_first():
    trouble = study.Trouble("t", study.clean, ("pair_excess",), ("1 · 4",))
    right = Finding("dependence", "pair_excess", 0.2, subject="1 · 4", level="bad", text="x.")
    wrong = Finding("dependence", "pair_excess", 0.2, subject="2 · 3", level="doubt", text="x.")
    line = study.trouble_line(trouble, [[right, wrong], [wrong, right], [], [right]])
    assert line == "| t | pair excess | 75% | 50% | – |"


def test_one_corpus_of_each_kind_can_be_examined():
    assert not study.ringing(study.clean_findings(("identifiability",), 1))
    found = study.troubled_findings(0, 0)
    assert [f.subject for f in found if f.figure == "youden"] == ["3"]


def test_tables_go_between_the_markers():
    page = (ROOT / "docs" / "evidence" / "validation.md").read_text(encoding="utf-8")
    once = study.with_tables(page, "NEW")
    assert "NEW" in once and study.with_tables(once, "NEW") == once
    with pytest.raises(ValueError, match="has no place"):
        study.with_tables("# nothing here", "NEW")
