"""A small file of votes, and a way to run commands in its folder."""

from __future__ import annotations

import random
import shutil

import pytest

from moral_entropy.cli.main import main


def vote_rows(*, n_items=80, annotators="abcde", questions=("care", "fairness"), seed=3):
    """Votes that are right four times in five, by everyone on everything but a few."""
    draw = random.Random(seed)
    for question in questions:
        for item in range(n_items):
            truth = draw.random() < 0.3
            for annotator in annotators:
                if draw.random() < 0.9:
                    yield (
                        f"t{item:03}",
                        annotator,
                        question,
                        int(truth == (draw.random() < 0.85)),
                        ["BLM", "Sandy"][item % 2],
                    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = ["text_id,rater,foundation,vote,domain", *(",".join(map(str, row)) for row in vote_rows())]
    rows += ["t900,a,care,,BLM", "t901,,care,1,BLM"]
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Run a command; give exit code, standard output and standard error."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture(scope="session")
def made_runs():
    """Run folders that were made, by flags."""
    return {}


@pytest.fixture
def audit_once(run, folder, made_runs, tmp_path_factory):
    """Audit the small file of votes; what was audited before with the same flags is copied."""

    def audit(name, *flags):
        if (name, *flags) not in made_runs:
            assert run("audit", "votes.csv", "-o", name, *flags, "--quiet")[0] == 0
            made_runs[name, *flags] = shutil.copytree(folder / name, tmp_path_factory.mktemp("made") / name)
        else:
            shutil.copytree(made_runs[name, *flags], folder / name)

    return audit
