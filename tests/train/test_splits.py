"""No text on two sides, nobody moved by newcomers, and every domain where it belongs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.errors import TrainError, UsageError
from moral_entropy.train.splits import KINDS, Split, check_split, make_splits

TEXTS = [f"text number {n % 180}" for n in range(240)]
DOMAINS = [["BLM", "Sandy", "MeToo"][n % 3] for n in range(240)]

some_texts = st.lists(
    st.sampled_from(["a", "A ", "b", " b", "c c", "c\nc", "d", "e", "ﬁ", "fi"]), min_size=60, max_size=90
)


def sides(split):
    return split.train_i, split.validation_i, split.test_i


def plain(text):
    # What a reader would call the same text, spelt differently from the code under test.
    return "".join(text.replace("ﬁ", "fi").lower().split())


@given(texts=some_texts, seed=st.integers(0, 50), draw=st.integers(0, 5))
def test_no_text_is_on_two_sides(texts, seed, draw):
    texts = [*texts, *(f"other {n}" for n in range(60))]
    (split,), _ = make_splits("items", texts, [None] * len(texts), seed=seed, draw=draw)
    at = [set(map(int, side)) for side in sides(split)]
    assert sorted(i for side in at for i in side) == list(range(len(texts)))
    said = [{plain(texts[i]) for i in side} for side in at]
    assert not (said[0] & said[1] or said[0] & said[2] or said[1] & said[2])


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_on_two_sides_of_any_kind_of_split(kind):
    splits, notes = make_splits(kind, TEXTS, DOMAINS)
    assert len(splits) == (1 if kind == "items" else 3) and not notes
    for split in splits:
        train, validation, test = ({plain(TEXTS[i]) for i in side} for side in sides(split))
        assert train and validation and test
        assert not (train & validation or train & test or validation & test)


def test_newcomers_move_nobody():
    (before,), _ = make_splits("items", TEXTS, DOMAINS, seed=3)
    more = [*TEXTS, *(f"newcomer {n}" for n in range(50))]
    (after,), _ = make_splits("items", more, [*DOMAINS, *["BLM"] * 50], seed=3)
    for one, other in zip(sides(before), sides(after), strict=True):
        assert one.tolist() == [i for i in other if i < len(TEXTS)]


def test_order_moves_nobody():
    (before,), _ = make_splits("items", TEXTS, DOMAINS)
    (after,), _ = make_splits("items", TEXTS[::-1], DOMAINS[::-1])
    assert {TEXTS[i] for i in before.test_i} == {TEXTS[::-1][i] for i in after.test_i}


def test_shares_are_about_what_was_asked():
    texts = [f"{n}" for n in range(20_000)]
    (split,), _ = make_splits("items", texts, [None] * 20_000)
    shares = [len(side) / 20_000 for side in sides(split)]
    # Three standard errors of a share of 20,000 are below 0.01.
    assert shares == pytest.approx([0.7, 0.1, 0.2], abs=0.01)


def test_draws_keep_the_tested_and_change_the_validated():
    (one,), _ = make_splits("items", TEXTS, DOMAINS, draw=0)
    (two,), _ = make_splits("items", TEXTS, DOMAINS, draw=1)
    assert one.test_i.tolist() == two.test_i.tolist()
    assert one.validation_i.tolist() != two.validation_i.tolist()
    (other,), _ = make_splits("items", TEXTS, DOMAINS, seed=1)
    assert one.test_i.tolist() != other.test_i.tolist()


def test_domains_stay_within_and_without():
    domain_i = np.array(DOMAINS)
    for split in make_splits("domains", TEXTS, DOMAINS)[0]:
        assert all(set(domain_i[side]) == {split.name} for side in sides(split))
    for split in make_splits("leave-domain-out", TEXTS, DOMAINS)[0]:
        name = split.name.removeprefix("without ")
        assert split.test_i.tolist() == np.flatnonzero(domain_i == name).tolist()
        assert name not in set(domain_i[split.train_i]) | set(domain_i[split.validation_i])


def test_a_text_of_the_tested_domain_is_not_trained_on_elsewhere():
    texts = [f"text {n}" for n in range(200)]
    texts[150] = "TEXT 3"
    domains = ["a"] * 100 + ["b"] * 100
    first, _ = make_splits("leave-domain-out", texts, domains)[0]
    assert first.name == "without a"
    assert 150 not in {*first.train_i.tolist(), *first.validation_i.tolist()}


def test_small_domains_are_left_out_and_named():
    domains = ["small"] * 20 + ["large"] * 220
    splits, notes = make_splits("domains", TEXTS, domains)
    assert [split.name for split in splits] == ["large"]
    assert notes == ("1 of 2 domains have fewer than 40 different texts and are not tested. First: 'small', 20.",)


@pytest.mark.parametrize(
    ("kind", "domains", "error", "match"),
    [
        ("texts", DOMAINS, UsageError, r"^there is no split 'texts'. Choose one of items, domains, leave-domain-out"),
        ("leave-domain-out", ["BLM"] * 240, TrainError, r"^all items are of one domain, 'BLM': nothing is left"),
        ("domains", [None] * 240, TrainError, r"^no item has a domain"),
        ("domains", [str(n) for n in range(240)], TrainError, r"^no domain has 40 different texts; the largest has 1"),
    ],
)
def test_bad_splits_are_refused(kind, domains, error, match):
    with pytest.raises(error, match=match):
        make_splits(kind, TEXTS, domains)


def test_one_text_cannot_be_split():
    with pytest.raises(TrainError, match=r"^split 'items' has nothing to (test|train) on: 9 items are too few"):
        make_splits("items", ["same"] * 9, [None] * 9)


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(UsageError, match=r"^shares of 0\.8 to test and 0\.2 to validate leave nothing"):
        make_splits("items", TEXTS, DOMAINS, test=0.8, validation=0.2)


@pytest.mark.parametrize("side", ["train_i", "validation_i"])
def test_a_text_on_two_sides_is_refused(side):
    apart = {"train_i": np.array([0]), "validation_i": np.array([1]), "test_i": np.array([3])}
    split = Split("mine", **{**apart, side: np.array([2])})
    with pytest.raises(
        TrainError, match=r"^split 'mine': 1 of 1 texts to test on is also .* First: 'Care ' \(items 3 and 2"
    ):
        check_split(split, ["one", "two", "care", "Care "])
