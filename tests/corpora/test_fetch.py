"""Downloads from a server that truncates, stalls and lies."""

from __future__ import annotations

import hashlib
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from moral_entropy.corpora.fetch import Download, fetch_file, has_hash
from moral_entropy.errors import UsageError, VotesError

FILE = random.Random(6).randbytes(300_000)
SHA256 = hashlib.sha256(FILE).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers each request as the next of `manners` says, the last one for ever."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.manners, self.asked, self.over = ["honest"], [], threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/corpus.csv"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        manners = self.server.manners.pop(0) if len(self.server.manners) > 1 else self.server.manners[0]
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        getattr(self, manners)(start)
        self.close_connection = True

    def log_message(self, *_arguments):
        pass

    def answer(self, body, *, status=200, length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length != "unsaid":
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def part(self, start, end=None):
        """Answer with a part of the file, though the headers promise all that is left."""
        if start >= len(FILE):
            return self.answer(b"", status=416, Content_Range=f"bytes */{len(FILE)}")
        left = {"Content_Range": f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"} if start else {}
        return self.answer(FILE[start:end], status=206 if start else 200, length=len(FILE) - start, **left)

    def honest(self, start):
        self.part(start)

    def truncates(self, start):
        self.part(start, start + 100_000)

    def sends_nothing(self, start):
        self.part(start, start)

    def stalls(self, start):
        self.part(start, start + 50_000)
        self.wfile.flush()
        self.server.over.wait(5)

    def drips(self, start):
        self.part(start, start + 10)
        for at in range(start + 10, start + 400):
            if self.server.over.wait(0.01):
                return
            self.wfile.write(FILE[at : at + 1])
            self.wfile.flush()

    def drips_headers(self, _start):
        for letter in "HTTP/1.1 200 OK\r\nX-Drip: " + "x" * 10_000:
            if self.server.over.wait(0.02):
                return
            try:
                self.wfile.write(letter.encode())
                self.wfile.flush()
            except OSError:
                return

    def drips_for_ever(self, start):
        self.part(start, start + 2_000)
        for at in range(start + 2_000, start + 200_000, 200):
            if self.server.over.wait(0.02):
                return
            try:
                self.wfile.write(FILE[at : at + 200])
                self.wfile.flush()
            except OSError:
                return

    def long_number(self, _start):
        self.answer(b"x", length="9" * 5_000)

    def long_range(self, start):
        self.answer(FILE[start:], status=206, Content_Range=f"bytes {'9' * 5_000}-7/8")

    def to_nowhere(self, _start):
        self.answer(b"", status=302, Location="http://[")

    def ignores_range(self, _start):
        self.answer(FILE)

    def other_range(self, start):
        self.answer(FILE[5:], status=206 if start else 200, Content_Range=f"bytes 5-{len(FILE) - 1}/{len(FILE)}")

    def wrong_bytes(self, _start):
        self.answer(b"\x00" + FILE[1:])

    def too_short(self, _start):
        self.answer(FILE[:1000], length=1000)

    def unsaid_length(self, _start):
        self.answer(FILE, length="unsaid")

    def endless(self, _start):
        self.answer(b"", length="unsaid")
        try:
            while not self.server.over.is_set():
                self.wfile.write(FILE)
        except OSError:
            pass

    def boasts(self, _start):
        self.answer(b"x", length=10**12)

    def half_a_chunk(self, _start):
        self.answer(b"1000\r\n" + FILE[:100], length="unsaid", Transfer_Encoding="chunked")

    def missing(self, _start):
        self.answer(b"no", status=404)

    def busy(self, _start):
        self.answer(b"later", status=503)

    def hangs_up(self, _start):
        self.wfile.flush()

    def to_file(self, _start):
        self.answer(b"", status=302, Location="file:///etc/hostname")

    def to_itself(self, _start):
        self.answer(b"", status=302, Location="/moved.csv")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch_it(*manners, sha256=SHA256, **options):
        server.manners = list(manners)
        wanted = Download(server.url, sha256, **{"timeout": 0.3, "tries": 3, "pause": 0.0, **options})
        return fetch_file(wanted, tmp_path / "corpus.csv")

    return fetch_it


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("manners", ["honest", "unsaid_length"])
def test_a_file_arrives_as_it_is(fetch, tmp_path, manners):
    assert fetch(manners) == len(FILE)
    assert (tmp_path / "corpus.csv").read_bytes() == FILE and left(tmp_path) == ["corpus.csv"]
    assert has_hash(tmp_path / "corpus.csv", SHA256.upper()) and not has_hash(tmp_path / "corpus.csv", "0" * 64)


def test_what_broke_off_goes_on_from_there(fetch, server, tmp_path):
    assert fetch("truncates", "truncates", "honest") == len(FILE)
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert (tmp_path / "corpus.csv").read_bytes() == FILE


@pytest.mark.parametrize("manners", ["stalls", "drips", "half_a_chunk", "hangs_up", "busy", "sends_nothing"])
def test_whatever_breaks_off_is_tried_again(fetch, tmp_path, manners):
    assert fetch(manners, "honest") == len(FILE)
    assert (tmp_path / "corpus.csv").read_bytes() == FILE and left(tmp_path) == ["corpus.csv"]


@pytest.mark.parametrize("manners", ["stalls", "drips", "hangs_up", "busy", "sends_nothing"])
def test_but_not_for_ever(fetch, server, tmp_path, manners):
    with pytest.raises(VotesError, match="broke off 3 times"):
        fetch(manners)
    assert len(server.asked) == 3 and "corpus.csv" not in left(tmp_path)


def test_a_later_run_goes_on_too(fetch, server, tmp_path):
    with pytest.raises(VotesError, match=r"100,000 bytes are in corpus\.csv\.part; run it again"):
        fetch("truncates", tries=1)
    assert left(tmp_path) == ["corpus.csv.part"]
    assert fetch("honest") == len(FILE)
    assert server.asked[-1] == "bytes=100000-" and left(tmp_path) == ["corpus.csv"]


def test_a_part_that_is_whole_is_only_checked(fetch, server, tmp_path):
    (tmp_path / "corpus.csv.part").write_bytes(FILE)
    assert fetch("honest") == len(FILE)
    assert server.asked == [f"bytes={len(FILE)}-"]


@pytest.mark.parametrize("stale", [b"another file's beginning", FILE + b"and more"])
def test_a_stale_part_is_thrown_away(fetch, tmp_path, stale):
    (tmp_path / "corpus.csv.part").write_bytes(stale)
    assert fetch("honest") == len(FILE)
    assert (tmp_path / "corpus.csv").read_bytes() == FILE and left(tmp_path) == ["corpus.csv"]


@pytest.mark.parametrize("manners", [("truncates", "ignores_range"), ("truncates", "other_range", "honest")])
def test_a_server_that_does_not_go_on_sends_all_again(fetch, tmp_path, manners):
    assert fetch(*manners) == len(FILE)
    assert (tmp_path / "corpus.csv").read_bytes() == FILE


@pytest.mark.parametrize("manners", ["wrong_bytes", "too_short"])
def test_another_file_leaves_nothing(fetch, tmp_path, manners):
    with pytest.raises(VotesError, match=f"is not the file that was asked for: .*{SHA256}"):
        fetch(manners)
    assert left(tmp_path) == []


def test_another_file_does_not_replace_the_one_there(fetch, tmp_path):
    (tmp_path / "corpus.csv").write_text("mine")
    with pytest.raises(VotesError):
        fetch("honest", sha256="0" * 64)
    assert (tmp_path / "corpus.csv").read_text() == "mine" and left(tmp_path) == ["corpus.csv"]


@pytest.mark.parametrize("manners", ["honest", "unsaid_length", "endless", "boasts"])
def test_no_more_than_allowed_is_taken(fetch, tmp_path, manners):
    with pytest.raises(VotesError, match=r"200,000 is the most allowed.*--max-size"):
        fetch(manners, max_size=200_000)
    assert left(tmp_path) == []
    if manners in ("honest", "unsaid_length"):
        assert fetch(manners, max_size=len(FILE)) == len(FILE)


def test_headers_that_drip_are_cut_off(fetch):
    with pytest.raises(VotesError, match="broke off 2 times"):
        fetch("drips_headers", tries=2)


def test_a_steady_drip_ends_too_and_keeps_what_came(fetch, tmp_path):
    with pytest.raises(
        VotesError, match=r"is not here after 1 s\. [\d,]+ bytes are in corpus\.csv\.part; run it again"
    ):
        fetch("drips_for_ever", longest=0.6, timeout=0.2)
    assert left(tmp_path) == ["corpus.csv.part"]
    fetch("honest")
    assert (tmp_path / "corpus.csv").read_bytes() == FILE


@pytest.mark.parametrize(
    ("manners", "said"),
    [
        (["long_number"], "is the most allowed"),
        (["truncates", "long_range", "to_nowhere"], "cannot be reached"),
        (["to_nowhere"], "cannot be reached"),
    ],
)
def test_lengths_and_addresses_that_are_none_are_told_in_words(fetch, manners, said):
    with pytest.raises(VotesError, match=said) as error:
        fetch(*manners)
    assert len(str(error.value)) < 600


def test_what_is_not_there_is_said_at_once(fetch, server, tmp_path):
    with pytest.raises(VotesError, match="answered 404 Not Found"):
        fetch("missing")
    assert len(server.asked) == 1 and left(tmp_path) == []


def test_redirections_stay_on_the_web(fetch, tmp_path):
    assert fetch("to_itself", "honest") == len(FILE)
    with pytest.raises(VotesError, match="302"):
        fetch("to_file")


def test_nobody_answers(server, tmp_path):
    server.server_close()
    with pytest.raises(VotesError, match="broke off 2 times"):
        fetch_file(Download(server.url, SHA256, tries=2, pause=0.0), tmp_path / "x")
    assert left(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path, server):
    for path in (tmp_path / "nowhere" / "x", tmp_path):
        with pytest.raises(VotesError, match="cannot write"):
            fetch_file(Download(server.url, SHA256), path)
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "sha256", "max_size"),
    [
        ("file:///etc/hostname", SHA256, 10),
        ("ftp://example.org/x", SHA256, 10),
        ("corpus.csv", SHA256, 10),
        ("https://", SHA256, 10),
        ("https://example.org/x", "abc", 10),
        ("https://example.org/x", "g" * 64, 10),
        ("https://example.org/x", SHA256, 0),
    ],
)
def test_what_cannot_be_fetched_or_checked_is_misuse(url, sha256, max_size):
    with pytest.raises(UsageError):
        Download(url, sha256, max_size=max_size)


def test_how_far_it_is(server, tmp_path):
    shares = []
    fetch_file(Download(server.url, SHA256), tmp_path / "x", advance=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0
