"""Bytes of a text file → UTF-8, whatever wrote them.

A byte-order mark decides; bytes without one are UTF-8, else UTF-16 if every other byte is zero, else Windows-1252.
What is guessed goes into the log.
"""

from __future__ import annotations

import codecs
import re

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.source import ReadingLog

UTF8_BOM = codecs.BOM_UTF8
# The mark of UTF-32 begins with that of UTF-16, and goes first.
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
UTF8_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
BLOCK = 1 << 24
HEAD = 512


def to_utf8(data: bytes, name: str, log: ReadingLog, asked: str | None = None) -> bytes:
    r"""Return the same text in UTF-8, without a byte-order mark.

    Parameters
    ----------
    data
        Bytes of a whole file.
    name
        Of the file, for errors.
    log
        Where a guess is noted.
    asked
        The encoding that the user named, if any.

    Examples
    --------
    >>> log = ReadingLog()
    >>> to_utf8("caf\xe9".encode("utf-16"), "votes.csv", log).decode(), to_utf8(b"caf\xe9", "votes.csv", log).decode()
    ('café', 'café')
    >>> log.notes[1]
    'the file is not UTF-8 (byte 0xe9 in line 1) and is read as Windows-1252 (--encoding names another).'
    """
    if asked:
        return _decoded_as(data, asked, name)
    if encoding := marked_encoding(data) or _unmarked_utf16(data):
        log.note(f"encoding: {encoding.upper()}.")
        return _decoded_as(data, encoding, name)
    data = data.removeprefix(UTF8_BOM)
    if (at := first_not_utf8(data)) is None:
        return data
    line = data.count(b"\n", 0, at) + 1
    if CONTROL.search(data) or UTF8_LETTER.search(data):
        raise VotesError(_not_text(name, at, data))
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError as error:
        raise VotesError(_not_text(name, at, data)) from error
    log.note(
        f"the file is not UTF-8 (byte 0x{data[at]:02x} in line {line:,}) and is read as Windows-1252 (--encoding names "
        "another)."
    )
    return text.encode()


def checked_utf8(data: bytes, name: str) -> bytes:
    """Return the text of a tool's export in UTF-8, and refuse what needs a guess: tools write UTF-8."""
    if encoding := marked_encoding(data):
        return _decoded_as(data, encoding, name)
    data = data.removeprefix(UTF8_BOM)
    if (at := first_not_utf8(data)) is not None:
        line = data.count(b"\n", 0, at) + 1
        msg = f"{name} is not UTF-8: byte {at:,} (line {line:,}) is 0x{data[at]:02x}. Export it anew."
        raise VotesError(msg)
    return data


def head_to_utf8(head: bytes) -> bytes:
    """Return the beginning of a file in UTF-8, as `to_utf8` would read it; it may be cut off within a letter."""
    if encoding := marked_encoding(head) or _unmarked_utf16(head):
        return head.decode(encoding, errors="ignore").encode(errors="ignore")
    head = head.removeprefix(UTF8_BOM)
    at = first_not_utf8(head)
    if at is None or at >= len(head) - 3:
        return head if at is None else head[:at]
    return head.decode("cp1252", errors="replace").encode()


def marked_encoding(data: bytes) -> str:
    """Return the encoding that a byte-order mark names; empty for none, and for UTF-8."""
    return next((encoding for bom, encoding in BOMS.items() if data.startswith(bom)), "")


def first_not_utf8(data: bytes) -> int | None:
    """Return the position of the first byte that is not UTF-8; None where all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at = 0
    try:
        for at in range(0, len(data), BLOCK):
            decoder.decode(data[at : at + BLOCK], final=at + BLOCK >= len(data))
    except UnicodeDecodeError as error:
        # The decoder may have carried a few bytes over from the block before.
        carried = len(error.object) - len(data[at : at + BLOCK])
        return at - carried + error.start
    return None


def _unmarked_utf16(data: bytes) -> str:
    """Return UTF-16 if nearly every other byte of the beginning is zero, as in Western text without a mark."""
    head = data[:HEAD]
    if b"\x00" not in head or len(head) < 4:
        return ""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = head[first::2].count(0), head[1 - first :: 2].count(0)
        if not others and zeros > 0.7 * len(head[first::2]):
            return encoding
    return ""


def _decoded_as(data: bytes, encoding: str, name: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except LookupError as error:
        msg = f"encoding is {encoding!r}, which Python does not know. Common ones: utf-8, utf-16, cp1252, latin-1."
        raise UsageError(msg) from error
    except (UnicodeError, AssertionError) as error:
        msg = f"{name} is not {encoding.upper()} throughout. Save it as UTF-8, or name another encoding (--encoding)."
        raise VotesError(msg) from error


def _not_text(name: str, at: int, data: bytes) -> str:
    line = data.count(b"\n", 0, at) + 1
    return (
        f"{name} is neither UTF-8 nor Windows-1252: byte {at:,} (line {line:,}) is 0x{data[at]:02x}. Save it as UTF-8, "
        'or name its encoding with encoding="cp1250" or the like (CLI: --encoding cp1250).'
    )
