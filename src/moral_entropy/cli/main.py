"""`moral-entropy`: the command that was typed, and how every one of them ends.

Exit codes: 0 done, 1 bad data, 2 misuse, 130 Ctrl-C, 143 terminated; `check` has more of its own. Errors are one
paragraph on standard error; `--debug` shows the traceback. Whoever reads our output may stop reading: that is no error.
Imports little: signals are heard before anything large is loaded.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper

from moral_entropy.stopping import LISTENER, clear_unfinished

DONE, BAD_DATA, MISUSE = 0, 1, 2

OBJECTS_BETWEEN = 300_000
"""New objects after which Python looks for garbage: more than a small audit makes, most of them while it loads."""


SHORT = "4"
"""The least that OpenBLAS takes for how long a thread waits before it sleeps: two to the power of that, in cycles."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was typed and return its exit code.

    Parameters
    ----------
    arguments
        What follows the name of the program; by default what was typed, and then signals end the process at once when
        the command is done.
    """
    error: BaseException | None = None
    code, given = DONE, list[str]()
    try:
        LISTENER.begin()
        _print_everything()
        given = list(sys.argv[1:] if arguments is None else arguments)
        code = _run(given, for_good=arguments is None)
        LISTENER.raising = False
    except BaseException as raised:
        # First of all: another signal shall not end the end.
        LISTENER.raising = False
        error = raised
    clear_unfinished()
    stopped = LISTENER.received is not None or isinstance(error, KeyboardInterrupt)
    if stopped:
        code = LISTENER.code
    elif _has_no_reader(error):
        read_no_more()
    elif error is not None:
        code = _tell(error, given)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        read_no_more()
    except (OSError, ValueError):
        pass
    LISTENER.end(for_good=arguments is None)
    return code


def _has_no_reader(error: BaseException | None) -> bool:
    """Whether whoever read standard output has stopped: the error itself, or one that a library made of it."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def read_no_more() -> None:
    """Send what is still to be printed nowhere: whoever read standard output has stopped, as `head` does."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_everything() -> None:
    """Spell out what a console cannot show, as those of Windows often cannot, instead of failing on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")


def _run(given: list[str], *, for_good: bool) -> int:
    # Python looks through everything once more before it ends, for nothing: this spares it a third of a second.
    atexit.register(gc.freeze)
    with _collecting_seldom(for_good=for_good):
        # Late: from here on, whatever takes time can be stopped.
        from moral_entropy.cli.commands import app
        from moral_entropy.cli.later import load_unused_later

        if for_good:
            load_unused_later()
            # OpenBLAS's threads keep cores busy while they wait for work: a third of what cores did in a small audit.
            os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", SHORT)
        return int(app(given, prog_name="moral-entropy", standalone_mode=False, obj=given) or DONE)


@contextmanager
def _collecting_seldom(*, for_good: bool) -> Iterator[None]:
    """Look for garbage seldom: modules leave none, arrays go by themselves, and looking slows a short run.

    For good where the process ends with the command: Python would look as soon as that is taken back.
    """
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN)
    try:
        yield
    finally:
        if not for_good:
            gc.set_threshold(*before)


def _tell(error: BaseException, given: Sequence[str]) -> int:
    """Say what went wrong in one paragraph, and return the exit code of it."""
    if "--debug" in given or not isinstance(error, Exception):
        LISTENER.end(for_good=False)
        raise error
    from moral_entropy.errors import harmless, shortened

    print(f"error: {harmless(shortened(_message(error, given)))}", file=sys.stderr)
    return _exit_code(error)


def _exit_code(error: Exception) -> int:
    from moral_entropy.errors import PriorError, UsageError

    own = getattr(error, "exit_code", None)
    if own is not None:
        return int(own)
    return MISUSE if isinstance(error, UsageError | PriorError) else BAD_DATA


def _message(error: Exception, given: Sequence[str] = ()) -> str:
    import typer

    from moral_entropy.errors import MoralEntropyError

    if isinstance(error, typer.TyperException):
        return error.format_message()
    if isinstance(error, MoralEntropyError):
        return str(error)
    if isinstance(error, OSError):
        from moral_entropy.files import what_to_do

        where = f" {error.filename}" if error.filename else ""
        return f"the system refused{where}: {error.strerror or error}. {what_to_do(error)}"
    if isinstance(error, MemoryError):
        return "out of memory. Ask for fewer draws with --draws, or fit parts of the votes with --fit-by."
    first = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {first[0]}"
    if folder := next((word for word in given if _has_manifest(word)), None):
        if changed := _changed_files(folder):
            return f"{changed} was changed after it was written and cannot be used ({what}). Run the audit again."
        return (
            f"{what}. Something in {folder} is not as an audit writes it, or the mistake is ours. Run the audit again; "
            "if that does not help, run this with --debug and report it."
        )
    return f"{what}. This should not happen; run it again with --debug and report it."


def _changed_files(folder: str) -> str:
    """Name the files of a run folder that somebody changed, the first two of them; empty if there are none."""
    from pathlib import Path

    from moral_entropy.runs.manifest import changed_files

    try:
        found = changed_files(Path(folder))
    except (OSError, ValueError):
        return ""
    first = " and ".join(os.path.join(folder, name) for name in found[:2])  # noqa: PTH118
    return f"{first} (and {len(found) - 2} more)" if len(found) > 2 else first


def _has_manifest(word: str) -> bool:
    import os.path

    return os.path.isfile(os.path.join(word, "manifest.json"))  # noqa: PTH113, PTH118
