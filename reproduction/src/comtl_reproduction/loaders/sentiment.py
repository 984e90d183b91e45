"""Reviews of 14 domains under one, two or three thresholds of their rating."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from ..paper import PAPER
from .files import PathLike, locate, read_columns
from .splits import draw_evenly, shuffled_within
from .text import Corpus, count_terms

_REVIEWS = 1000  # of a domain
_NOT_OF_THE_PAPER = ("computer_video_games", "grocery")
_POSITIVE = {"5": 0.25, ">3": 0.5, "1": 0.25}  # shares in the paper
_PARTS = {"t5": "5", "t4": ">3", "t2": "1"}


EXPERIMENTS = PAPER["sentiment"]["experiments"]


@dataclass(frozen=True)
class _Reviews:
    """What is known of each review: its row in the file, its domain, its class and its terms.

    The class is the rating; or the label for one threshold, if `threshold` names it.
    """

    index: np.ndarray
    domain: np.ndarray
    classes: np.ndarray
    threshold: np.ndarray
    corpus: Corpus

    def draw(
        self, rows: np.ndarray, quotas: dict[int, int], rng: np.random.Generator
    ) -> np.ndarray:
        """Draw up to so many rows of each class; sorted by class, in random order inside it."""
        rows = rows[shuffled_within(self.classes[rows], rng)]
        classes = self.classes[rows]
        return np.concatenate([rows[classes == label][:quota] for label, quota in quotas.items()])


@dataclass(frozen=True)
class _Pool:
    """Rows of one domain for one threshold, sorted so that positive and negative do not mix."""

    domain: str
    threshold: str
    rows: np.ndarray
    y: np.ndarray


def _rated_pools(
    reviews: _Reviews, thresholds: list[str], rng: np.random.Generator
) -> Iterator[_Pool]:
    """Draw each rating of a domain equally often and deal the rows out to the thresholds."""
    for domain in np.unique(reviews.domain):
        rows = np.flatnonzero(reviews.domain == domain)
        rows = reviews.draw(rows, dict.fromkeys((1, 2, 4, 5), _REVIEWS // 4), rng)
        for k, threshold in enumerate(thresholds):
            own = rows[k :: len(thresholds)]
            rating = reviews.classes[own]
            holds = rating > 3 if threshold == ">3" else rating == int(threshold)
            yield _Pool(str(domain), threshold, own, np.where(holds, 1, -1))


def _labelled_pools(
    reviews: _Reviews, thresholds: list[str], rng: np.random.Generator
) -> Iterator[_Pool]:
    """Draw the rows of each domain and threshold in the paper's shares of both labels."""
    for domain, threshold in product(np.unique(reviews.domain), thresholds):
        rows = np.flatnonzero((reviews.domain == domain) & (reviews.threshold == threshold))
        share = _POSITIVE[threshold]
        found = np.count_nonzero(reviews.classes[rows] == 1)
        # Where one label is short the other is cut too, so that the shares stay.
        size = min(_REVIEWS / len(thresholds), found / share, (len(rows) - found) / (1 - share))
        rows = reviews.draw(rows, {-1: round(size * (1 - share)), 1: round(size * share)}, rng)
        yield _Pool(str(domain), threshold, rows, reviews.classes[rows])


@cache
def _read(path: Path, source: str) -> _Reviews:
    """Read and count the reviews of a source, once a process."""
    columns = read_columns(path)
    domain, text = columns["domain"].astype(str), columns["text"]
    if source == "stars":
        index = np.flatnonzero(~np.isin(domain, _NOT_OF_THE_PAPER))
        classes, threshold = columns["rating"], np.full(len(text), "")
    elif source == "thresholds":
        index = np.arange(len(text))
        threshold = np.array([_PARTS[part] for part in columns["threshold"]])
        # The file asks "more than one star?", the paper "one star?".
        classes = np.where(threshold == "1", -columns["y"], columns["y"])
    else:
        rows = {key: row for row, key in enumerate(zip(domain, text, strict=True))}
        index = np.array(list(rows.values()))
        classes, threshold = columns["y"], np.full(len(text), ">3")
    return _Reviews(
        index,
        domain[index],
        classes[index].astype(np.intp),
        threshold[index],
        count_terms(text[index]),
    )


_POOLS = {"stars": _rated_pools, "thresholds": _labelled_pools, "fdu14": _labelled_pools}


def load_sentiment(
    experiment: str = "II",
    *,
    source: str = "stars",
    n_features: int = 5000,
    random_state: int = 0,
    data_home: PathLike | None = None,
) -> Bunch:
    """Load one of the paper's seven experiments on product reviews of 14 domains.

    A task asks whether a review has 5 stars ("5"), more than 3 (">3") or 1 ("1"); yes is 1, no is
    -1. The thresholds of a domain get disjoint reviews in equal numbers, and in Experiments III,
    IV, VI and VII these are divided again into 2 or 3 tasks of the same threshold. Parts and
    splits hold the classes in equal shares. Features are TF-IDF scores of the most frequent
    stemmed words and pairs of words in the training rows of all tasks.

    ========== ================= ===== ====================
    experiment thresholds        tasks training rows a task
    ========== ================= ===== ====================
    I          ">3"                 14                  240
    II         "5", "1"             28                  120
    III        "5", "1"             56                   60
    IV         "5", "1"             84                   40
    V          "5", ">3", "1"       42                   80
    VI         "5", ">3", "1"       84                   40
    VII        "5", ">3", "1"      126                   26
    ========== ================= ===== ====================

    The remaining rows of a task are its test rows. (The paper's 86 tasks of Experiment VI are a
    slip: 14 domains in 6 parts make 84.)

    Parameters
    ----------
    experiment : {"I", "II", "III", "IV", "V", "VI", "VII"}, default="II"
        Which experiment.
    source : {"stars", "thresholds", "fdu14"}, default="stars"
        "stars": reviews with their rating, 250 of each rating in a domain or, where there are
        fewer, all. "thresholds": reviews labelled for one threshold each, drawn in the shares that
        250 of each rating give, 1,000 of a domain or as many as these shares allow. "fdu14":
        500 positive and 500 negative reviews of a domain, for Experiment I only; repeated texts
        are dropped first.
    n_features : int, default=5000
        Words and pairs of words.
    random_state : int, default=0
        Seed of the reviews drawn, the parts and the split.
    data_home : path or None, default=None
        Folder of the data; by default the one that the environment variable COMTL_DATA names.

    Returns
    -------
    Bunch
        ``X, y, task``, the same with ``_test``; ``index``, ``index_test`` (row numbers in the
        file), ``feature_names``, and the dicts ``domain`` and ``threshold`` of each task. Tasks are
        named by domain, threshold and part, as "books:5:0".

    Examples
    --------
    >>> from comtl_reproduction.loaders import load_sentiment
    >>> data = load_sentiment("II")  # doctest: +SKIP
    >>> data.X.shape, len(data.domain)  # doctest: +SKIP
    ((3360, 5000), 28)
    """
    for name, value, known in (("experiment", experiment, EXPERIMENTS), ("source", source, _POOLS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    if source == "fdu14" and experiment != "I":
        raise ValueError('source="fdu14" is for Experiment I only: take "stars" or "thresholds".')
    setting = EXPERIMENTS[experiment]
    reviews = _read(locate(source, data_home), source)
    rng = np.random.default_rng(random_state)
    y = np.zeros(len(reviews.index), dtype=np.intp)
    train: dict[str, np.ndarray] = {}
    test: dict[str, np.ndarray] = {}
    domain, threshold = {}, {}
    for pool in _POOLS[source](reviews, setting["thresholds"], rng):
        y[pool.rows] = pool.y
        for part in range(setting["parts"]):
            task = f"{pool.domain}:{pool.threshold}:{part}"
            rows = pool.rows[part :: setting["parts"]]
            train[task], test[task] = draw_evenly(rows, setting["n_train"], rng)
            domain[task], threshold[task] = pool.domain, pool.threshold
    chosen = [np.concatenate(list(rows.values())) for rows in (train, test)]
    names, scores = reviews.corpus.tfidf(n_features, *chosen)
    data = Bunch(feature_names=names, domain=domain, threshold=threshold)
    for end, tasks, rows, X in zip(("", "_test"), (train, test), chosen, scores, strict=True):
        data |= {
            f"X{end}": X,
            f"y{end}": y[rows],
            f"task{end}": np.repeat(list(tasks), [len(own) for own in tasks.values()]),
            f"index{end}": reviews.index[rows],
        }
    return data
