"""Files, splits and texts of the real sets."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from comtl_reproduction.loaders import load_newsgroups, load_school, load_sentiment
from comtl_reproduction.loaders.files import FILES
from comtl_reproduction.loaders.splits import draw_evenly, share_of_each, shuffled_within
from comtl_reproduction.loaders.text import count_terms

TEXTS = [
    "The dogs were running, running!",
    "A dog ran 42 times; it's a running dog.",
    "",
    "Cats hate dogs",
    "zebras hate zebras",
]

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
