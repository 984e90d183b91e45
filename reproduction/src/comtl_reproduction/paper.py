"""Figures that the paper prints: means, standard errors, and what it sets in bold.

"Co-Clustering for Multitask Learning", K. Murugesan, J. Carbonell, Y. Yang (2017). What looks like
a slip (SHAMO on 30 % of school, 86 tasks in Experiment VI) is kept as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .tables import Entries, Entry

METHODS = ("STL", "ITL", "SHAMO", "CMTL", "MTFL", "GO-MTL", "BiFactor", "TriFactor")
"""Names of the methods, in the paper's order."""


def read_entries(columns: tuple[str, ...], text: str) -> Entries:
    """Read lines of a method's name and pairs of mean and standard error, ``*`` before bold ones.

    Examples
    --------
    >>> from comtl_reproduction.paper import read_entries
    >>> read_entries(("syn1", "syn2"), "ITL 1.98 0.08 *2.10 0.09")["ITL", "syn2"]
    Entry(mean=2.1, error=0.09, bold=True)
    """
    entries = {}
    for line in text.strip().splitlines():
        method, *figures = line.split()
        pairs = zip(columns, figures[::2], figures[1::2], strict=True)
        for column, mean, error in pairs:
            bold = mean.startswith("*")
            entries[method, column] = Entry(float(mean.lstrip("*")), float(error), bold)
    return MappingProxyType(entries)


SYNTHETIC_COLUMNS = ("syn1", "syn2", "syn3", "syn4", "syn5")
SYNTHETIC = read_entries(
    SYNTHETIC_COLUMNS,
    """
    STL        4.79 0.04   5.71 0.05   5.5  0.04   4.02 0.02   5.72 0.06
    ITL        1.98 0.08   2.10 0.09   2.01 0.06   1.95 0.06   2.14 0.07
    SHAMO      3.63 0.22   4.37 0.27   3.56 0.23   2.76 0.13   4.27 0.31
    MTFL       1.91 0.08   1.95 0.07   1.64 0.06   1.47 0.05   1.91 0.07
    GO-MTL     1.84 0.10   1.90 0.08   1.72 0.04   1.63 0.06   1.84 0.06
    BiFactor   1.85 0.08  *1.85 0.06   1.68 0.08   1.37 0.08   1.74 0.07
    TriFactor *1.78 0.08  *1.83 0.07  *1.46 0.05  *1.31 0.02  *1.68 0.10
    """,
)
"""RMSE on the synthetic sets."""

SCHOOL_COLUMNS = ("20%", "30%", "40%")
SCHOOL = read_entries(
    SCHOOL_COLUMNS,
    """
    STL        12.19 0.03   12.09 0.07   12.00 0.10
    ITL        12.00 0.04   12.01 0.05   11.88 0.06
    SHAMO      11.91 0.05   10.92 0.05   11.82 0.06
    MTFL       11.25 0.05   10.85 0.02   10.61 0.06
    GO-MTL     11.15 0.05   10.53 0.10   10.31 0.14
    BiFactor   10.68 0.08   10.38 0.11   10.20 0.13
    TriFactor *10.54 0.09  *10.22 0.08  *10.12 0.10
    """,
)
"""RMSE on school, by the share of rows to train on."""

SENTIMENT_COLUMNS = ("I", "II", "III", "IV", "V", "VI", "VII")
SENTIMENT = read_entries(
    SENTIMENT_COLUMNS,
    """
    STL       *.749 .003   .429 .002   .432 .001   .429 .002   .400 .002   .399 .003   .397 .001
    ITL        .713 .002   .433 .001   .440 .002   .431 .001   .499 .001   .486 .002   .479 .001
    SHAMO      .721 .005   .423 .002   .437 .006   .429 .002   .498 .006   .460 .002   .496 .013
    CMTL       .713 .002   .557 .016   .436 .007   .429 .004   .508 .002   .486 .002   .476 .002
    MTFL       .711 .002   .482 .004   .473 .002   .432 .007   .522 .002   .487 .003   .481 .002
    GO-MTL     .638 .006   .582 .012   .526 .013   .516 .007   .587 .004   .540 .005   .539 .008
    BiFactor   .722 .006   .611 .018   .561 .013  *.598 .002  *.643 .013   .578 .020   .574 .052
    TriFactor  .733 .006  *.627 .008  *.588 .006  *.603 .012  *.655 .013  *.606 .020  *.632 .029
    """,
)
"""F-measure of Experiments I to VII on sentiment."""


@dataclass(frozen=True)
class SentimentSetup:
    """How an experiment on sentiment cuts each of the 14 domains into tasks.

    Examples
    --------
    >>> from comtl_reproduction.paper import SENTIMENT_SETUPS
    >>> SENTIMENT_SETUPS["VII"]
    SentimentSetup(tasks=126, thresholds=3, splits=9, train_size=26)
    """

    tasks: int
    thresholds: int
    splits: int
    train_size: int


SENTIMENT_SETUPS: Mapping[str, SentimentSetup] = MappingProxyType(
    {
        "I": SentimentSetup(14, 1, 1, 240),
        "II": SentimentSetup(28, 2, 2, 120),
        "III": SentimentSetup(56, 2, 4, 60),
        "IV": SentimentSetup(84, 2, 6, 40),
        "V": SentimentSetup(42, 3, 3, 80),
        "VI": SentimentSetup(86, 3, 6, 40),
        "VII": SentimentSetup(126, 3, 9, 26),
    }
)
"""Sizes as printed."""

NEWSGROUPS_COLUMNS = tuple(f"Task {number}" for number in range(1, 11))
NEWSGROUPS = read_entries(
    NEWSGROUPS_COLUMNS,
    " GO-MTL     .42 .09   .57 .06   .42 .04   .47 .06   .40 .03"
    "            .37 .02   .35 .02   .70 .01   .38 .00   .42 .05\n"
    " BiFactor   .42 .09   .60 .05   .41 .04   .49 .03   .36 .01"
    "            .42 .02   .37 .02   .64 .02   .38 .00   .46 .04\n"
    " TriFactor *.49 .03  *.63 .02  *.54 .02  *.54 .02  *.51 .02"
    "           *.67 .01  *.47 .02   .66 .01  *.59 .03  *.62 .01\n",
)
"""F-measure of the transfer to each task of 20 Newsgroups."""

NEWSGROUPS_PAIRS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Task 1": ("comp.windows.x", "comp.os.ms-windows.misc"),
        "Task 2": ("soc.religion.christian", "rec.sport.hockey"),
        "Task 3": ("misc.forsale", "talk.politics.guns"),
        "Task 4": ("sci.med", "rec.autos"),
        "Task 5": ("comp.sys.mac.hardware", "talk.politics.misc"),
        "Task 6": ("sci.space", "alt.atheism"),
        "Task 7": ("comp.graphics", "comp.sys.ibm.pc.hardware"),
        "Task 8": ("talk.politics.mideast", "sci.electronics"),
        "Task 9": ("rec.motorcycles", "talk.religion.misc"),
        "Task 10": ("rec.sport.baseball", "sci.crypt"),
    }
)
"""The two newsgroups of each task."""
