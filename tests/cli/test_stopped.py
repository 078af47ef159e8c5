"""A run that is stopped ends with the right code and leaves no run folder: real processes, real signals."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moral_entropy.cli.main import main
from moral_entropy.corpora.simulate import write_simulated
from moral_entropy.runs.folder import read_manifest, read_table

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    write_simulated(path, n_items=10_000, n_annotators=30, votes_per_item=4, seed=2)
    return path


@pytest.fixture(scope="module")
def few_votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("few-votes") / "votes.parquet"
    write_simulated(path, n_items=200, n_annotators=5, votes_per_item=3, seed=2)
    return path


def begin(votes, target, *flags):
    command = [sys.executable, "-m", "moral_entropy", "audit", str(votes), "-o", str(target), "--draws", "500", *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process, appears):
    while process.poll() is None and not appears():
        time.sleep(0.005)


def partials(target):
    return list(target.parent.glob(".*partial*"))


def test_a_polite_stop_leaves_nothing(votes, tmp_path):
    stop, code = CODES[0]
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: partials(target))
    process.send_signal(stop)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (code, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_no_run_folder_and_the_next_run_sweeps(votes, few_votes, tmp_path):
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: partials(target))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not target.exists() and len(partials(target)) == 1
    assert main(["audit", str(few_votes), "-o", str(target), "--draws", "20", "--no-report", "--quiet"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_kill_while_files_are_written_leaves_all_or_nothing(votes, tmp_path):
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: target.exists() or list(tmp_path.glob(".*partial*/items.parquet")))
    process.kill()
    process.communicate()
    if target.exists():
        assert read_manifest(target)["converged"]
        assert read_table(target, "items").height == 10_000


# Each sends its own process the signal at one moment; `stop()` does, whatever thread calls it.
MOMENTS = {
    "in an import": """
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "numba.core.typing":
                    stop()
        sys.meta_path.insert(0, Finder())
    """,
    "in the first import of all": """
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "typer":
                    stop()
        sys.meta_path.insert(0, Finder())
    """,
    "in a compilation": """
        from numba.core import event
        class Listener(event.Listener):
            def on_start(self, happened):
                stop()
            def on_end(self, happened):
                pass
        event.register("numba:compile", Listener())
    """,
    "in a callback of Polars": """
        import moral_entropy.runs.make as make
        item_rows = make.item_rows
        def frames(*given):
            for frame in item_rows(*given):
                stop()
                yield frame
        make.item_rows = frames
    """,
    "where a library turns it into its own error": """
        import moral_entropy.pipeline as audit
        def read(*given):
            try:
                stop()
                time.sleep(60)
            except BaseException as error:
                raise ValueError("wrapped") from error
        audit.read_votes = read
    """,
    "where it is swallowed": """
        import moral_entropy.pipeline as audit
        class Deleted:
            def __del__(self):
                stop()
                for _ in range(1000):
                    time.sleep(0)
        def read(*given):
            Deleted()
            time.sleep(60)
        audit.read_votes = read
    """,
    "where it is swallowed for ever": """
        import moral_entropy.pipeline as audit
        def read(*given):
            while True:
                try:
                    stop()
                    time.sleep(60)
                except BaseException:
                    pass
        audit.read_votes = read
    """,
    "in C code that does not come back": """
        import ctypes, threading
        import moral_entropy.pipeline as audit
        def read(*given):
            threading.Timer(0.2, stop).start()
            lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
            lock(mutex)
            lock(mutex)
        audit.read_votes = read
    """,
    "and again while it clears away": """
        import shutil
        import moral_entropy.runs.run as run
        rmtree = shutil.rmtree
        def remove(*given, **options):
            shutil.rmtree = rmtree
            stop()
            rmtree(*given, **options)
        def write(*given):
            shutil.rmtree = remove
            stop()
            time.sleep(60)
        run.write_table = write
    """,
}

DRIVER = """
import os, sys, time
import moral_entropy.stopping as stopping
from moral_entropy.cli.main import main
stopping.AGAIN, stopping.AT_LAST = 0.3, 5
number = int(sys.argv.pop(1))
def stop():
    os.kill(os.getpid(), number)
{moment}
sys.exit(main())
"""


def audit_stopped(moment, number, votes, folder, *flags):
    """Audit in a process that stops itself at some moment."""
    lines = [line.removeprefix("        ") for line in moment.splitlines()]
    driver = DRIVER.format(moment="\n".join(lines))
    command = [sys.executable, "-c", driver, str(int(number)), "audit", str(votes), "-o", "run", "--draws", "20"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder.parent / "cache")}
    # Compiled anew, so that there is a compilation to be stopped; elsewhere what others have compiled will do.
    environment = environment if "numba:compile" in moment else dict(os.environ)
    return subprocess.run([*command, *flags], capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.mark.parametrize(("moment", "number", "code"), [(name, *CODES[n % 2]) for n, name in enumerate(MOMENTS)])
def test_the_code_is_right_and_nothing_is_left(few_votes, tmp_path, moment, number, code):
    folder = tmp_path / "here"
    folder.mkdir()
    finished = audit_stopped(MOMENTS[moment], number, few_votes, folder, "--no-report")
    assert (finished.returncode, finished.stdout, finished.stderr) == (code, "", "")
    assert list(folder.iterdir()) == []


BETWEEN_RENAMES = """
        from pathlib import Path
        rename = Path.rename
        def moved(self, target):
            there = rename(self, target)
            if there.is_dir():
                stop()
            return there
        Path.rename = moved
"""
AFTER_ALL = """
        import atexit
        atexit.register(stop)
"""


def test_a_run_that_replaces_another_is_put_in_place_in_one_go(few_votes, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    assert main(["audit", str(few_votes), "-o", str(folder / "run"), "--draws", "20", "--no-report", "--quiet"]) == 0
    flags = ("--no-report", "--force", "--seed", "3")
    finished = audit_stopped(BETWEEN_RENAMES, signal.SIGTERM, few_votes, folder, *flags)
    assert (finished.returncode, finished.stderr) == (143, "")
    assert [path.name for path in folder.iterdir()] == ["run"]
    assert read_manifest(folder / "run")["seed"] == 3


def test_a_stop_after_the_last_word_ends_the_process_at_once(few_votes, tmp_path):
    finished = audit_stopped(AFTER_ALL, signal.SIGINT, few_votes, tmp_path, "--no-report")
    # So few votes are warned about; a stop adds nothing to that.
    said = [line for line in finished.stderr.splitlines() if not line.startswith("warning: ")]
    assert (finished.returncode, said) == (-signal.SIGINT, [])
    assert finished.stdout.rstrip().splitlines()[-1].startswith("  tables ")
    assert read_manifest(tmp_path / "run")["converged"]


@pytest.mark.parametrize(("number", "code"), CODES)
@pytest.mark.parametrize("command", ["export run --to argilla -o out.json", "next run --to label-studio -o out.json"])
def test_a_stop_while_records_are_written_leaves_nothing(plain_run, tmp_path, monkeypatch, command, number, code):
    import moral_entropy.report.export as export

    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whoever started the tests ignores this signal, as nohup does")

    def stopped(_rows):
        yield {"id": 1}
        os.kill(os.getpid(), number)
        time.sleep(60)

    monkeypatch.setattr(export, "TOOLS", dict.fromkeys(export.TOOLS, stopped))
    monkeypatch.chdir(tmp_path)
    assert main(command.replace("run", str(plain_run), 1).split()) == code
    assert list(tmp_path.iterdir()) == []


def hears_terminate(process):
    """Whether a process handles SIGTERM by now: so from the first line of `main` on."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_hundred_stops_at_random_moments_under_load(votes, tmp_path):
    moments = random.Random(13)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        ends = [stopped_after(votes, tmp_path, moments, n) for n in range(100)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [end for end in ends if end is not None] == []


def stopped_after(votes, folder, moments, n):
    """Stop an audit some time after `main` begins; say what was wrong, if anything was."""
    target = folder / f"run-{n}"
    number, code = moments.choice(CODES)
    seconds = moments.uniform(0.0, 4.0)
    process = begin(votes, target)
    wait_for(process, lambda: hears_terminate(process))
    time.sleep(seconds)
    process.send_signal(number)
    out, err = process.communicate()
    whole = target.is_dir() and (target / "manifest.json").is_file()
    left = [path.name for path in folder.iterdir() if path.name not in {f"run-{m}" for m in range(n + 1)}]
    # A run that was done before the signal came is whole; after the last word the process ends at once.
    right = process.returncode == code or (process.returncode in (0, -number) and whole)
    fine = right and err == "" and not left and (whole or not target.exists())
    return None if fine else (n, number, seconds, process.returncode, err, left, out[:200])
