"""The list of commands, and the commands it stands for."""

from __future__ import annotations

import pytest

from moral_entropy.cli.commands import GONE, SENTENCES, load_command


@pytest.mark.parametrize("name", SENTENCES)
def test_the_list_says_what_the_command_says_of_itself(name):
    command = load_command(name)
    first, _, _ = command.help.partition("\n\n")
    assert (command.name, " ".join(first.split())) == (name, SENTENCES[name])


def test_every_command_is_listed(run):
    code, out, _ = run("--help")
    assert code == 0 and all(f"│ {name} " in out for name in SENTENCES)


@pytest.mark.parametrize("name", SENTENCES)
def test_every_command_helps_with_both_flags(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0 and f"Example: moral-entropy {name} " in out
    assert run(name, "-h") == (code, out, "")


def test_a_slip_of_the_finger_is_understood(run):
    assert run("adit") == (2, "", "error: No such command 'adit'. Did you mean 'audit'?\n")


@pytest.mark.parametrize("name", GONE)
def test_what_went_says_so_and_what_to_do_instead(run, name):
    code, out, err = run(*(("audit", "votes.csv", "-o", "run", name, "1") if name[0] == "-" else (name, "run")))
    assert (code, out) == (2, "") and err.startswith(f"error: {name} went with version 0.3")
    assert err.endswith(".\n") and GONE[name] in err and name not in SENTENCES
    assert name not in run("audit", "--help-all")[1].replace("--confusion", "").split()


def test_score_is_another_name_of_judges(run):
    assert run("score", "nowhere") == run("judges", "nowhere") and "nowhere" in run("score", "nowhere")[2]


def test_what_to_do_instead_can_be_done(run):
    commands = [text.partition("moral-entropy ")[2].split()[0] for text in GONE.values() if "moral-entropy " in text]
    assert commands and all(run(name, "--help")[0] == 0 for name in commands)
    flags = [word for text in GONE.values() for word in text.split() if word.startswith("--")]
    helped = "".join(run(name, flag)[1] for name, flag in (("audit", "--help-all"), ("train", "--help")))
    assert flags and [flag for flag in flags if flag not in helped] == []
