"""`moral-entropy`: the command that was typed, and how every one of them ends.

Exit codes: 0 done, 1 bad data, 2 misuse, 130 Ctrl-C, 143 terminated; `check` has more of its own. Errors are one
paragraph on standard error; `--debug` shows the traceback. Whoever reads our output may stop reading: that is no error.
Imports little: signals are heard before anything large is loaded.
"""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from moral_entropy.stopping import begin_listening, clear_unfinished, end_listening, restore_signals

DONE, BAD_DATA, MISUSE = 0, 1, 2
DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was typed and return its exit code.

    Parameters
    ----------
    arguments
        What follows the name of the program; by default what was typed, and then signals end the process at once when
        the command is done.
    """
    typed, code, error = list(sys.argv[1:] if arguments is None else arguments), DONE, None
    debug = DEBUG in typed
    typed = [word for word in typed if word != DEBUG]
    try:
        begin_listening()
        for stream in (sys.stdout, sys.stderr):
            # Spell out what a console cannot show, as those of Windows often cannot, instead of failing on it.
            if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
                stream.reconfigure(errors="backslashreplace")
        # Late: from here on, whatever takes time can be stopped.
        from moral_entropy.cli.commands import make_app

        app, line = make_app(typed)
        command = shlex.join(["moral-entropy", *typed])
        code = int(app(line, prog_name="moral-entropy", standalone_mode=False, obj=command) or DONE)
    except BaseException as raised:
        error = raised
    stopped = end_listening()
    clear_unfinished()
    try:
        if stopped is not None:
            return stopped
        if isinstance(error, KeyboardInterrupt):
            return 130
        if isinstance(error, BrokenPipeError) or isinstance(getattr(error, "__context__", None), BrokenPipeError):
            silence_stdout()
        elif error is not None:
            if debug or not isinstance(error, Exception):
                raise error
            code = _report_error(error, typed)
        with suppress(OSError, ValueError):
            try:
                sys.stdout.flush()
            except BrokenPipeError:
                silence_stdout()
        return code
    finally:
        restore_signals(program_ends=arguments is None)
        if arguments is None:
            # The program ends: Python need not look through 160,000 objects for garbage before it lets them go.
            gc.freeze()


def silence_stdout() -> None:
    """Send what is still to be printed nowhere: whoever read standard output has stopped, as `head` does."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(error: Exception, typed: Sequence[str]) -> int:
    """Say what went wrong in one paragraph, and return the exit code of it."""
    import typer

    from moral_entropy.errors import MoralEntropyError, PriorError, UsageError, harmless, shortened

    if isinstance(error, typer.TyperException):
        text = error.format_message()
    elif isinstance(error, MoralEntropyError):
        text = str(error)
    elif isinstance(error, OSError):
        from moral_entropy.files import what_to_do

        where = f" {error.filename}" if error.filename else ""
        text = f"the system refused{where}: {error.strerror or error}. {what_to_do(error)}"
    elif isinstance(error, MemoryError):
        text = "out of memory. Ask for fewer draws with --draws, or fit parts of the votes with --fit-by."
    else:
        first = str(error).strip().splitlines() or [""]
        text = f"{type(error).__name__}: {first[0]}. {_what_may_be_wrong(typed)}"
    print(f"error: {harmless(shortened(text))}", file=sys.stderr)
    misuse = MISUSE if isinstance(error, UsageError | PriorError) else BAD_DATA
    return int(getattr(error, "exit_code", misuse))


def _what_may_be_wrong(typed: Sequence[str]) -> str:
    """Blame the run folder that was typed, if any: a file of it that was changed, or something in it."""
    folder = next((word for word in typed if os.path.isfile(os.path.join(word, "manifest.json"))), None)  # noqa: PTH113, PTH118
    if folder is None:
        return "This should not happen; run it again with --debug and report it."
    from moral_entropy.runs.folder import changed_files

    with suppress(OSError, ValueError):
        if changed := changed_files(folder):
            first = " and ".join(os.path.join(folder, name) for name in changed[:2])  # noqa: PTH118
            return f"{first} was changed after it was written. Run the audit again."
    return (
        f"Something in {folder} is not as an audit writes it, or the mistake is ours. Run the audit again; if that "
        "does not help, run this with --debug and report it."
    )
