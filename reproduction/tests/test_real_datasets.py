"""The loaders of the paper's real sets, where COMTL_DATA names the folder that holds them."""

from functools import partial

import numpy as np
import pytest

from comtl_reproduction.loaders import load_newsgroups, load_school, load_sentiment
from comtl_reproduction.loaders.files import locate, read_columns
from comtl_reproduction.loaders.newsgroups import PAIRS

pytestmark = pytest.mark.usefixtures("data_dir")

# Tasks, training rows of a task, thresholds.
EXPERIMENTS = {
    "I": (14, 240, [">3"]),
    "II": (28, 120, ["1", "5"]),
    "III": (56, 60, ["1", "5"]),
    "IV": (84, 40, ["1", "5"]),
    "V": (42, 80, ["1", "5", ">3"]),
    "VI": (84, 40, ["1", "5", ">3"]),
    "VII": (126, 26, ["1", "5", ">3"]),
}


def holds(rating, threshold):
    """Labels that the ratings have under each row's threshold."""
    yes = np.select(
        [threshold == "5", threshold == "1", threshold == ">3"],
        [rating == 5, rating == 1, rating > 3],
    )
    return np.where(yes, 1, -1)


def rows_of(data):
    """Row numbers, labels and tasks of training and test rows together."""
    return (np.concatenate([data[name], data[f"{name}_test"]]) for name in ("index", "y", "task"))


def equal(one, two):
    """Whether two bunches hold the same data."""
    for key, value in one.items():
        same = (value != two[key]).nnz == 0 if key[0] == "X" else np.array_equal(value, two[key])
        if not same:
            return False
    return True


def test_school_as_a_whole():
    data = load_school()
    assert data.X.shape == (15362, 27) and len(data.feature_names) == 27
    assert data.X.dtype == data.y.dtype == np.float64
    assert len(np.unique(data.task)) == 139
    assert data.y.mean() == pytest.approx(20.60, abs=0.01)
    assert (np.ptp(data.X, axis=0) > 0).all()  # no column for the bias


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_school_split_inside_each_school(share):
    whole, data = load_school(), load_school(train_share=share, random_state=1)
    sizes = np.bincount(whole.task)
    assert np.bincount(data.task).tolist() == np.round(share * sizes).astype(int).tolist()
    assert (np.bincount(data.task) + np.bincount(data.task_test) == sizes).all()
    assert data.y.sum() + data.y_test.sum() == whole.y.sum()
    same, other = (load_school(train_share=share, random_state=seed) for seed in (1, 2))
    assert np.array_equal(data.X, same.X) and not np.array_equal(data.X, other.X)


@pytest.mark.parametrize("source", ["stars", "thresholds"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_sizes_of_the_sentiment_experiments(experiment, source):
    data = load_sentiment(experiment, source=source)
    tasks, size, thresholds = EXPERIMENTS[experiment]
    names, counts = np.unique(data.task, return_counts=True)
    assert len(names) == tasks and set(counts) == {size}
    assert np.array_equal(np.unique(data.task_test), names)
    assert set(data.domain) == set(data.threshold) == set(names)
    assert len(set(data.domain.values())) == 14
    assert sorted(set(data.threshold.values())) == thresholds
    assert data.X.shape == (tasks * size, 5000) and data.X_test.shape[1] == 5000
    assert data.X.format == "csr" and data.X.dtype == np.float64
    for task in names:
        assert set(data.y[data.task == task]) == {-1, 1}
        assert set(data.y_test[data.task_test == task]) == {-1, 1}
    index, _, _ = rows_of(data)
    assert len(np.unique(index)) == len(index)


@pytest.mark.parametrize("experiment", ["I", "IV", "VII"])
def test_labels_of_stars_follow_the_rating(experiment):
    data = load_sentiment(experiment, random_state=2)
    columns = read_columns(locate("stars"))
    index, y, task = rows_of(data)
    domain, threshold, _ = np.array([name.split(":") for name in task]).T
    rating = columns["rating"][index]
    np.testing.assert_array_equal(columns["domain"][index].astype(str), domain)
    np.testing.assert_array_equal(y, holds(rating, threshold))
    counts = [np.bincount(rating[domain == name], minlength=6) for name in np.unique(domain)]
    assert np.max(counts) == 250
    # Stratified: every task has its domain's share of positive rows, as far as whole rows allow.
    for name in np.unique(domain):
        for limit in np.unique(threshold):
            own = (domain == name) & (threshold == limit)
            train = (own & (np.arange(len(y)) < len(data.y))).nonzero()[0]
            for part in np.unique(task[train]):
                chosen = train[task[train] == part]
                expected = np.mean(y[own] == 1) * len(chosen)
                assert abs(np.sum(y[chosen] == 1) - expected) < 2


def test_labels_of_thresholds_follow_the_printed_condition():
    data = load_sentiment("V", source="thresholds")
    columns = read_columns(locate("thresholds"))
    index, y, task = rows_of(data)
    threshold = np.array([data.threshold[name] for name in task])
    parts = np.array([{"t5": "5", "t4": ">3", "t2": "1"}[t] for t in columns["threshold"][index]])
    np.testing.assert_array_equal(parts, threshold)
    rating = columns["rating"][index]
    known = rating > 0
    assert known.sum() > 1000
    np.testing.assert_array_equal(y[known], holds(rating[known], threshold[known]))
    for limit, share in (("5", 0.25), (">3", 0.5), ("1", 0.25)):
        assert np.mean(y[threshold == limit] == 1) == pytest.approx(share, abs=0.005)


def test_fdu14_has_no_repeated_review():
    data = load_sentiment("I", source="fdu14")
    columns = read_columns(locate("fdu14"))
    index, y, task = rows_of(data)
    assert len({*zip(task, columns["text"][index], strict=True)}) == len(index) == 14_000
    np.testing.assert_array_equal(y, columns["y"][index])
    assert y.sum() == 0 and set(np.unique(data.task, return_counts=True)[1]) == {240}


def test_sentiment_features_are_learned_from_training_rows():
    data = load_sentiment("II", n_features=10**7)
    assert (data.X.sum(axis=0) > 0).all()
    few = load_sentiment("II", n_features=50)
    assert len(few.feature_names) == few.X.shape[1] == few.X_test.shape[1] == 50
    assert set(few.feature_names) < set(data.feature_names)


@pytest.mark.parametrize("target", PAIRS)
def test_ten_pairs_of_newsgroups(target):
    data = load_newsgroups(target, random_state=3)
    group = read_columns(locate("newsgroups"))["group"]
    index = np.concatenate([data.index, data.index_target, data.index_test])
    assert sorted(index) == list(range(18846))
    assert len(np.unique(data.task)) == 9 and target not in data.task
    assert set(data.task_target) == set(data.task_test) == {target}
    for end in ("", "_target", "_test"):
        place = data[f"y{end}"]
        pairs = [
            PAIRS[task][k] for task, k in zip(data[f"task{end}"], (1 - place) // 2, strict=True)
        ]
        assert group[data[f"index{end}"]].tolist() == pairs
        assert data[f"X{end}"].shape == (len(place), 500) and data[f"X{end}"].format == "csr"
    for label in (-1, 1):
        train, test = (np.sum(part == label) for part in (data.y_target, data.y_test))
        assert train == round(0.1 * (train + test))


@pytest.mark.parametrize("load", [partial(load_sentiment, "VI"), partial(load_newsgroups, 4)])
def test_a_seed_decides_the_split(load):
    one, same, other = (load(random_state=seed) for seed in (5, 5, 6))
    assert equal(one, same)
    assert not np.array_equal(one.index_test, other.index_test)


def test_newsgroup_features_are_learned_from_training_rows():
    one = load_newsgroups(4)
    every = load_newsgroups(4, n_features=10**7)
    seen = every.X.sum(axis=0) + every.X_target.sum(axis=0)
    assert (seen > 0).all()
    assert "nntp" in one.feature_names  # a header
    assert "nntp" not in load_newsgroups(4, headers=False).feature_names
