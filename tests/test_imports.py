"""Importing the package, and asking for help, must not cost what only some users need."""

from __future__ import annotations

import json
import subprocess
import sys

from moral_entropy.cli.commands import SENTENCES

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def modules_loaded_by(code):
    finished = subprocess.run([sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True)
    return set(json.loads(finished.stdout.splitlines()[-1]))


def loaded_by(code):
    return {name.partition(".")[0] for name in modules_loaded_by(code)}


def test_importing_the_package_is_light():
    heavy = {
        "torch",
        "pandas",
        "jinja2",
        "altair",
        "vl_convert",
        "numba",
        "polars",
        "sklearn",
        "scipy",
        "numpy",
        "rich",
        "typer",
    }
    assert not loaded_by("import moral_entropy") & heavy


def run(*arguments):
    return f"from moral_entropy.cli.main import main\nassert main({[*arguments]}) == 0"


def test_help_is_light():
    heavy = {
        "torch",
        "transformers",
        "pandas",
        "jinja2",
        "altair",
        "vl_convert",
        "numba",
        "numpy",
        "polars",
        "sklearn",
        "scipy",
        "dask",
    }
    # In one process: what is loaded stays loaded, so the first line with a heavy package names the command.
    calls = [["--help"], ["--version"], *([name, "--help"] for name in SENTENCES)]
    after_each = (
        "from moral_entropy.cli.main import main\nloaded = {}\n"
        f"for call in {calls}:\n    assert main(call) == 0\n"
        f"    loaded[' '.join(call)] = sorted({heavy} & {{name.partition('.')[0] for name in sys.modules}})\n"
        "print(json.dumps(loaded))"
    )
    code = f"import json, sys\n{after_each}"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(finished.stdout.splitlines()[-1]) == {" ".join(call): [] for call in calls}


def test_a_file_that_is_not_there_is_told_before_anything_is_loaded():
    code = "from moral_entropy.cli.main import main\nassert main(['audit', 'nowhere.csv', '-o', 'nowhere']) == 1"
    assert not loaded_by(code) & {"numba", "numpy", "polars", "scipy"}


def test_the_list_of_commands_loads_no_command():
    loaded = modules_loaded_by(run("--help"))
    assert "moral_entropy.cli.commands" in loaded
    assert not loaded & {f"moral_entropy.cli.{name}" for name in SENTENCES}


def test_a_command_loads_no_other_command():
    loaded = modules_loaded_by(run("check", "--help"))
    assert loaded & {f"moral_entropy.cli.{name}" for name in SENTENCES} == {"moral_entropy.cli.check"}


def test_reading_and_fitting_need_no_extra():
    code = (
        "import moral_entropy as me\n"
        "votes = me.simulate_votes(n_items=90, n_annotators=3, votes_per_item=3).votes\n"
        "me.fit(votes, draws=9, priors=me.Priors(prevalence=5))"
    )
    assert not loaded_by(code) & {"torch", "pandas", "sklearn"}


def test_an_audit_of_plain_votes_loads_no_optimiser(tmp_path):
    code = (
        "import moral_entropy as me, polars as pl\n"
        "votes = [(i, a, (i * 7 + a * i) % 5 > 2) for i in range(40) for a in range(4)]\n"
        "frame = pl.DataFrame(votes, schema=['item', 'annotator', 'label'], orient='row')\n"
        f"me.audit(frame, {str(tmp_path / 'run')!r}, draws=9)"
    )
    loaded = modules_loaded_by(code)
    assert "moral_entropy.report.html" in loaded
    assert loaded.isdisjoint({"scipy.optimize", "scipy.stats", "altair", "pandas", "typer"})


def test_the_probe_sees_what_is_loaded():
    assert "numpy" in loaded_by("import numpy")
