"""The switching table of the page, against a loop over the run's votes."""

from collections import Counter, defaultdict

import pytest
from report_support import page_of, rows_of

from moral_entropy.report.tables import switching_rows
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run


@pytest.mark.parametrize("name", ["plain_run", "many_run"])
def test_counts_equal_a_loop(name, request):
    path = request.getfixturevalue(name)
    run = read_run(path)
    expected = Counter()
    for question in run.questions:
        top = read_table(path, "outliers").filter(
            kind="item", ranking="entropy", domain="(all)", question=question.name
        )
        wanted = set(top["name"])
        votes = defaultdict(list)
        for asked, item, annotator, label in read_table(path, "votes").iter_rows():
            if asked == question.name and str(item) in wanted:
                votes[item].append((str(annotator), label))
        for cast in votes.values():
            counts = Counter(label for _, label in cast)
            tied = sorted(label for label, n in counts.items() if n == max(counts.values()))
            last = question.positive or max(label for some in votes.values() for _, label in some)
            majority = last if last in tied else tied[0]
            for annotator, label in cast:
                expected[question.name, annotator, label == majority] += 1
    rows = switching_rows(run, most=1_000).rows()
    assert rows
    found = {(q, a, True): n for q, a, n, _ in rows} | {(q, a, False): n for q, a, _, n in rows}
    assert {key: n for key, n in found.items() if n} == dict(expected)


def test_the_page_holds_them(plain_run):
    assert rows_of(page_of(plain_run).data()["switching"])
