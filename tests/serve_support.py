"""A served run as a process of its own, and a client that asks it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from unittest import mock
from urllib.parse import urlencode

COMMAND = "import sys; from moral_entropy.cli.main import main; sys.exit(main())"
WAIT = 120
"""Seconds after which a server that says nothing is broken, however loaded the machine is."""


class Client:
    """Asks a server at the address that it told."""

    def __init__(self, run, address):
        self.run, self.address = run, address
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", address).groups()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, body=None, *, method=None, who=None, **headers):
        """Return status, headers and text of one request; the headers of a page of ours unless told otherwise."""
        cookies = f"moral_entropy_{self.port}={self.token}" + (f"; moral_entropy_who={who}" if who else "")
        sent = {"Host": f"127.0.0.1:{self.port}", "Cookie": cookies, "Origin": self.origin}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=WAIT)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method or ("GET" if body is None else "POST"), path, text, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def json(self, path, body=None, **about):
        status, _, text = self.ask(path, body, **about)
        assert status == 200, text
        return json.loads(text)

    def view(self, name, *, who=None, **query):
        return self.json(f"/{name}.json?{urlencode(query)}", who=who)


class Server(Client):
    """One `moral-entropy serve`, as a process on a free port."""

    def __init__(self, run, *flags):
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "serve", str(run), *flags], stdout=subprocess.PIPE, text=True
        )
        super().__init__(run, self.process.stdout.readline().split()[1])

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()


@contextmanager
def serving(run, *flags):
    server = Server(run, *flags)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(WAIT)
        server.process.stdout.close()


@contextmanager
def serving_here(run, *names):
    """Serve a run from a thread of this process: for what is asked and answered, not for how a server ends."""
    import uvicorn

    from moral_entropy.runs.run import read_run
    from moral_entropy.serve.app import serve

    addresses, servers = Queue(), []

    class Kept(uvicorn.Server):
        def __init__(self, *settings):
            super().__init__(*settings)
            servers.append(self)

    with mock.patch("uvicorn.Server", Kept):
        about = {"port": 0, "ready": addresses.put}
        thread = Thread(target=serve, args=(read_run(run), names or ("me",)), kwargs=about, daemon=True)
        thread.start()
        address = addresses.get(timeout=WAIT)
    try:
        yield Client(run, address)
    finally:
        servers[0].should_exit = True
        thread.join(WAIT)
        assert not thread.is_alive()


def decisions_of(run):
    path = run / "decisions.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
