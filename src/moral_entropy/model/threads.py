"""Threads: how many there may be, and work in blocks that does not depend on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any


def available_cores() -> int:
    """Return the number of cores this process may use; all of them where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def over_blocks(run: Callable[[int, int], None], n_blocks: int, threads: int | None = None, *, grain: int = 1) -> None:
    """Call `run(first, last)` on ranges of blocks that cover all of them, in threads where that helps.

    Parameters
    ----------
    run
        Does blocks `first` to `last`; its result must not depend on the thread.
    n_blocks
        How many blocks there are.
    threads
        At most this many threads; all cores by default.
    grain
        Ranges per thread: more of them balance the load, and let an interrupt through sooner.
    """
    if n_blocks <= 1 or threads == 1:
        for block in range(n_blocks):
            run(block, block + 1)
        return
    n_threads = min(n_blocks, threads or available_cores())
    n_ranges = min(n_blocks, n_threads * grain)
    edges = [n_blocks * t // n_ranges for t in range(n_ranges + 1)]
    pool = ThreadPoolExecutor(n_threads)
    try:
        list(pool.map(run, edges[:-1], edges[1:]))
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread: its own threads wait for each other by keeping cores busy, eight times as long."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    # Late, and after SciPy: what is loaded later is not found.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
