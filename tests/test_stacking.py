"""Weights of members, from rows that they did not see."""

import logging

import numpy as np
import pytest

from comtl import MultitaskRegressor
from comtl.losses import Logistic, Squared
from comtl.stacking.blending import blend

each_loss = pytest.mark.parametrize("loss", [Squared(), Logistic()])


def drawn(loss, rows, slopes, noise=1.0, seed=0):
    """Scores of members, and a target, of classes -1 and 1 unless the loss is squared."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((rows, len(slopes)))
    error = rng.standard_normal(rows) if loss.quadratic else rng.logistic(size=rows)
    target = scores @ slopes + noise * error
    return scores, target if loss.quadratic else np.where(target > 0.0, 1.0, -1.0)


@each_loss
def test_weights_of_members_are_optimal(loss):
    scores, target = drawn(loss, 200, [1.0, -0.5, 0.0, 0.0])
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    shares, shift = blend(loss, scores, target, weights)
    center = np.average(target, weights=weights) if loss.quadratic else 0.0
    slope = (scores - center).T @ (weights * loss.derivative(target, scores @ shares + shift))
    limit = 1e-8 if loss.quadratic else 0.05
    assert np.all(shares >= 0) and np.all(slope >= -limit)
    np.testing.assert_allclose(slope[shares > 1e-6], 0.0, atol=limit)
    if not loss.quadratic:
        gap = weights @ loss.derivative(target, scores @ shares + shift)
        assert abs(gap) < 0.05


@each_loss
def test_weights_are_drawn_to_a_member_where_chance_may_have_made_their_gain(loss):
    scores, target = drawn(loss, 300, [0.5, 0.2, 1.0, 0.0])
    best, near = (blend(loss, scores, target, np.ones(300), base)[0] for base in (None, 1))
    np.testing.assert_allclose(near, best, atol=0.1)
    # The member and noise: there is nothing to gain beyond it.
    alone = np.eye(4)[1]
    scores, target = drawn(loss, 300, alone)
    far, near = (blend(loss, scores, target, np.ones(300), base)[0] for base in (None, 1))
    assert np.abs(near - alone).sum() < 0.5 * np.abs(far - alone).sum()


@each_loss
def test_weights_that_sum_to_one_count_rows_alike(loss):
    scores, target = drawn(loss, 80, [0.5, 0.2, 1.0], noise=2.0)
    plain = blend(loss, scores, target, np.ones(80), 1)[0]
    assert 0.0 < plain[0] < blend(loss, scores, target, np.ones(80))[0][0]
    np.testing.assert_allclose(blend(loss, scores, target, np.full(80, 1.0 / 80), 1)[0], plain)
    # Rows told twice are rows of weight two.
    twice = (np.concatenate([it, it]) for it in (scores, target, np.ones(80)))
    expected = blend(loss, *twice, 1)[0]
    found = blend(loss, scores, target, np.full(80, 2.0), 1)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_stack_with_little_signal_leans_on_the_mixed_model():
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, task = rng.standard_normal((120, 4)), np.repeat(np.arange(12), 10)
        y = X[:, 0] + 2.0 * rng.standard_normal(120)
        model = MultitaskRegressor(cv=3).fit(X, y, task=task)
        shares.append(model.weights_["isotropic"] / sum(model.weights_.values()))
        assert model.members_["isotropic"].shrink_common
    assert np.mean(shares) > 0.4


def test_a_verbose_stack_has_a_line_for_each_member_and_fold(caplog):
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 3)), np.repeat(np.arange(4), 15)
    model = MultitaskRegressor(cv=2, verbose=1).fit(X, X[:, 0] + rng.normal(size=60), task=task)
    said = [record.getMessage() for record in caplog.records if record.name == "comtl"]
    members = [line.removeprefix("member fitted: ") for line in said if "member fitted" in line]
    # Some on all rows, all on the first fold, those not far behind on the other, and with a weight.
    assert 1 < members.count("isotropic") <= 3 and set(model.members_) <= set(members)
    assert len(set(members)) < len(members) <= 3 * len(set(members))
    folds = [line for line in said if line.startswith("fold ")]
    assert folds[:2] == ["fold 1 of 2 done", "fold 2 of 2 done"]
    assert folds[2:] in ([], [f"fold {number} of 2 of the trees done" for number in (1, 2)])
    assert len(said) == len(members) + len(folds) + 1
    assert sum(line.startswith("weights: ") for line in said) == 1
    assert logging.getLogger("comtl").filters == []
