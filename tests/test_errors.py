"""Errors can be read to their end, and do nothing to a terminal but to be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.errors import LONGEST_ERROR, VotesError, harmless


@given(st.text(max_size=50), st.integers(1, 20_000))
def test_an_error_is_never_endless_and_ends_with_its_fix(name, times):
    told = str(VotesError(f"there is no column {name * times!r}. Name it with --label."))
    assert len(told) <= LONGEST_ERROR + 3
    assert told.startswith("there is no column") and told.endswith("Name it with --label.")


@given(st.text())
def test_what_is_printed_moves_no_cursor_and_turns_no_text_around(text):
    shown = harmless(text)
    assert not any((ord(letter) < 32 and letter not in "\n\t") or 127 <= ord(letter) < 160 for letter in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2028")
    shown.encode()
    if text.isprintable():
        assert shown == text
