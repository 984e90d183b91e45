"""Synthetic sets and their truth."""

import numpy as np
import pytest

from comtl.datasets import SYNTHETIC, make_coclusters

SCALE = {"syn1": 2.0, "syn2": 2.0, "syn3": 3.5, "syn4": 2.0}
# Sums of the training targets at seed 0: results in the documentation rest on these numbers.
SUMS = [82.991270794, 2.194314412, 14.49795617, 79.910520814, 41.161665967]


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


@pytest.mark.parametrize(("name", "total"), list(zip(SYNTHETIC, SUMS, strict=True)))
def test_a_seed_decides_the_numbers(name, total):
    one, same, other = (SYNTHETIC[name](random_state=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one[key], same[key]) for key in one)
    assert not np.array_equal(one.X, other.X) and not np.array_equal(one.W, other.W)
    assert SYNTHETIC[name](random_state=0).y.sum() == pytest.approx(total, abs=1e-6)


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
