"""`moral-entropy serve`: check labels and settle conflicts in a browser, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from moral_entropy.cli.flags import Run, read_flag

Port = Annotated[int, Option(min=0, max=65535, metavar="N", help="Port on this machine; any that is free if 0.")]
Open = Annotated[bool, Option("--open", help="Open it in the browser.")]
Who = Annotated[
    str | None, Option(metavar="NAME[,NAME]", help="Who decides; several share the work. Default: your login name.")
]


def serve(run: Run, port: Port = 0, open: Open = False, who: Who = None) -> None:
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
    people = () if who is None else read_flag("--who", who, tuple[str, ...])
    if not people:
        with suppress(OSError, KeyError):
            people = (getpass.getuser(),)

    def ready(address: str) -> None:
        typer.echo(f"open {address}\nstop with Ctrl-C; decisions are kept in {run}")
        if open:
            webbrowser.open(address)

    serve_run(read_run(run), people or ("me",), port=port, ready=ready)
