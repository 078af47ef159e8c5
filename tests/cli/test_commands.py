"""The list of commands, and the commands it stands for."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import moral_entropy.cli
from moral_entropy.cli.commands import SENTENCES, load_command
from moral_entropy.cli.main import OBJECTS_BETWEEN


@pytest.mark.parametrize("name", SENTENCES)
def test_the_list_says_what_the_command_says_of_itself(name):
    command = load_command(name)
    first, _, _ = command.help.partition("\n\n")
    assert (command.name, " ".join(first.split())) == (name, SENTENCES[name])


def test_every_command_is_listed(run):
    with_example = {
        path.stem.replace("_", "-")
        for path in Path(moral_entropy.cli.__file__).parent.glob("*.py")
        if "Example: moral-" in path.read_text()
    }
    assert with_example == {*SENTENCES}
    assert list(SENTENCES) == sorted(SENTENCES)
    code, out, _ = run("--help")
    assert code == 0 and all(f"│ {name} " in out for name in SENTENCES)


@pytest.mark.parametrize("name", SENTENCES)
def test_every_command_helps_with_both_flags(run, name):
    assert run(name, "-h") == run(name, "--help")
    assert run(name, "-h")[0] == 0


def test_a_slip_of_the_finger_is_understood(run):
    assert run("adit") == (2, "", "error: No such command 'adit'. Did you mean 'audit'?\n")


def test_garbage_is_looked_for_seldom_and_only_while_a_command_runs(run, monkeypatch):
    before, seen = gc.get_threshold(), []
    monkeypatch.setattr("moral_entropy.cli.commands.load_command", lambda _: seen.append(gc.get_threshold()[0]))
    run("audit")
    assert seen == [OBJECTS_BETWEEN]
    assert gc.get_threshold() == before
