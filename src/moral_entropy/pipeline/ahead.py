"""Kernels are compiled ahead, in a second process, while the first audit reads votes and compiles the others.

The second process begins with the longest, then goes from the last that an audit needs to the first. Both keep what
they compile in the cache folder, where the other finds it. The first process waits for what the second is compiling,
which is less than compiling it too; nothing depends on the second: without it the audit takes longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Kernels = list[tuple[Any, str]]

VOTES = "i8[::1], i4[::1], "
"""Types of: where rows begin, the codes of their votes."""

PAIRS = VOTES + "f8[::1], i8, i8[::1], i8[::1], "
"""Types of: votes, weights, number of labels, where annotators begin, the rows of their votes."""

DRAWS = "f8[:,:,::1], f8[:,:,::1], i8[:,::1], f8[::1], "
"""Types of: probabilities of votes and weights of states by draw, the ends of every state, its share of the first."""


_STARTED: set[str] = set()
"""Models for which this process has started another."""


@contextmanager
def compiling_ahead(model: str) -> Iterator[None]:
    """Compile what an audit under a model usually needs, in a second process, as long as the block lasts.

    Nothing is started a second time, where everything has been compiled before, where nothing can be kept, or on a
    single core.
    """
    process = _start(model) if _worthwhile(model) else None
    if process is None:
        yield
        return
    from moral_entropy.compiled import waiting_for

    try:
        with waiting_for(process):
            yield
    finally:
        process.kill()
        process.communicate()


def _worthwhile(model: str) -> bool:
    """Return whether a second process is of use; if so, note that it was started."""
    from moral_entropy.compiled import config

    several = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    done = _done(model)
    if several == 1 or config.DISABLE_JIT or model in _STARTED or done is None or done.exists():
        return False
    _STARTED.add(model)
    return True


def _done(model: str) -> Path | None:
    """Return the path of an empty file that tells that the kernels have been compiled; None where nothing is kept."""
    from moral_entropy.compiled import kernel_folder

    folder = kernel_folder()
    return None if folder is None else folder / f"{model}.{sys.implementation.cache_tag}.done"


def _start(model: str) -> subprocess.Popen[bytes] | None:
    command, nowhere = [sys.executable, "-m", "moral_entropy.pipeline.ahead", model], subprocess.DEVNULL
    with suppress(OSError):
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)
    return None


def fit_kernels(model: str) -> Kernels:
    """List the kernels that a fit calls, in their order, and the types of their arguments; `paper` with two labels."""
    from moral_entropy.consensus import dependence_kernels, draw_kernels, kernels, state_draw_kernels, state_kernels

    first = [
        (kernels.hash_rows, VOTES + "i2[::1], i4[::1], i8, u8[::1]"),
        (kernels.same_rows, VOTES + "i2[::1], i4[::1], i8[::1], i8[::1]"),
        (kernels.count_votes, VOTES + "f8[::1], f8[::1]"),
        (dependence_kernels.shared_pairs, PAIRS + "f8, i8, i8[::1], f8[::1], i8[:,::1], f8[::1]"),
        (dependence_kernels.add_agreement, PAIRS + "i8[::1], i8[::1], i8[::1], i8[::1], f8[:,::1]"),
        (dependence_kernels.rank_one_step, "i8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, b1"),
    ]
    posteriors = (kernels.row_posteriors, VOTES + "i2[::1], i4[::1], f8[:,::1], f8[:,::1], i8, i8, f8[:,::1]")
    if model == "paper":
        return [
            *first,
            (kernels.binary_pass, VOTES + "f8[::1], i2[::1], f8[::1], f8, i8[::1], i8, i8, f8[:,::1], f8[:,::1]"),
            posteriors,
            (kernels.add_missing_information, VOTES + "f8[::1], f8[:,::1], f8[:,:,::1], f8[:,::1]"),
            (
                draw_kernels.binary_summaries,
                VOTES + "i2[::1], f8[:,::1], f8[::1], f8, f8, i8, i8, f8[:], f8[::1], f8[::1], f8[::1]",
            ),
        ]
    rows = VOTES + "f8[::1], i2[::1], i4[::1], f8[:,::1], f8[:,::1], "
    return [
        *first,
        (state_kernels.mixed_pass, rows + "i8[::1], i8, i8, f8[:,:,::1], f8[:,:,::1]"),
        posteriors,
        (state_kernels.take_state_information, rows + "f8[:,:,::1], i8[::1], i8, i8, f8[:,::1]"),
        (
            state_draw_kernels.mixed_summaries,
            VOTES + "i2[::1], i4[::1], " + DRAWS + "f8[::1], i8, f8, f8, i8, i8, "
            "f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1]",
        ),
    ]


def later_kernels(model: str) -> Kernels:
    """List the kernels of what comes after the fit in the same way: the audit of rules and the checks."""
    from moral_entropy.consensus import dependence_kernels, tempering_kernels

    residuals = (
        dependence_kernels.add_residuals,
        PAIRS + "i8[::1], f8[:,::1], f8[:,:,::1], i8[::1], i8[::1], i8[::1], f8[:,::1]",
    )
    scores = (
        tempering_kernels.score_rows,
        "i8[::1], i4[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, i8, i8, f8[::1], f8[::1]",
    )
    if model == "paper":
        return [
            residuals,
            (tempering_kernels.chances_without_item, VOTES + "f8[:,::1], f8[:,::1], f8[:,::1], i8, i8, f8[:,::1]"),
            scores,
        ]
    return [
        residuals,
        scores,
    ]


def compile_from_the_end(usual: Kernels) -> None:
    """Compile kernels, the last first; those that somebody has compiled by then are only loaded."""
    from moral_entropy.compiled import compile_for

    for kernel, types in reversed(usual):
        compile_for(kernel, types)


def main(model: str) -> None:
    """Compile ahead, and end at once when the process that asked for it ends."""
    _end_with(sys.stdin.buffer.read)
    [*first, longest], [next_longest, *last] = fit_kernels(model), later_kernels(model)
    # The first process has as much to compile until it needs the longest, and then takes the next longest.
    compile_from_the_end([*last, longest])
    from moral_entropy.report.html import vega_bundle

    vega_bundle()
    compile_from_the_end([*first, next_longest])
    if done := _done(model):
        done.touch()


def _end_with(wait: Callable[[], object]) -> None:
    """End this process as soon as `wait` returns: here standard input, which ends with whoever holds its other end."""

    def end() -> None:
        wait()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
