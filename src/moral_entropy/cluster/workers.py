"""Workers of a Dask cluster: connecting, running tasks, and errors when workers or scheduler are gone.

Every task can be run again from its arguments, so that the loss of a worker changes no digit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from moral_entropy import __version__
from moral_entropy.errors import ClusterError, MissingExtraError, MoralEntropyError
from moral_entropy.workers import Workers, same_value

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
"""The address that stands for a cluster on this machine."""

BYTES_AT_ONCE = 4_000_000
"""Most bytes that are sent in one task; Dask warns about more than 10 million."""

PATIENCE = 60.0
"""Seconds without any worker, or without the scheduler, after which a run gives up."""

CONNECT = 10.0
"""Seconds to wait for a scheduler to answer."""

POLL = 2.0


@contextmanager
def connected(address: str) -> Iterator[DaskWorkers]:
    """Connect to a scheduler, or start workers on this machine; disconnect or stop them at the end.

    Parameters
    ----------
    address
        Such as "tcp://scheduler:8786", or "local" for one worker per core on this machine.
    """
    _need_dask()
    _silence_dask()
    with _local_scheduler() if address == LOCAL else _same(address) as where, _client(where) as client:
        workers = DaskWorkers(client)
        workers.check_version()
        yield workers


def _need_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        msg = "a cluster needs Dask distributed"
        raise MissingExtraError(msg, "cluster") from error


def _silence_dask() -> None:
    """Hide Dask's log: the run continues after the loss of a worker, or ends with an error of its own."""
    import distributed  # noqa: F401

    for name in ("distributed", *filter(lambda name: name.startswith("distributed."), logging.root.manager.loggerDict)):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _same(address: str) -> Iterator[str]:
    yield address


@contextmanager
def _local_scheduler() -> Iterator[str]:
    from distributed import LocalCluster

    from moral_entropy.consensus.threads import available_cores

    with LocalCluster(
        n_workers=available_cores(),
        threads_per_worker=1,
        # Nothing but this machine can connect. Dask asks for a port of its own in any case: a free one, without pages.
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as cluster:
        yield str(cluster.scheduler_address)


@contextmanager
def _client(address: str) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        msg = (
            f"no Dask scheduler answers at {address!r}. Start one with: dask scheduler, and workers with: "
            "dask worker tcp://HOST:8786; or use this machine's cores: --cluster local."
        )
        raise ClusterError(msg) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT)


def worker_version() -> str:
    """Return the version of this package on a worker."""
    return __version__


@dataclass(frozen=True, eq=False)
class DaskWorkers(Workers):
    """Run tasks on the workers of a Dask cluster, through a client.

    Parameters
    ----------
    client
        A connected Dask client.
    patience
        Seconds without any worker or scheduler after which to give up.
    address
        Where the scheduler is, or was.
    """

    client: Client
    patience: float = PATIENCE

    address: str = field(init=False, default="?")

    def __post_init__(self) -> None:
        """Remember where the scheduler is: once it is gone, the client no longer knows."""
        scheduler = getattr(self.client, "scheduler", None)
        if scheduler is not None:
            object.__setattr__(self, "address", str(scheduler.address))

    @property
    def threads_per_task(self) -> int:
        """One: Dask runs several tasks at the same time."""
        return 1

    @property
    def n_threads(self) -> int:
        """Number of tasks the workers can run at once."""
        return max(1, int(sum(self.client.nthreads().values())))

    def check_version(self) -> None:
        """Wait for the first worker, and check that every worker has the same version of this package."""
        self.fetch(self.ask(worker_version))
        there: dict[str, str] = self.client.run(worker_version, on_error="ignore")
        others = {worker: version for worker, version in there.items() if version != __version__}
        if others:
            first = min(others)
            msg = (
                f"{len(others)} of {len(there)} workers have another moral-entropy than this machine ({__version__}). "
                f"First: {first} has {others[first]}. Install the same on all."
            )
            raise ClusterError(msg)

    def ask(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        """Submit one task to any worker; its arguments may be handles of other results."""
        return self.client.submit(work, *given, key=f"{work.__name__}-{uuid4().hex}", pure=False)

    def send(self, value: Any) -> Future[Any]:
        """Send a large value to all workers, once: large arrays in pieces, as tasks that can be repeated."""
        if isinstance(value, np.ndarray) and value.nbytes > BYTES_AT_ONCE:
            rows = max(1, int(len(value) * BYTES_AT_ONCE / value.nbytes))
            pieces = [self.ask(same_value, value[at : at + rows]) for at in range(0, len(value), rows)]
            return self.ask(_joined, *pieces)
        large = _large_fields(value)
        if large:
            without = replace(value, **{name: array[:0] for name, array in large.items()})
            return self.ask(_with_fields, without, list(large), *map(self.send, large.values()))
        return self.ask(same_value, value)

    def fetch(self, future: Future[Any]) -> Any:
        """Wait for a result as long as there is a scheduler and a worker; return its value."""
        unreachable_since = None
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                unreachable_since = (unreachable_since or time.monotonic()) if self._is_unreachable() else None
                if unreachable_since is not None and time.monotonic() - unreachable_since > self.patience:
                    raise self._gone() from None
            except MoralEntropyError:
                raise
            except Exception as error:
                raise self._explained(error) from error

    def _is_unreachable(self) -> bool:
        if self.client.status != "running":
            return True
        try:
            return not self.client.scheduler_info(n_workers=-1)["workers"]
        except Exception:
            return True

    def _gone(self) -> ClusterError:
        msg = (
            f"the Dask cluster at {self.address} is gone: for {self.patience:.0f} s there was no scheduler or no "
            "worker. Nothing was written. Start it again, and run the same command."
        )
        return ClusterError(msg)

    def _explained(self, error: Exception) -> Exception:
        from asyncio import CancelledError as LoopCancelled
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        if isinstance(error, KilledWorker):
            msg = (
                f"{error.allowed_failures + 1} workers in a row died of the same part, for want of memory most likely: "
                f"{error.last_worker.address if error.last_worker else '?'} was the last. Give workers more memory, or "
                "make parts smaller (--part-rows)."
            )
            return ClusterError(msg)
        if isinstance(error, CancelledError | LoopCancelled | CommClosedError | OSError):
            msg = (
                f"the Dask scheduler at {self.address} is gone ({type(error).__name__}). Nothing was written. "
                "Start it again, and run the same command."
            )
            return ClusterError(msg)
        return error


def _joined(*pieces: Any) -> Any:
    return np.concatenate(pieces)


def _large_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that hold large arrays, by name."""
    held = {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else {}
    return {name: one for name, one in held.items() if isinstance(one, np.ndarray) and one.nbytes > BYTES_AT_ONCE}


def _with_fields(value: Any, names: Sequence[str], *arrays: Any) -> Any:
    return replace(value, **dict(zip(names, arrays, strict=True)))
