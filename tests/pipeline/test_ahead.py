"""Kernels compiled ahead are those that audits call, and the process that compiles them never stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from numba.core.sigutils import normalize_signature

from moral_entropy import compiled
from moral_entropy.pipeline import ahead

CALLED = """
import json, sys
from numba.core.dispatcher import Dispatcher
import moral_entropy as me
calls = {}
call = Dispatcher._compile_for_args
def noted(self, *arguments, **named):
    calls.setdefault(f"{self.py_func.__module__}.{self.py_func.__name__}", None)
    return call(self, *arguments, **named)
Dispatcher._compile_for_args = noted
votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=4, seed=1).votes
me.audit(votes, draws=20, model=sys.argv[1])
found = []
for name in calls:
    module, _, kernel = name.rpartition(".")
    found += [[name, [str(one) for one in types]] for types in getattr(sys.modules[module], kernel).signatures]
print(json.dumps(found))
"""


def halve(x):
    return x / 2


def double(x):
    return x * 2


def full_name(kernel):
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"


def types_of(text):
    return tuple(map(str, normalize_signature(f"({text},)")[0]))


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_the_usual_kernels_are_those_that_an_audit_calls(model):
    finished = subprocess.run([sys.executable, "-c", CALLED, model], capture_output=True, text=True, check=True)
    called = {(name, tuple(types)) for name, types in json.loads(finished.stdout)}
    listed = [*ahead.fit_kernels(model), *ahead.later_kernels(model)]
    usual = {(full_name(kernel), types_of(types)) for kernel, types in listed}
    assert called == usual


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "kernel_folder", lambda: tmp_path)
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(ahead, "_STARTED", set())
    return tmp_path


def test_what_was_compiled_ahead_is_loaded_by_a_call(folder):
    ahead.compile_from_the_end([(compiled.compiled()(halve), "f8"), (compiled.compiled()(double), "i8")])
    again = compiled.compiled()(halve), compiled.compiled()(double)
    assert (again[0](3.0), again[1](3)) == (1.5, 6)
    assert [sum(kernel.stats.cache_hits.values()) for kernel in again] == [1, 1]


@pytest.fixture
def other():
    """Another process, which waits for a word."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_what_another_process_is_compiling_is_waited_for(folder, other, monkeypatch):
    needed, mark = compiled.compiled()(halve), None
    looks = []

    def look_again(_seconds):
        looks.append(mark.exists())
        if len(looks) == 3:
            mark.unlink()
            ahead.compile_from_the_end([(compiled.compiled()(halve), "f8")])

    monkeypatch.setattr(compiled.time, "sleep", look_again)
    mark = needed._cache._mark(other.pid)
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    with compiled.waiting_for(other):
        assert needed(3.0) == 1.5
    assert looks == [True] * 3
    assert sum(needed.stats.cache_hits.values()) == 1


def test_a_process_that_has_ended_is_not_waited_for(folder, other, monkeypatch):
    monkeypatch.setattr(compiled.time, "sleep", lambda _: pytest.fail("waits for nobody"))
    needed = compiled.compiled()(double)
    with needed._cache.marked():
        needed._cache._mark(os.getpid()).rename(needed._cache._mark(other.pid))
        other.kill()
        other.wait()
        with compiled.waiting_for(other):
            assert needed(3) == 6


def test_a_mark_stands_while_a_kernel_is_compiled(folder, monkeypatch):
    kernel = compiled.compiled()(halve)
    seen = []
    monkeypatch.setattr(kernel, "compile", lambda _: seen.append(kernel._cache._mark(os.getpid()).exists()))
    compiled.compile_for(kernel, "f8")
    assert seen == [True]
    assert not list(folder.rglob("*.compiling"))


@pytest.fixture
def started(monkeypatch):
    """Processes that would compile; here they wait."""
    processes = []

    def start(_model):
        processes.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return processes[-1]

    monkeypatch.setattr(ahead, "_start", start)
    return processes


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_the_second_process_ends_with_the_block(folder, started, error):
    with pytest.raises(error or ZeroDivisionError), ahead.compiling_ahead("mixed"):
        assert started[0].poll() is None
        raise error or ZeroDivisionError
    assert started[0].returncode is not None
    assert started[0].stdin.closed


@pytest.mark.parametrize("reason", ["none", "again", "done", "no folder", "one core", "no compiler"])
def test_nothing_is_started_where_it_would_be_of_no_use(folder, started, monkeypatch, reason):
    if reason == "again":
        ahead._STARTED.add("mixed")
    if reason == "done":
        (folder / f"mixed.{sys.implementation.cache_tag}.done").touch()
    if reason == "no folder":
        monkeypatch.setattr(compiled, "kernel_folder", lambda: None)
    if reason == "one core":
        monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0}, raising=False)
    if reason == "no compiler":
        monkeypatch.setattr(compiled.config, "DISABLE_JIT", True)
    with ahead.compiling_ahead("mixed"):
        assert len(started) == (reason == "none")


WAITS = """
import sys, time
from moral_entropy.pipeline.ahead import _end_with
_end_with(sys.stdin.buffer.read)
time.sleep(60)
"""


def test_it_ends_when_whoever_started_it_is_gone():
    # Its standard input ends at once, as it does when the other process has been killed.
    assert subprocess.run([sys.executable, "-c", WAITS], stdin=subprocess.DEVNULL, timeout=30).returncode == 0


def test_a_program_that_cannot_be_started_is_done_without(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert ahead._start("mixed") is None
