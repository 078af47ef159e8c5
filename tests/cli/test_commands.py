"""The list of commands, and the commands it stands for."""

from __future__ import annotations

import pytest

from moral_entropy.cli.commands import GONE, GONE_FLAGS, SENTENCES, load_command


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


def test_score_is_another_name_of_judges(run):
    assert run("score", "--help") == run("judges", "--help")


@pytest.mark.parametrize("name", GONE)
def test_a_command_that_went_says_what_to_do_instead(run, name):
    code, out, err = run(name, "run", "--seed", "3")
    assert (code, out) == (2, "") and err == f"error: {name} went with version 0.3: {GONE[name]}\n"
    assert name not in SENTENCES


def test_what_to_do_instead_can_be_done(run):
    named = [text.partition("moral-entropy ")[2].split()[0] for text in GONE.values() if "moral-entropy " in text]
    assert named and all(run(name, "--help")[0] == 0 for name in named)
    flags = [word for text in [*GONE.values(), *GONE_FLAGS.values()] for word in text.split() if word.startswith("--")]
    helped = "".join(run(name, flag)[1] for name, flag in (("audit", "--help-all"), ("train", "--help")))
    assert flags and [flag for flag in flags if flag not in helped] == []


@pytest.mark.parametrize("flag", GONE_FLAGS)
def test_an_option_that_went_says_so(run, flag):
    code, out, err = run("audit", "votes.csv", "-o", "run", flag, "1")
    assert (code, out) == (2, "") and err.startswith(f"error: {flag} went with version 0.3")
    assert err.endswith(".\n") and flag not in run("audit", "--help-all")[1].replace("--confusion", "")
