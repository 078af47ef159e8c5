"""Pages whose steps build on each other show what they print, word for word. `make golden` rewrites them."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from moral_entropy.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"tutorial/first-audit.md": 6, "how-to/thin-data.md": 7}
"""Pages, and how many steps each has."""

STEP = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?P<printed>\n\n```\n(?:.*?)```$)?"
    r"|^```console\n\$ (?P<command>.*?)\n```\n\n```\n(?:.*?)```$",
    flags=re.MULTILINE | re.DOTALL,
)


def printed_by(command, capsys):
    program, *arguments = shlex.split(command)
    assert program == "moral-entropy"
    capsys.readouterr()
    assert main(arguments) == 0
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    return re.sub(r"\d+\.\d s\)", "… s)", "\n".join(line.rstrip() for line in lines).strip("\n")) + "\n"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_steps_print(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    path = DOCS / name

    def taken(step):
        if (code := step["code"]) is None:
            return f"```console\n$ {step['command']}\n```\n\n```\n{printed_by(step['command'], capsys)}```"
        capsys.readouterr()
        exec(compile(code, name, "exec"), {})
        shown = f"\n\n```\n{capsys.readouterr().out}```" if step["printed"] else ""
        return f"```python\n{code}```{shown}"

    made, steps = STEP.subn(taken, path.read_text(encoding="utf-8"))
    assert steps == PAGES[name]
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8"), "the output changed; `make golden` if it should have"


JUDGES = {"gpt-4o": 0.9, "claude": 0.86, "llama": 0.74, "qwen": 0.7}


def judged_answers(folder):
    """Write what the how-to on judges shows: 600 answers of each of two systems, 190 of which people judged too."""
    rng = np.random.default_rng(0)
    random_i, lines, gold = set(rng.choice(1_200, 190, replace=False).tolist()), [], ["item,gold"]
    for system, share in (("new", 0.8), ("old", 0.68)):
        for prompt in range(600):
            good, verdicts = rng.random() < share, {}
            for judge, right in JUDGES.items():
                vote = ("no", "yes")[int(good == (rng.random() < right))]
                fails = judge == "llama" and rng.random() < 0.13
                verdicts[judge] = "I cannot say." if fails else f"Verdict: {vote}"
            answer = {"id": f"{system}-{prompt}", "system": system, "prompt": f"p{prompt}", "judges": verdicts}
            if len(lines) in random_i:
                gold.append(f"{answer['id']},{('no', 'yes')[int(good)]}")
            lines.append(json.dumps(answer))
    (folder / "judged.jsonl").write_text("\n".join(lines))
    (folder / "people.csv").write_text("\n".join(gold))
    return lines


def test_the_how_to_on_judges_shows_what_its_commands_print(tmp_path, monkeypatch, capsys):
    """All that it shows, in its order; a line that is "…" stands for lines that it leaves out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    lines, page = judged_answers(tmp_path), (DOCS / "how-to" / "llm-judges.md").read_text(encoding="utf-8")
    example, audit, audited, judges, judged, queue, *_ = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert lines[0].startswith(example.partition(", …")[0])
    for command, shown, code in ((audit, audited, 0), (judges, judged, 1), (queue, "", 0)):
        assert main(shlex.split(command)[1:]) == code
        captured = capsys.readouterr()
        printed = "\n".join(line.rstrip() for line in (captured.out + captured.err).splitlines())
        begin = 0
        for part in shown.split("…\n"):
            assert part.strip("\n") in printed[begin:], f"this is not what is printed, which is\n{printed}"
            begin = printed.index(part.strip("\n"), begin) + len(part.strip("\n"))
