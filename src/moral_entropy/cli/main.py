"""`moral-entropy`: the commands together, and how every one of them ends.

Exit codes: 0 done, 1 bad data, 2 misuse, 130 Ctrl-C, 143 terminated. Errors are one paragraph on standard error;
`--debug` shows the traceback.
"""

from __future__ import annotations

import atexit
import gc
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from moral_entropy import __version__
from moral_entropy.cli.commands import Commands
from moral_entropy.errors import MoralEntropyError, PriorError, UsageError

DONE, BAD_DATA, MISUSE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

OBJECTS_BETWEEN = 100_000
"""New objects after which Python looks for garbage."""

app = typer.Typer(
    name="moral-entropy",
    cls=Commands,
    help="Annotator votes in; a Bayesian consensus and its entropy out.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Annotator votes in; a Bayesian consensus and its entropy out."""
    if version:
        typer.echo(f"moral-entropy {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit(DONE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was typed and give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Python looks through everything once more before it ends, for nothing: this spares it a third of a second.
    atexit.register(gc.freeze)
    try:
        with _stopping_cleanly(), _collecting_seldom():
            return int(app(given, prog_name="moral-entropy", standalone_mode=False, obj=given) or DONE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if "--debug" in given:
            raise
        print(f"error: {_message(error)}", file=sys.stderr)
        return _exit_code(error)


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that what a run has begun is cleared away."""

    def stop(_signal: int, _frame: object) -> None:
        sys.exit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Look for garbage seldom: modules leave none, arrays go by themselves, and looking slows a short run."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _exit_code(error: Exception) -> int:
    if isinstance(error, typer.TyperException):
        return error.exit_code
    return MISUSE if isinstance(error, UsageError | PriorError) else BAD_DATA


def _message(error: Exception) -> str:
    if isinstance(error, typer.TyperException):
        return error.format_message()
    if isinstance(error, MoralEntropyError):
        return str(error)
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return f"the system refused{where}: {error.strerror or error}."
    if isinstance(error, MemoryError):
        return "out of memory. Ask for fewer draws with --draws, or fit parts of the votes with --fit-by."
    first = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {first[0]}. This should not happen; run it again with --debug and report it."
