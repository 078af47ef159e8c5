"""Tables with columns as crowd-kit names them, and folders of Hugging Face datasets."""

from __future__ import annotations

import json

import polars as pl
import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

ROWS = [("t1", "w1", "sad"), ("t1", "w2", "glad"), ("t2", "w1", "glad")]
FRAME = pl.DataFrame(ROWS, schema=["task", "worker", "label"], orient="row")


def test_crowd_kit(write, spelt, tmp_path):
    by_csv = read_votes(write(FRAME.write_csv(), "crowd_labels.csv"))
    FRAME.write_parquet(tmp_path / "crowd.parquet")
    by_parquet = read_votes(tmp_path / "crowd.parquet")
    assert spelt(by_csv) == spelt(by_parquet) == ROWS
    assert by_csv.reading.columns == {"item": "task", "annotator": "worker", "label": "label"}


def test_numbers_are_read_as_in_any_table(write, spelt):
    path = write("task,worker,label\n10,2,1\n9,2,0\n")
    assert spelt(read_votes(path)) == spelt(read_votes(path, format="long")) == [(9, 2, "0"), (10, 2, "1")]


def save(folder, *shards, features=None):
    """Lay a dataset out as `save_to_disk` does."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(shards):05}.arrow" for n in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        shard.write_ipc_stream(folder / name)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": name} for name in names], "_fingerprint": "ab", "_split": None})
    )
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": features or {}, "license": ""}))
    return folder


TONE = {"label": {"names": ["glad", "sad"], "_type": "ClassLabel"}, "task": {"dtype": "string", "_type": "Value"}}
CODED = FRAME.with_columns(label=pl.Series([1, 0, 0], dtype=pl.Int64))


def test_a_saved_dataset_in_shards_with_named_classes(tmp_path, spelt):
    votes = read_votes(save(tmp_path / "saved", CODED[:2], CODED[2:], features=TONE))
    assert spelt(votes) == ROWS
    assert "format: hf-datasets (detected)." in votes.reading.notes
    assert len(votes.reading.sha256) == 64


def test_a_class_of_minus_one_is_no_label(tmp_path, spelt):
    hidden = CODED.with_columns(label=pl.Series([1, 0, -1], dtype=pl.Int64))
    votes = read_votes(save(tmp_path / "saved", hidden, features=TONE))
    assert spelt(votes) == ROWS[:2]
    assert votes.reading.dropped == {"no label": 1}


def test_splits_are_joined_and_can_be_fitted_by(tmp_path, spelt):
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    save(tmp_path / "both" / "train", CODED[:2], features=TONE)
    save(tmp_path / "both" / "test", CODED[2:], features=TONE)
    votes = read_votes(tmp_path / "both", facts=["split"])
    assert spelt(votes) == ROWS
    assert votes.extra["split"].to_list() == ["train", "test"]


def test_a_folder_of_parquet(tmp_path, spelt):
    (tmp_path / "data").mkdir()
    FRAME[:1].write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet")
    FRAME[1:2].write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet")
    FRAME[2:].write_parquet(tmp_path / "data" / "test-00000-of-00001.parquet")
    votes = read_votes(tmp_path, facts=["split"])
    assert spelt(votes) == ROWS
    assert votes.extra["split"].to_list() == ["train", "test"]


def test_parquet_with_the_names_of_the_classes_in_its_metadata(tmp_path, spelt):
    about = json.dumps({"info": {"features": TONE}})
    CODED.write_parquet(tmp_path / "part-0.parquet", metadata={"huggingface": about})
    votes = read_votes(tmp_path)
    assert spelt(votes) == ROWS


def test_argilla_pushed_as_a_dataset(tmp_path, spelt):
    frame = pl.DataFrame(
        {
            "id": ["r1", "r2"], "text": ["x", "y"], "tone.responses": [["sad", "glad"], ["glad", "sad"]],
            "tone.responses.users": [["u1", "u2"], ["u1", "u2"]],
            "tone.responses.status": [["submitted", "submitted"], ["submitted", "draft"]],
        }
    )  # fmt: skip
    expected = [("r1", "u1", "sad"), ("r1", "u2", "glad"), ("r2", "u1", "glad")]
    assert spelt(read_votes(save(tmp_path / "saved", frame))) == expected
    assert spelt(read_votes(tmp_path / "saved", format="hf-datasets")) == expected


def spoilt(folder, case):
    path = save(folder / "saved", CODED, features=TONE)
    shard = path / "data-00000-of-00001.arrow"
    if case == "a shard missing":
        shard.unlink()
    elif case == "a shard cut off":
        shard.write_bytes(shard.read_bytes()[:120])
    elif case == "state cut off":
        (path / "state.json").write_text('{"_data_files": [{"filena')
    elif case == "a name that leads elsewhere":
        (path / "state.json").write_text('{"_data_files": [{"filename": "../../secret.arrow"}]}')
    else:
        (path / "dataset_dict.json").write_text('{"splits": []}')
    return path


BAD = {
    "a shard missing": "lacks 1 of the 1 data files it lists. First: data-00000-of-00001.arrow",
    "a shard cut off": "cannot be read as a dataset",
    "state cut off": "state.json is no JSON",
    "a name that leads elsewhere": "names '../../secret.arrow' as one of its files, which lies elsewhere",
    "no splits": "dataset_dict.json lists no splits",
}


@pytest.mark.parametrize("case", BAD)
def test_half_and_wrong_folders_have_one_clear_error(case, tmp_path):
    with pytest.raises(VotesError, match=BAD[case]) as error:
        read_votes(spoilt(tmp_path, case))
    assert "\n" not in str(error.value)


def test_a_folder_of_different_tables(tmp_path):
    FRAME.write_parquet(tmp_path / "annotators.parquet")
    FRAME.rename({"task": "item"}).write_parquet(tmp_path / "items.parquet")
    with pytest.raises(VotesError, match=r"2 Parquet files in .* are not parts of one table: items.parquet has other"):
        read_votes(tmp_path)


def test_a_folder_of_nothing(tmp_path):
    with pytest.raises(VotesError, match="is a folder"):
        read_votes(tmp_path)
    with pytest.raises(VotesError, match="neither a dataset saved by Hugging Face datasets nor Parquet"):
        read_votes(tmp_path, format="hf-datasets")
