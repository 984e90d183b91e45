"""Synthetic sets and their truth; files, splits and texts of the real ones."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from comtl.datasets import (
    SYNTHETIC,
    load_newsgroups,
    load_school,
    load_sentiment,
    make_coclusters,
    text,
)
from comtl.datasets.files import FILES
from comtl.datasets.splits import draw_evenly, share_of_each, shuffled_within
from comtl.datasets.text import count_terms

SCALE = {"syn1": 2.0, "syn2": 2.0, "syn3": 3.5, "syn4": 2.0}
# Sums of the training targets at seed 0: results in the documentation rest on these numbers.
SUMS = [82.991270794, 2.194314412, 14.49795617, 79.910520814, 41.161665967]
TEXTS = [
    "The dogs were running, running!",
    "A dog ran 42 times; it's a running dog.",
    "",
    "Cats hate dogs",
    "zebras hate zebras",
]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_weights_are_made_of_the_truth(name):
    data = SYNTHETIC[name](noise=0.0)
    np.testing.assert_array_equal(data.W, data.coef.T)
    if name in SCALE:
        core = data.S if name == "syn4" else np.eye(15)
        np.testing.assert_allclose(data.W, data.F @ core @ data.G.T / SCALE[name])
    np.testing.assert_allclose(data.y_test, (data.X_test @ data.W)[range(2250), data.task_test])


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize(("n_features", "n_tasks"), [(20, 30), (7, 4), (33, 50), (2, 1)])
def test_sizes_are_as_asked(name, n_features, n_tasks):
    data = SYNTHETIC[name](n_features=n_features, n_tasks=n_tasks, n_train=5, n_test=3)
    assert data.X.shape == (5 * n_tasks, n_features)
    assert data.X_test.shape == (3 * n_tasks, n_features)
    assert data.W.shape == (n_features, n_tasks)
    assert np.bincount(data.task).tolist() == [5] * n_tasks
    assert np.isfinite(data.y).all() and np.isfinite(data.y_test).all()


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_seed_decides_the_numbers(name):
    one, same, other = (SYNTHETIC[name](random_state=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one[key], same[key]) for key in one)
    assert not np.array_equal(one.X, other.X) and not np.array_equal(one.W, other.W)


def test_numbers_stay_what_they_were():
    sums = [SYNTHETIC[name](random_state=0).y.sum() for name in SYNTHETIC]
    np.testing.assert_allclose(sums, SUMS, atol=1e-6)


@pytest.mark.parametrize("name", ["syn1", "syn2"])
@pytest.mark.parametrize("n_tasks", [30, 31, 7])
def test_groups_use_their_own_latent_features(name, n_tasks):
    ranges = {"syn1": [(0, 5), (5, 10), (10, 15)], "syn2": [(0, 7), (3, 12), (8, 15)]}[name]
    data = SYNTHETIC[name](n_tasks=n_tasks)
    assert np.ptp(np.bincount(data.task_clusters, minlength=3)) <= 1
    for g, group in zip(data.G, data.task_clusters, strict=True):
        assert np.flatnonzero(g).tolist() == list(range(*ranges[group]))


@pytest.mark.parametrize("name", ["syn3", "syn4", "syn5"])
def test_relations_are_correlations(name):
    data = SYNTHETIC[name]()
    for relation, size in ((data.feature_relation, 20), (data.task_relation, 30)):
        np.testing.assert_allclose(np.diag(relation), 1.0)
        assert len(relation) == size and np.linalg.eigvalsh(relation).min() > 0
    assert "task_clusters" not in data and "feature_clusters" not in data


def test_coclusters_are_blocks():
    data = make_coclusters(spread=0.0)
    for task in range(3):
        rows = data.coef[data.task_clusters == task]
        assert np.ptp(rows, axis=0).max() == 0


LOADERS = {
    "school": load_school,
    "stars": load_sentiment,
    "thresholds": lambda **place: load_sentiment(source="thresholds", **place),
    "fdu14": lambda **place: load_sentiment("I", source="fdu14", **place),
    "newsgroups": load_newsgroups,
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_missing_file_is_named_with_its_source(name, tmp_path, monkeypatch):
    monkeypatch.delenv("COMTL_DATA", raising=False)
    for place in ({}, {"data_home": tmp_path}, {"data_home": tmp_path / "nowhere"}):
        with pytest.raises(FileNotFoundError, match=r"COMTL_DATA.*data_home.*comes from") as caught:
            LOADERS[name](**place)
        assert FILES[name].path in str(caught.value)
        assert FILES[name].source in str(caught.value)


@pytest.mark.parametrize("name", LOADERS)
def test_a_wrong_file_is_refused(name, tmp_path, monkeypatch):
    path = tmp_path / FILES[name].path
    path.parent.mkdir()
    path.write_bytes(b"not the data")
    monkeypatch.setenv("COMTL_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"checksum.*{FILES[name].sha256}"):
        LOADERS[name]()


def test_missing_packages_are_named(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ImportError, match=r"pyarrow.*comtl\[reproduce\]"):
        load_school(data_home=data_dir)
    text._stemmer.cache_clear()
    with pytest.raises(ImportError, match=r"snowballstemmer.*comtl\[reproduce\]"):
        count_terms(["a word neverseenbefore"])


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="experiment must be one of I, II"):
        load_sentiment("VIII")
    with pytest.raises(ValueError, match="source must be one of stars"):
        load_sentiment(source="books")
    with pytest.raises(ValueError, match="Experiment I only"):
        load_sentiment("II", source="fdu14")
    with pytest.raises(ValueError, match="from 1 to 10"):
        load_newsgroups(0)
    with pytest.raises(ValueError, match="train_share"):
        share_of_each(np.zeros(3), 1.0, np.random.default_rng(0))


def test_shares_are_taken_of_every_group():
    groups = np.random.default_rng(0).permutation(np.repeat([5, 7, 9], [1, 10, 40]))
    train = share_of_each(groups, 0.2, np.random.default_rng(1))
    assert [train[groups == group].sum() for group in (5, 7, 9)] == [1, 2, 8]


def test_rows_are_drawn_evenly_from_strata():
    rng = np.random.default_rng(0)
    strata = rng.permutation(np.repeat([0, 1, 2], [10, 30, 61]))
    rows = shuffled_within(strata, rng)
    parts = [rows[k::2] for k in range(2)]
    assert sorted(np.concatenate(parts)) == list(range(101))
    for part in parts:
        drawn, rest = draw_evenly(part, 20, rng)
        assert len(drawn) == 20 and sorted([*drawn, *rest]) == sorted(part)
        np.testing.assert_allclose(np.bincount(strata[drawn]), [2, 6, 12], atol=1)


def test_scores_are_those_of_scikit_learn():
    names, (X, X_test) = count_terms(TEXTS).tfidf(100, np.arange(4), np.array([4]))
    stems = {"dogs": "dog", "running": "run", "times": "time", "cats": "cat", "zebras": "zebra"}

    def analyse(text):
        words = [w.strip(".,;!").lower() for w in text.replace("'", " ").split()]
        words = [stems.get(w, w) for w in words if w.isalpha() and len(w) > 1]
        words = [w for w in words if w not in ENGLISH_STOP_WORDS]
        return [*words, *(" ".join(pair) for pair in pairwise(words))]

    peer = TfidfVectorizer(analyzer=analyse).fit(TEXTS[:4])
    assert sorted(names) == peer.get_feature_names_out().tolist()
    order = np.argsort(names)
    np.testing.assert_allclose(X.toarray()[:, order], peer.transform(TEXTS[:4]).toarray())
    np.testing.assert_allclose(X_test.toarray()[:, order], peer.transform(TEXTS[4:]).toarray())
    assert "run run" in names and X.dtype == np.float64 and X.format == "csr"


def test_terms_are_learned_from_the_first_rows_only():
    corpus = count_terms(TEXTS)
    names, (X, _) = corpus.tfidf(100, np.arange(4), np.array([4]))
    assert not any("zebra" in name for name in names)
    assert (X.sum(axis=0) > 0).all()
    assert corpus.tfidf(2, np.arange(4))[0] == ["dog", "run"]
