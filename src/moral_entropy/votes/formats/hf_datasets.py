"""Hugging Face datasets: a folder features by `save_to_disk`, or one of Parquet files.

Arrow streams are read whole, Parquet one column at a time. Classes get their names; the splits are joined, with a
column `split`. What the columns mean is left to the reader of tables, except for exports of Argilla and our own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.annotation_tools import are_ours, argilla_votes, is_argilla, our_votes
from moral_entropy.votes.formats.records import listed, mapping, read_json
from moral_entropy.votes.table import ReadingLog, one_line, refuse

SPLITS, INFO, STATE = "dataset_dict.json", "dataset_info.json", "state.json"
SPLIT = "split"
UNSPLIT = ""


def detect(path: Path) -> bool:
    """Return whether a folder is a saved dataset, or one of Parquet files."""
    if not path.is_dir():
        return False
    return (path / SPLITS).is_file() or _is_saved(path) or bool(_parquet_files(path))


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame | pl.LazyFrame:
    """Read the table in a folder."""
    try:
        parts = _saved_splits(path) if _is_saved(path) or (path / SPLITS).is_file() else _parquet_splits(path)
        frame = _joined(parts)
        columns = frame.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as error:
        refuse(f"{path.name} cannot be read as a dataset: {one_line(error)}. Save it anew.")
    if is_argilla(columns):
        return argilla_votes(frame.lazy().collect().to_dicts(), path.name, log)
    if are_ours(columns):
        return our_votes(frame.lazy().collect().to_dicts(), path.name, log)
    return frame


def data_files(path: Path) -> list[Path]:
    """Find the files that a folder's table is made of."""
    return sorted([*path.glob("**/*.arrow"), *path.glob("**/*.parquet"), *path.glob(f"**/{INFO}")])


def _is_saved(path: Path) -> bool:
    return (path / STATE).is_file() and (path / INFO).is_file()


def _joined(parts: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    if list(parts) == [UNSPLIT]:
        return parts[UNSPLIT]
    with_split = []
    for split, frame in parts.items():
        has_split = SPLIT in frame.collect_schema().names()
        with_split.append(frame if has_split else frame.with_columns(pl.lit(split).alias(SPLIT)))
    return pl.concat(with_split, how="diagonal_relaxed")


def _saved_splits(path: Path) -> dict[str, pl.LazyFrame]:
    if not (path / SPLITS).is_file():
        return {UNSPLIT: _read_saved(path)}
    names = [name for name in listed(mapping(read_json(path / SPLITS)).get("splits")) if isinstance(name, str)]
    if not names:
        refuse(f"{path.name}/{SPLITS} lists no splits. Save the dataset anew.")
    return {name: _read_saved(_inside(path, name)) for name in names}


def _read_saved(folder: Path) -> pl.LazyFrame:
    """Read the shards that a saved dataset lists."""
    entries = listed(mapping(read_json(folder / STATE)).get("_data_files"))
    shards = [_inside(folder, str(mapping(entry).get("filename"))) for entry in entries]
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing or not shards:
        first = f" First: {missing[0]}." if missing else ""
        refuse(f"{folder.name} lacks {len(missing)} of the {len(shards)} data files it lists.{first} Copy it whole.")
    frame = pl.concat([pl.read_ipc_stream(shard) for shard in shards], how="vertical_relaxed")
    return _with_class_names(frame.lazy(), mapping(mapping(read_json(folder / INFO)).get("features")))


def _inside(folder: Path, name: str) -> Path:
    """Return a file or folder directly inside another, and refuse a name that leads elsewhere."""
    if Path(name).name != name or name in ("", ".", ".."):
        refuse(f"{folder.name} names {name!r} as one of its files, which lies elsewhere. Save the dataset anew.")
    return folder / name


def _parquet_files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.parquet"), *path.glob("*/*.parquet")])


def _parquet_splits(path: Path) -> dict[str, pl.LazyFrame]:
    """Group Parquet files by the split in their names, such as train-00000-of-00002.parquet."""
    files: dict[str, list[Path]] = {}
    for file in _parquet_files(path):
        files.setdefault(_split_of(file, path), []).append(file)
    if not files:
        refuse(f"{path.name} holds neither a dataset saved by Hugging Face datasets nor Parquet files.")
    _check_alike([file for shards in files.values() for file in shards], path.name)
    return {
        split: _with_class_names(pl.scan_parquet(shards, glob=False), _parquet_features(shards[0]))
        for split, shards in files.items()
    }


def _check_alike(files: Sequence[Path], name: str) -> None:
    schemas = [pl.scan_parquet(file, glob=False).collect_schema() for file in files]
    for file, schema in zip(files, schemas, strict=True):
        if schema != schemas[0]:
            refuse(
                f"the {len(files)} Parquet files in {name} are not parts of one table: {file.name} has other columns "
                f"than {files[0].name}. Name the file that holds the votes."
            )


def _split_of(file: Path, root: Path) -> str:
    before, _, after = file.stem.partition("-")
    if "-of-" in after and after.replace("-of-", "").isdigit():
        return before
    return UNSPLIT if file.parent in (root, root / "data") else file.parent.name


def _parquet_features(file: Path) -> Mapping[str, Any]:
    """Return the features that the library writes into the metadata of its Parquet files, if there are any."""
    try:
        features = json.loads(pl.read_parquet_metadata(file).get("huggingface", "{}"))
    except (json.JSONDecodeError, RecursionError):
        return {}
    return mapping(mapping(mapping(features).get("info")).get("features"))


def _with_class_names(frame: pl.LazyFrame, features: Mapping[str, Any]) -> pl.LazyFrame:
    """Replace class numbers by class names; -1, which stands for no label, becomes null."""
    schema = frame.collect_schema()
    for column, feature in features.items():
        names = mapping(feature).get("names") if mapping(feature).get("_type") == "ClassLabel" else None
        if isinstance(names, list) and column in schema and schema[column].is_integer():
            name_of = {at: str(name) for at, name in enumerate(names)}
            frame = frame.with_columns(pl.col(column).replace_strict(name_of, default=None, return_dtype=pl.String))
    return frame
