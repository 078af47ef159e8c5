"""The league: its scores against scikit-learn and plain loops, what is kept between runs, and the page it writes."""

import json
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, log_loss
from support import load_script, votes_of

league = load_script("studies/league.py")
pages, runs, scores, sets, words = (
    import_module(f"league_{part}") for part in ("page", "runs", "scores", "sets", "words")
)

OURS, PLURALITY, SHARE = sets.OURS.key, sets.PLURALITY.key, sets.SHARE.key
DS, MACE, MMSR = "crowdkit:dawid-skene", "crowdkit:mace", "crowdkit:mmsr"


def plain_ece(p_ik, gold_i, n_bins=15):
    """Calibration error of the likeliest label, bin by bin and item by item."""
    total = 0.0
    for b in range(n_bins):
        gap = 0.0
        for p_k, gold in zip(p_ik, gold_i, strict=True):
            if min(int(max(p_k) * n_bins), n_bins - 1) == b:
                gap += max(p_k) - (int(np.argmax(p_k)) == gold)
        total += abs(gap)
    return total / len(gold_i)


@pytest.mark.parametrize("n_labels", [2, 3, 8])
def test_scores_are_those_of_scikit_learn_and_of_loops(n_labels):
    rng = np.random.default_rng(n_labels)
    p_ik = rng.dirichlet(np.full(n_labels, 0.4), size=300)
    gold_i = np.array([rng.choice(n_labels, p=p_k) for p_k in p_ik])
    found = scores.score(p_ik, gold_i)
    assert found.accuracy == pytest.approx(accuracy_score(gold_i, p_ik.argmax(axis=1)))
    clipped_ik = np.maximum(p_ik, 1e-6)
    assert found.log_loss == pytest.approx(
        log_loss(gold_i, clipped_ik / clipped_ik.sum(axis=1, keepdims=True)), abs=1e-5
    )
    squares = [sum((p - (k == gold)) ** 2 for k, p in enumerate(p_k)) for p_k, gold in zip(p_ik, gold_i, strict=True)]
    assert found.brier == pytest.approx(sum(squares) / 2 / 300)
    assert found.ece == pytest.approx(plain_ece(p_ik, gold_i))
    assert (found.n_clipped, found.n_undefined) == (0, 0)


def test_sure_errors_are_clipped_and_counted():
    found = scores.score(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([1, 1, 0]))
    assert found.n_clipped == 1
    assert found.log_loss == pytest.approx((-np.log(1e-6) + 0.0 + np.log(2)) / 3)
    assert found.accuracy == pytest.approx((0 + 1 + 0.5) / 3)


def test_labels_alone_have_an_accuracy_and_nothing_else():
    found = scores.score(np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 2, 0]), labels_only=True)
    assert found == scores.Scores(accuracy=0.75)


def test_what_is_no_number_counts_as_knowing_nothing():
    found = scores.score(np.array([[np.nan, np.nan, np.nan, np.nan], [1.0, 0.0, 0.0, 0.0]]), np.array([2, 0]))
    assert (found.n_undefined, found.accuracy) == (1, (0.25 + 1) / 2)
    assert found.log_loss == pytest.approx(np.log(4) / 2)


def test_means_over_questions_leave_out_nothing():
    mean = scores.mean_scores([scores.Scores(0.5, 0.4, 0.3, 0.2, 1, 2), scores.Scores(0.7, 0.8, 0.1, 0.0, 3, 0)])
    assert_allclose([mean.accuracy, mean.log_loss, mean.brier, mean.ece], [0.6, 0.6, 0.2, 0.1])
    assert (mean.n_clipped, mean.n_undefined) == (4, 2)
    assert scores.mean_scores([scores.Scores(0.5), scores.Scores(0.7)]).log_loss is None


def entry(name, kinds, accuracies, losses, *, n_gold=100):
    """A set with an accuracy for every method: 0.7 unless told; a method whose accuracy is None failed."""
    lines = {}
    for key in pages.KEYS:
        accuracy = accuracies.get(key, 0.7)
        if accuracy is None:
            lines[key] = scores.Line(None, failed="not done in 60 s of CPU")
        elif key == MMSR:
            lines[key] = scores.Line(scores.Scores(accuracy), 0.1)
        else:
            lines[key] = scores.Line(scores.Scores(accuracy, losses.get(key, 0.5), 0.2, 0.1), 1.5)
    return scores.Entry(name, kinds, 100, 5, 2, 300, n_gold, lines)


@pytest.fixture
def entries():
    return [
        entry("small", (sets.FEW,), {OURS: 0.8, PLURALITY: 0.9, DS: 0.9, MACE: None}, {OURS: 0.2, DS: 2.0, SHARE: 0.4}),
        entry("large", (sets.FEW, sets.LABELS), {OURS: 0.8, DS: 0.6}, {OURS: 0.9, DS: 0.1, SHARE: 0.1}),
        entry("mftc twin", (sets.TWIN,), {OURS: 0.9}, {OURS: 0.3}),
    ]


def test_ranks_share_ties_and_failures_come_last(entries):
    ranks = entries[0].ranks()
    assert ranks[PLURALITY] == ranks[DS] == 1.5
    assert ranks[OURS] == 3 and ranks[MACE] == len(pages.KEYS)
    others = [ranks[key] for key in pages.KEYS if key not in (PLURALITY, DS, OURS, MACE)]
    assert set(others) == {np.mean(range(4, len(pages.KEYS)))}


def test_sums_over_sets_are_means_and_geometric_means(entries):
    found = scores.summarise(entries[:2], OURS, SHARE)
    assert found.accuracy == pytest.approx(0.8)
    assert found.ratio == pytest.approx(np.sqrt(0.2 / 0.4 * 0.9 / 0.1))
    assert found.rank == pytest.approx((3 + 1) / 2)


def test_a_method_that_failed_has_no_means(entries):
    found = scores.summarise(entries[:2], MACE, SHARE)
    assert (found.accuracy, found.ratio, found.n_answered) == (None, None, 1)


def cells(text, start):
    return next(line for line in text.splitlines() if line.startswith(start)).strip("|").split("|")


@pytest.fixture
def text(entries):
    facts = words.Facts({"moral_entropy": "9.9", "crowdkit": "1.4.2"}, league.machine(), 60.0)
    return pages.page(entries, facts)


def test_the_page_begins_with_the_best_by_kind(text):
    few = [cell.strip() for cell in cells(text, "| **people, few votes**")]
    assert few[1:3] == ["2", "moral-entropy, published p and vote share (plurality): .800"]
    assert few[3:] == ["smoothed vote share: 1.000", ".800, place 1 of 15", "2.121, place 2 of 14"]
    assert text.index("The best by kind") < text.index("All methods by kind") < text.index("By set")


def test_every_method_is_held_against_ours_where_it_answered(text):
    table = text[text.index("## Head to head") : text.index("## Where")]
    # Two real sets: 0.8 against 0.9 and 0.6; log losses 0.2 and 0.9 against 2.0 and 0.1.
    ds = [cell.strip() for cell in cells(table, "| crowd-kit DawidSkene")]
    assert ds[1:] == ["2", "1", "0", "1", "+5.0", f"{np.sqrt(0.2 / 2.0 * 0.9 / 0.1):.3f}".removeprefix("0")]
    assert [cell.strip() for cell in cells(table, "| crowd-kit MACE")][1:5] == ["1", "1", "0", "0"]
    assert cells(table, "| crowd-kit MMSR")[6].strip() == "–"


def test_what_is_not_run_yet_is_counted(entries):
    assert pages.missing(entries) == []
    entries[0].lines[DS] = scores.Line(None, failed=runs.NOT_RUN)
    assert f"1 of {3 * len(pages.KEYS)} lines" in pages.missing(entries)[0]
    assert pages.missing(entries, ["emfd twin"])[0].endswith("rank last; sets not run yet: emfd twin.")


def test_the_page_says_where_ours_loses(text):
    assert "by more than one standard error: small (10.0 points)." in text
    assert "Log loss above that of the smoothed share (ratio): large (9.00)." in text
    assert "by more than two standard errors: small by vote share (plurality) (10.0 points)." in text


def test_the_page_has_a_table_per_set_with_failures_as_lines(text):
    assert [line[4:] for line in text.splitlines() if line.startswith("### ")] == ["small", "large", "mftc twin"]
    assert text.count("| crowd-kit MACE | not done in 60 s of CPU |") == 1
    assert text.count("| crowd-kit MMSR | .700 | – | – | – | – | 0.1 |") == 3
    assert "1e-06" in text and "make league" in text and "crowd-kit 1.4.2, moral-entropy 9.9" in text


def test_best_figures_are_bold_whoever_has_them(text):
    small = text[text.index("### small") : text.index("### large")]
    assert cells(small, "| crowd-kit DawidSkene")[1:3] == [" **.900** ", " 2.000 "]
    assert cells(small, "| **moral-entropy**")[1:3] == [" .800 ", " **.200** "]


@pytest.mark.parametrize(
    ("name", "n_labels", "per_item", "kinds"),
    [
        ("some", 2, 3, (sets.FEW,)),
        ("some", 4, 8, (sets.MANY, sets.LABELS)),
        ("llmbar_natural", 2, 3, (sets.LLM,)),
        ("mftc", 4, 3, (sets.TWIN,)),
    ],
)
def test_kinds_follow_from_votes_and_labels(name, n_labels, per_item, kinds):
    rows = [(item, annotator, item % n_labels) for item in range(8) for annotator in range(per_item)]
    assert sets.kinds_of(name, votes_of(rows, n_labels).ballots[0]) == kinds


@pytest.fixture
def source():
    rows = [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0)]
    return sets.Source("made up", votes_of(rows, gold_i=[1, 0, -1]))


@pytest.fixture
def asked(monkeypatch):
    """Stand in for processes: every method says 0.75 for label 1, MACE fails; what was asked for is listed."""
    calls = []

    def answer(tool, pairs, seconds, **_):
        calls.append((tool.key, seconds))
        for _, out in pairs:
            np.save(f"{out}.npy", np.tile([0.25, 0.75], (3, 1)))
        facts = {"cpu_seconds": 0.5, "labels_only": False, "version": "1"}
        return [{"failed": "not done"} if tool.key == MACE else facts for _ in pairs]

    monkeypatch.setattr(runs, "run_on_all", answer)
    monkeypatch.setattr(runs, "PEERS", runs.ROOT)
    return calls


def test_answers_are_kept_until_the_limit_or_the_votes_change(source, asked, tmp_path):
    tools = [tool for tool in sets.TOOLS if tool.key in (OURS, MACE)]
    first = runs.Runs(tmp_path, 60.0, jobs=1).on(source, tools)
    again = runs.Runs(tmp_path, 60.0, jobs=1).on(source, tools)
    assert asked == [(OURS, 60.0), (MACE, 60.0)]
    assert json.dumps(first[MACE][0].facts) == json.dumps(again[MACE][0].facts)
    assert_allclose(first[OURS][0].p_ik, again[OURS][0].p_ik)
    runs.Runs(tmp_path, 90.0, jobs=1).on(source, tools[:1])
    other = sets.Source("made up", votes_of([(0, 0, 1), (1, 0, 0), (2, 0, 0)]))
    runs.Runs(tmp_path, 60.0, jobs=1).on(other, tools[:1])
    assert asked[2:] == [(OURS, 90.0), (OURS, 60.0)]


def test_without_processes_only_what_is_kept_is_read(source, asked, tmp_path):
    tools = [tool for tool in sets.TOOLS if tool.key in (OURS, DS)]
    runs.Runs(tmp_path, 60.0, jobs=1).on(source, tools[:1])
    found = runs.Runs(tmp_path, 60.0, jobs=0).on(source, tools)
    assert asked == [(OURS, 60.0)]
    assert found[OURS][0].p_ik is not None and found[DS][0].facts == {"failed": "not run yet"}


def test_only_items_with_gold_are_scored(source, asked, tmp_path):
    tools = [tool for tool in sets.TOOLS if tool.key in (OURS, MACE)]
    [one] = league.entries_of(source, runs.Runs(tmp_path, 60.0, jobs=1).on(source, tools))
    assert (one.name, one.n_gold, one.n_items) == ("made up", 2, 3)
    assert one.lines[OURS].scores.log_loss == pytest.approx(-np.log([0.75, 0.25]).mean())
    assert one.lines[MACE] == scores.Line(None, failed="not done")


def test_a_twin_is_one_entry_of_means():
    one = scores.Line(scores.Scores(0.5, 0.4, 0.3, 0.2), 1.0)
    other = scores.Line(scores.Scores(0.7, 0.6, 0.1, 0.0), 2.5)
    mean = league.mean_line([one, other])
    assert (mean.seconds, mean.scores.accuracy) == (3.5, pytest.approx(0.6))
    assert league.mean_line([one, scores.Line(None, failed="why")]) == scores.Line(None, failed="why")
