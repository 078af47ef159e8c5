"""`moral-entropy serve`: check labels and settle conflicts in a browser, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Run, read_flag

Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="Port on this machine; any that is free if 0.")]
Open = Annotated[bool, Option("--open", help="Open it in the browser.")]
People = Annotated[str | None, Option("--who", metavar="NAME[,NAME]", help="Who decides; else your login name.")]


def serve(run: Run, port: Port = 0, open: Open = False, people: People = None) -> None:
    """Check labels blind, settle conflicts and look at items, in a browser on this machine.

    Decisions go to decisions.jsonl in the run folder; the run itself is never changed. Stop with Ctrl-C.

    Example: moral-entropy serve run/ --open --who anna,bert
    """
    # Late, so that --help answers at once.
    import getpass
    import webbrowser
    from contextlib import suppress

    from moral_entropy.runs.run import read_run
    from moral_entropy.serve.app import need_extra
    from moral_entropy.serve.app import serve as serve_run

    need_extra()
    deciders = () if people is None else read_flag("--who", people, tuple[str, ...])
    if not deciders:
        with suppress(OSError, KeyError):
            deciders = (getpass.getuser(),)

    def ready(address: str) -> None:
        typer.echo(f"open {address}\nstop with Ctrl-C; decisions are kept in {run}")
        if open:
            webbrowser.open(address)

    serve_run(read_run(run), deciders or ("me",), port=port, ready=ready)
