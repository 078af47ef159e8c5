"""Workers: run functions on the parts that votes lie in.

A task is a plain function of a part. `Here` runs it at once, in this process; `cluster.workers` sends it to a Dask
cluster. Results stay where they are made until they are added up in a fixed order, or fetched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

FAN_IN = 8
"""Number of results joined in one task."""


class Workers(ABC):
    """Run tasks on parts. `ask` returns a handle of a result; `fetch` returns its value."""

    @property
    @abstractmethod
    def n_threads(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    @abstractmethod
    def threads_per_task(self) -> int | None:
        """Threads that one task may use; None for as many as there are cores."""

    @abstractmethod
    def ask(self, work: Callable[..., Any], *given: Any) -> Any:
        """Submit one task; its arguments may be handles of other results."""

    @abstractmethod
    def fetch(self, result: Any) -> Any:
        """Wait for a result, and return its value."""

    def each(self, work: Callable[..., Any], parts: Sequence[Any], *given: Any) -> list[Any]:
        """Submit the same task for every part."""
        return [self.ask(work, part, *given) for part in parts]

    def send(self, value: Any) -> Any:
        """Send a large value to all workers, once; return its handle."""
        return self.ask(same_value, value)

    def total(self, addends: Sequence[Any]) -> Any:
        """Add up results, which may be arrays or tuples of them, in a fixed order."""
        return self.joined(added, addends)

    def joined(self, join: Callable[..., Any], results: Sequence[Any]) -> Any:
        """Join results, a few at a time and in a fixed order; a single one is not joined."""
        level = list(results)
        while len(level) > 1:
            level = [self.ask(join, *level[at : at + FAN_IN]) for at in range(0, len(level), FAN_IN)]
        return self.fetch(level[0])

    def fetch_all(self, results: Sequence[Any]) -> list[Any]:
        """Wait for several results."""
        return [self.fetch(result) for result in results]

    def in_order(self, work: Callable[..., Any], parts: Sequence[Any], *given: Any) -> Iterator[Any]:
        """Yield the results part by part; only a few are computed ahead, so that they are never all held here."""
        ahead = 2 * self.n_threads
        asked = self.each(work, parts[:ahead], *given)
        for at in range(len(parts)):
            yield self.fetch(asked.pop(0))
            asked += self.each(work, parts[at + ahead : at + ahead + 1], *given)

    def stream(self, work: Callable[..., Iterable[Any]], parts: Sequence[Any], *given: Any) -> Iterator[Any]:
        """Yield the results of `work`, a generator, part by part."""
        for several in self.in_order(as_list, parts, work, *given):
            yield from several


class Here(Workers):
    """Run every task at once, in this process and with all its cores.

    Examples
    --------
    >>> Here().total(Here().each(sum, [[1, 2], [3]]))
    array(6)
    """

    @property
    def n_threads(self) -> int:
        """One task at a time."""
        return 1

    @property
    def threads_per_task(self) -> None:
        """As many threads as there are cores."""
        return None

    def ask(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run one task now."""
        return work(*given)

    def fetch(self, result: Any) -> Any:
        """Return the result: it is a value already."""
        return result

    def stream(self, work: Callable[..., Iterable[Any]], parts: Sequence[Any], *given: Any) -> Iterator[Any]:
        """Yield the results of `work`, a generator, part by part as they are made; none is held."""
        for part in parts:
            yield from work(part, *given)


def same_value(value: Any) -> Any:
    """Return the value: a task that holds it."""
    return value


def as_list(part: Any, work: Callable[..., Iterable[Any]], *given: Any) -> list[Any]:
    """Return all results of `work`, a generator, on one part as a list."""
    return list(work(part, *given))


def added(first: Any, *others: Any) -> Any:
    """Add up arrays, or tuples of them member by member."""
    if isinstance(first, tuple):
        return tuple(added(*members) for members in zip(first, *others, strict=True))
    total = np.array(first)
    for other in others:
        total += other
    return total
