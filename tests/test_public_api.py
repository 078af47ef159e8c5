"""What `import moral_entropy` gives, pinned: changing it is a decision, not an accident."""

from __future__ import annotations

import inspect
import pickle
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pytest

import moral_entropy as me

NAMES = [
    "AuditTable",
    "Ballot",
    "Consensus",
    "EntropyParts",
    "MoralEntropyError",
    "Priors",
    "Rule",
    "Run",
    "Votes",
    "__version__",
    "agreement",
    "audit",
    "audit_rules",
    "compare",
    "decompose_entropy",
    "fit",
    "read_run",
    "read_votes",
    "refit",
    "score",
    "simulate_votes",
    "train",
    "verify",
]


def test_the_names_are_these_and_sorted():
    assert me.__all__ == NAMES == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_and_documented(name):
    value = getattr(me, name)
    assert name == "__version__" or inspect.getdoc(value)
    assert name in dir(me)


def test_nothing_else_is_shown():
    assert dir(me) == NAMES


def test_train_is_a_function_and_a_package():
    from moral_entropy.train import run

    assert {"run", "out", "epochs"} <= {*inspect.signature(me.train).parameters}
    assert (me.train.run, me.train.__name__) == (run, "moral_entropy.train")
    with pytest.raises(me.MoralEntropyError, match="nowhere is no run folder"):
        me.train("nowhere", "model", model="tfidf")


@pytest.mark.parametrize("frame", ["polars", "pandas"])
def test_a_dataframe_is_enough(frame):
    votes = pl.DataFrame(
        {
            "item": [i for i in range(40) for _ in range(3)],
            "annotator": ["ann", "bob", "cy"] * 40,
            "label": [("no", "yes")[(i * (a + 2) // 3) % 2] for i in range(40) for a in range(3)],
        }
    )
    gold = pl.DataFrame({"item": range(0, 40, 2), "gold": ["yes", "no"] * 10})
    if frame == "pandas":
        votes, gold = votes.to_pandas(), gold.to_pandas()
    assert me.fit(votes, draws=0).votes.n_votes == 120
    run = me.audit(votes, gold=gold, draws=20)
    assert run.items["gold"].drop_nulls().to_list() == ["yes", "no"] * 10
    assert run.rules.filter(reference="gold").height > 0
    assert run.manifest["columns"]["gold"] == "a dataframe"
    assert run.manifest["options"]["read"]["gold_file"] == "a DataFrame"
    known = pl.DataFrame(votes).with_columns(truth=pl.col("item") % 2)
    named = me.audit(known.with_columns(truth=pl.when(pl.col("truth") == 1).then(pl.lit("yes"))), gold="truth", draws=0)
    assert named.manifest["columns"]["gold"] == "truth" and named.items["gold"].drop_nulls().len() == 20


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(TypeError, match=r"audit\(\) has no option 'drwas'. Did you mean 'draws'\?"):
        me.audit("votes.csv", drwas=3)


def test_fit_is_the_function_also_after_its_package_was_imported():
    import moral_entropy.model.fit as module

    assert me.fit is module.fit


def test_no_folder_of_the_package_takes_a_public_name():
    # Train can be called, as a function and as a package.
    assert {path.stem for path in Path(me.__file__).parent.iterdir()} & {*NAMES} == {"train"}


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        _ = me.predict


def test_options_come_after_the_star():
    for function in (me.read_votes, me.fit, me.simulate_votes):
        parameters = inspect.signature(function).parameters
        kinds = [p.kind for name, p in parameters.items() if name != "options"]
        assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 1


def test_the_version_is_that_of_the_distribution():
    try:
        installed = version("moral-entropy")
    except ModuleNotFoundError:
        pytest.skip("the package is not installed, only on the path")
    assert installed == me.__version__


RECORDS = [
    {"item": i, "annotator": a, "label": "yes" if (i * n + i // 3) % 4 < 2 else "no"}
    for i in range(30)
    for n, a in enumerate("abc", start=1)
]


class Dataset:
    """What `audit` needs of a Dataset of Hugging Face: features, and its columns as an Arrow table."""

    features = ("item", "annotator", "label")

    def with_format(self, kind):
        assert kind == "arrow"
        return self

    def __getitem__(self, rows):
        return pl.DataFrame(RECORDS)[rows].to_arrow()


@pytest.mark.parametrize(
    "source",
    [
        RECORDS,
        {name: [row[name] for row in RECORDS] for name in RECORDS[0]},
        {a: {str(row["item"]): row["label"] for row in RECORDS if row["annotator"] == a} for a in "abc"},
        Dataset(),
    ],
    ids=["records", "columns", "answers by annotator", "dataset"],
)
def test_plain_python_and_datasets_are_read(source):
    assert me.read_votes(source).n_votes == 90


def test_a_run_does_what_the_command_line_does_and_can_be_pickled(tmp_path):
    run = me.audit(RECORDS, draws=20)
    for again in (pickle.loads(pickle.dumps(run)), pickle.loads(pickle.dumps(run.save(tmp_path / "run")))):
        assert again.items.equals(run.items)
        assert again.markdown().count("| label |") == 1
    assert run.next(5).height == 5
    assert [limit.outcome for limit in run.check(maximum=["uncertain=1"])] == ["holds"]
    assert run.explain("0")[0].question == "label"
    [file] = run.export(tmp_path / "items.csv")
    assert pl.read_csv(file).height == 30
    assert run.to_dict()["read"]["votes"] == 90
    assert me.compare(run, run).items.height >= 0
