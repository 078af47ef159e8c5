"""The list of commands, and the commands it stands for."""

from __future__ import annotations

import pytest

from moral_entropy.cli.commands import SENTENCES, load_command


@pytest.mark.parametrize("name", SENTENCES)
def test_the_list_says_what_the_command_says_of_itself(name):
    command = load_command(name)
    first, _, _ = command.help.partition("\n\n")
    assert (command.name, " ".join(first.split())) == (name, SENTENCES[name])


def test_every_command_is_listed(run):
    assert list(SENTENCES) == sorted(SENTENCES)
    code, out, _ = run("--help")
    assert code == 0 and all(f"│ {name} " in out for name in SENTENCES)


@pytest.mark.parametrize("name", SENTENCES)
def test_every_command_helps_with_both_flags(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0 and f"Example: moral-entropy {name} " in out
    assert run(name, "-h") == (code, out, "")


def test_a_slip_of_the_finger_is_understood(run):
    assert run("adit") == (2, "", "error: No such command 'adit'. Did you mean 'audit'?\n")
