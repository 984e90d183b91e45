"""Weights of members, from rows that they did not see."""

import numpy as np
import pytest

from comtl import MultitaskRegressor
from comtl.stacking.blending import blend_logistic, blend_squared


def test_weights_of_members_are_optimal():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((200, 4))
    truth = scores[:, 0] - 0.5 * scores[:, 1] + rng.standard_normal(200)
    weights = rng.uniform(0.5, 2.0, 200)
    found = blend_squared(scores, truth, weights)
    slope = scores.T @ (weights * (scores @ found - truth))
    assert np.all(found >= 0) and np.all(slope >= -1e-8)
    np.testing.assert_allclose(slope[found > 0], 0.0, atol=1e-8)
    signs = np.where(truth > 0.3, 1.0, -1.0)
    shares, shift = blend_logistic(scores, signs, weights)
    chance = 1.0 / (1.0 + np.exp(-(scores @ shares + shift)))
    gap = weights * (chance - (signs > 0))
    slope = scores.T @ gap
    assert np.all(shares >= 0) and np.all(slope > -0.05)
    np.testing.assert_allclose(slope[shares > 1e-6], 0.0, atol=0.05)
    assert abs(gap.sum()) < 0.05


@pytest.mark.parametrize("stack", ["values", "odds"])
def test_weights_are_drawn_to_a_member_where_chance_may_have_made_their_gain(stack):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((300, 4))

    def weights(truth, base):
        if stack == "values":
            return blend_squared(scores, truth, np.ones(300), base)
        return blend_logistic(scores, np.where(truth > 0, 1.0, -1.0), np.ones(300), base)[0]

    alone = np.eye(4)[1]
    told = scores @ [0.5, 0.2, 1.0, 0.0] + rng.standard_normal(300)
    best = weights(told, None)
    near = weights(told, 1)
    np.testing.assert_allclose(near, best, atol=0.1)
    # The member and noise: there is nothing to gain beyond it.
    noise = rng.standard_normal(300) if stack == "values" else rng.logistic(size=300)
    chance = scores[:, 1] + noise
    far, near = np.abs(weights(chance, None) - alone), np.abs(weights(chance, 1) - alone)
    assert near.sum() < 0.5 * far.sum()


def test_weights_that_sum_to_one_count_rows_alike():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((80, 3))
    truth = scores @ [0.5, 0.2, 1.0] + 2.0 * rng.standard_normal(80)
    signs, ones, shares = np.where(truth > 0, 1.0, -1.0), np.ones(80), np.full(80, 1.0 / 80)
    plain = blend_squared(scores, truth, ones, 1)
    assert 0.0 < plain[0] < blend_squared(scores, truth, ones)[0]
    np.testing.assert_allclose(blend_squared(scores, truth, shares, 1), plain)
    expected = blend_logistic(scores, signs, ones, 1)[0]
    np.testing.assert_allclose(blend_logistic(scores, signs, shares, 1)[0], expected)
    # Rows told twice are rows of weight two.
    twice = blend_squared(*(np.concatenate([it, it]) for it in (scores, truth, ones)), 1)
    np.testing.assert_allclose(blend_squared(scores, truth, 2.0 * ones, 1), twice)


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
