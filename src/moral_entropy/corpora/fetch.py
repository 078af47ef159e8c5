"""Download a file, and check its SHA-256.

Only http and https, and only up to a size and a time. What arrives is written to `<name>.part`, from which a later try
resumes.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.progress import Advance, ignore

MAX_SIZE = 2_000_000_000
BLOCK = 1 << 16
SLOWEST = 1_000
"""Fewer bytes than this within the timeout count as a broken connection."""

LONGEST = 4 * 3600.0
"""Seconds after which a download is given up, however steadily it drips."""

LONGEST_NUMBER = 18
"""Digits of a length that a server may state."""

PASSING = (408, 425, 429, 500, 502, 503, 504)
"""HTTP status codes after which another try may succeed."""


class _Broken(Exception):
    """The connection ended early; another try can resume from what has arrived."""


@dataclass(frozen=True)
class Download:
    """What to download, and its limits.

    Parameters
    ----------
    url
        The address, http or https.
    sha256
        Of the whole file, 64 hexadecimal digits.
    max_size
        Bytes.
    timeout
        Seconds without news from the server before giving up on a try.
    tries
        How often to try; each try resumes where the last one ended.
    pause
        Seconds between two tries.
    longest
        Seconds for all tries together.
    """

    url: str
    sha256: str
    max_size: int = MAX_SIZE
    timeout: float = 30.0
    tries: int = 4
    pause: float = 1.0
    longest: float = LONGEST

    def __post_init__(self) -> None:
        """Refuse what cannot be fetched or checked."""
        parts = urlsplit(self.url)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            msg = f"{self.url!r} is no http or https address. Download it by other means, and name the file."
            raise UsageError(msg)
        if not re.fullmatch(r"[0-9a-fA-F]{64}", self.sha256):
            msg = f"the SHA-256 {self.sha256!r} is not 64 hexadecimal digits. sha256sum prints it for a file you trust."
            raise UsageError(msg)
        if self.max_size < 1:
            msg = f"the largest size is {self.max_size} bytes: choose 1 or more."
            raise UsageError(msg)


def fetch_file(download: Download, path: str | Path, *, advance: Advance = ignore) -> int:
    """Download a file, check it, and put it in place; a file with another SHA-256 is deleted.

    Parameters
    ----------
    download
        What to fetch.
    path
        Where it shall be in the end; its folder must exist. `path` + `.part` holds what has arrived so far.
    advance
        Called with the share that has arrived, if the server says how much there is.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    VotesError
        If the server does not hand out the file, or hands out another one.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    if path.is_dir() or not path.parent.is_dir():
        problem = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        msg = f"cannot write {path}: {problem}. Name a file in a folder that exists."
        raise VotesError(msg)
    try:
        resumed = _size(part) > 0
        _download_with_retries(download, part, advance)
        if _sha256(part) != download.sha256.lower() and resumed:
            # What was there before may have been the start of another file.
            part.unlink()
            _download_with_retries(download, part, advance)
        _check_hash(download, part)
        size = _size(part)
        part.replace(path)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}. Write elsewhere."
        raise VotesError(msg) from error
    return size


def has_hash(path: str | Path, sha256: str) -> bool:
    """Return whether a file exists and has the given SHA-256.

    Parameters
    ----------
    path
        The file.
    sha256
        In hexadecimal digits.

    Examples
    --------
    >>> has_hash("nowhere", "00")
    False
    """
    return Path(path).is_file() and _sha256(Path(path)) == sha256.lower()


def _download_with_retries(download: Download, part: Path, advance: Advance) -> None:
    end = time.monotonic() + download.longest
    for number in range(1, download.tries + 1):
        try:
            _try_once(download, part, advance, end)
            return
        except _Broken as error:
            if time.monotonic() > end:
                msg = (
                    f"{download.url} is not here after {download.longest:,.0f} s. {_size(part):,} bytes are in "
                    f"{part.name}; run it again to go on from there."
                )
                raise VotesError(msg) from error
            if number == download.tries:
                msg = (
                    f"{download.url} broke off {download.tries} times, the last time since {error}. "
                    f"{_size(part):,} bytes are in {part.name}; run it again to go on from there."
                )
                raise VotesError(msg) from error
        time.sleep(download.pause)


def _try_once(download: Download, part: Path, advance: Advance, end: float) -> None:
    have = _size(part)
    if have > download.max_size:
        part.unlink()
        have = 0
    response = _open(download, have)
    if response is None:
        # The server has nothing beyond what is here: either this is all, or it is of another file.
        return
    with response:
        have = _start_of(response, part, have)
        length = _length(response)
        _check_size(download, part, have + (length or 0))
        with part.open("ab" if have else "wb") as file:
            arrived = _copy(download, response, file.write, have, length, advance, end)
    if arrived > download.max_size:
        _check_size(download, part, arrived)
    if length is not None and arrived < have + length:
        msg = f"only {arrived:,} of {have + length:,} bytes came"
        raise _Broken(msg)


class _Patient:
    """A connection that waits for all headers together no longer than its timeout, not for each byte of them."""

    def getresponse(self) -> http.client.HTTPResponse:
        watch = threading.Timer(self.timeout, self._cut)  # type: ignore[attr-defined]
        watch.daemon = True
        watch.start()
        try:
            answer: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
        finally:
            watch.cancel()
        if self.late:
            # What came of the headers may pass for all of them.
            answer.close()
            raise TimeoutError
        return answer

    late = False

    def _cut(self) -> None:
        self.late = True
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]


class _Http(_Patient, http.client.HTTPConnection):
    """Over http."""


class _Https(_Patient, http.client.HTTPSConnection):
    """Over https."""


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Http, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Https, req)


class _RedirectHandler(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _opener() -> urllib.request.OpenerDirector:
    # Not build_opener: it would follow a redirection to a local file or an FTP server.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        _HttpHandler,
        _HttpsHandler,
        _RedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _open(download: Download, have: int) -> Any:
    """Ask for the file from byte `have` on; `None` if there is nothing from there on."""
    headers = {"User-Agent": "moral-entropy", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        return _opener().open(urllib.request.Request(download.url, headers=headers), timeout=download.timeout)
    except urllib.error.HTTPError as error:
        with error:
            return _answer(download, error, have)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        # A ValueError: an address to go on to that is none.
        reason = getattr(error, "reason", error)
        if isinstance(reason, (OSError, http.client.HTTPException)) and not _is_final(reason):
            raise _Broken(_reason(reason)) from error
        msg = f"{download.url} cannot be reached: {_reason(reason)}. Check the address and the connection."
        raise VotesError(msg) from error


def _answer(download: Download, error: urllib.error.HTTPError, have: int) -> None:
    if error.code == 416 and have:
        return
    if error.code in PASSING:
        msg = f"the server answered {error.code} {error.reason}"
        raise _Broken(msg)
    msg = f"{download.url} answered {error.code} {error.reason}. Check the address; does it need a login?"
    raise VotesError(msg)


def _is_final(reason: BaseException) -> bool:
    """Return whether another try is useless: a bad address, an unknown host, a certificate that does not fit."""
    import ssl

    return isinstance(reason, (http.client.InvalidURL, socket.gaierror, ssl.SSLCertVerificationError))


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "nothing came in time"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _start_of(response: Any, part: Path, have: int) -> int:
    """Return the byte that the answer starts at: 0 if the server sends the whole file, whatever was asked."""
    if response.status != 206:
        return 0
    sent = response.headers.get("Content-Range", "")
    said = re.match(rf"bytes (\d{{1,{LONGEST_NUMBER}}})-", sent)
    if said is None or int(said[1]) != have:
        # A server that cannot go on from somewhere is asked for the whole file next.
        part.unlink(missing_ok=True)
        msg = f"the server sent {sent!r} when asked for all from byte {have:,} on"
        raise _Broken(msg)
    return have


def _length(response: Any) -> int | None:
    said = response.headers.get("Content-Length", "")
    # A number of thousands of digits is more than is allowed, whatever it is.
    return int(said[: LONGEST_NUMBER + 1]) if said.isdecimal() else None


def _check_size(download: Download, part: Path, size: int) -> None:
    if size > download.max_size:
        part.unlink(missing_ok=True)
        msg = (
            f"{download.url} has {size:,} bytes or more, and {download.max_size:,} is the most allowed. "
            "Allow more with max_size (CLI: --max-size 5GB)."
        )
        raise VotesError(msg)


def _copy(
    download: Download,
    response: Any,
    write: Callable[[bytes], Any],
    have: int,
    length: int | None,
    advance: Advance,
    end: float,
) -> int:
    """Write what arrives until it ends or is too much; return how many bytes there are now."""
    arrived, since, mark = have, time.monotonic(), have
    while arrived <= download.max_size:
        try:
            block = response.read1(BLOCK)
        except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
            raise _Broken(_reason(error)) from error
        if not block:
            break
        write(block)
        arrived += len(block)
        if length:
            advance(min(1.0, arrived / (have + length)))
        if time.monotonic() - since > download.timeout:
            if arrived - mark < SLOWEST:
                msg = f"only {arrived - mark:,} bytes came in {download.timeout:g} s"
                raise _Broken(msg)
            since, mark = time.monotonic(), arrived
        if time.monotonic() > end:
            msg = f"{download.longest:,.0f} s are over"
            raise _Broken(msg)
    return arrived


def _check_hash(download: Download, part: Path) -> None:
    found = _sha256(part)
    if found != download.sha256.lower():
        size = _size(part)
        part.unlink(missing_ok=True)
        msg = (
            f"{download.url} is not the file that was asked for: its {size:,} bytes have the SHA-256 {found}, "
            f"not {download.sha256.lower()}. Nothing was kept. Check both with the publisher's page."
        )
        raise VotesError(msg)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
