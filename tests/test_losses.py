"""Losses and links: values, derivatives by differences, scores of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.special import expit, xlogy

from comtl.losses import LOSSES, Identity, Log, Logistic, Logit, Poisson, Squared, sigmoid
from libraries import make

scores = st.floats(-30.0, 30.0)
labels = st.sampled_from([-1.0, 1.0])
TARGETS = {"logistic": labels, "poisson": st.sampled_from([0.0, 0.3, 1.0, 7.0, 1e6])}
"""Targets by the name of the loss; others take any number."""
SECOND_ORDER = [name for name in LOSSES if name != "huber"]
"""Losses whose curvature is the second derivative, not that of a parabola above."""


def draw_targets(data, name):
    return np.array([data.draw(TARGETS.get(name, scores))])


VALUES = {
    "squared": lambda y, score: (y - score) ** 2,
    "logistic": lambda y, score: np.log1p(np.exp(-y * score)),
    "poisson": lambda y, score: np.exp(score) - y * score + xlogy(y, y) - y,
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data(), score=scores)
def test_values(name, data, score):
    y = draw_targets(data, name)
    near = {"rtol": 1e-9, "atol": 1e-9 * (1.0 + y[0])} if name == "poisson" else {"rtol": 1e-12}
    assert_allclose(LOSSES[name].value(y, np.array([score])), VALUES[name](y, score), **near)


@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data(), score=scores)
def test_derivative_by_differences(name, data, score):
    loss, y, h = LOSSES[name], draw_targets(data, name), 1e-6
    score = np.array([score])
    above, below = loss.value(y, score + h), loss.value(y, score - h)
    rounding = 1e-9 * float(max(above[0], below[0]))
    slope = (above - below) / (2 * h)
    assert_allclose(loss.derivative(y, score), slope, rtol=1e-5, atol=1e-5 + rounding)


@pytest.mark.parametrize("name", SECOND_ORDER)
@given(data=st.data(), score=scores)
def test_curvature_by_differences(name, data, score):
    loss, y, h = LOSSES[name], draw_targets(data, name), 1e-5
    score = np.array([score])
    above, below = loss.derivative(y, score + h), loss.derivative(y, score - h)
    rounding = 1e-10 * float(max(abs(above[0]), abs(below[0])))
    bend = (above - below) / (2 * h)
    assert_allclose(loss.curvature(y, score), bend, rtol=1e-6, atol=1e-8 + rounding)


@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data())
def test_curvature_is_constant_exactly_where_the_loss_says_quadratic(name, data):
    y = np.full(3, draw_targets(data, name)[0])
    bends = LOSSES[name].curvature(y, np.array([-2.0, 0.0, 5.0]))
    assert (np.ptp(bends) == 0.0) == LOSSES[name].quadratic


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_serves_a_kind_of_target_and_says_what_it_is(name):
    loss = LOSSES[name]
    assert loss.regression_link is not None or loss.classification_link is not None
    assert loss.text
    assert loss.dispersion(6.0, 3.0) == (1.0 if name in ("logistic", "poisson") else 2.0)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e100, 1e300])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logistic_is_finite_and_right_for_extreme_scores(size, y):
    score, target = np.array([-size, size]), np.full(2, y)
    wrong = np.array([y > 0, y < 0])
    assert_allclose(Logistic().value(target, score), np.where(wrong, size, 0.0), atol=1e-40)
    assert_allclose(Logistic().derivative(target, score), np.where(wrong, -y, 0.0), atol=1e-40)
    assert_allclose(Logistic().curvature(target, score), 0.0, atol=1e-40)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [0.0, 1.0, 1e12])
def test_poisson_is_finite_and_convex_for_extreme_scores(dtype, y):
    score = np.array([-1e9, -500.0, 0.0, 50.0, 500.0, 1e9], dtype=dtype)
    target = np.full(6, y, dtype=dtype)
    value, slope = Poisson().value(target, score), Poisson().derivative(target, score)
    assert value.dtype == slope.dtype == dtype
    assert np.isfinite(value).all() and (value >= 0.0).all()
    assert (np.diff(slope) >= 0.0).all()
    bend = Poisson().curvature(target, score)
    assert np.isfinite(bend).all() and (bend >= 0.0).all()
    assert (Poisson().working_curvature(target, score) > 0.0).all()


def test_poisson_keeps_its_digits_at_large_counts():
    # About the minimum the loss is a parabola of curvature y.
    for y, off in ((1e9, 1e-4), (1e15, 1e-6)):
        value = Poisson().value(np.array([y]), np.array([np.log(y) + off]))
        assert_allclose(value, 0.5 * y * off**2, rtol=1e-3)


@given(arrays(float, 5, elements=st.floats(0.1, 50.0)), st.floats(-3.0, 3.0))
def test_group_optimum_is_the_shift_that_minimises(y, score):
    score = np.full(5, score)
    sums = [np.array([sum(f(y, score))]) for f in (Poisson().derivative, Poisson().curvature)]
    shift, bend = Poisson().group_optimum(*sums)
    # Half a count is added to both sums.
    assert_allclose(np.exp(shift), (y.sum() + 0.5) / (np.exp(score).sum() + 0.5), rtol=1e-9)
    assert_allclose(bend, y.sum() + 0.5, rtol=1e-9)
    shift, bend = Squared().group_optimum(*sums)
    assert_allclose(shift, -sums[0] / sums[1])
    assert bend is sums[1]


@given(scores)
def test_links_are_means(score):
    at = np.array([score])
    assert_allclose(sigmoid(at), expit(at), atol=1e-15)
    assert_allclose(Logit().mean(at), expit(at), atol=1e-15)
    assert_allclose(Log().mean(at), np.exp(at))
    assert Identity().mean(at) is at
    # The mean of a count does not overflow.
    assert np.isfinite(Log().mean(np.array([1e4]))).all()


@pytest.mark.parametrize("score", [-300.0, -50.0, 50.0, 300.0])
def test_logistic_keeps_its_digits_far_out(score):
    small, at = np.exp(-abs(score)), np.array([score])
    assert_allclose(Logistic().curvature(np.ones(1), at), small, rtol=1e-12)
    right = np.sign(at)
    assert_allclose(Logistic().derivative(right, at), -right * small, rtol=1e-12)
    assert_allclose(Logistic().value(right, at), small, rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_any_array_library(name):
    library, loss = make("strict"), LOSSES[name]
    rng = np.random.default_rng(0)
    y, score = np.sign(rng.normal(size=9)), 50.0 * rng.normal(size=9)
    y = np.abs(y) if name == "poisson" else y
    for part in (loss.value, loss.derivative, loss.curvature, loss.working_curvature):
        library.assert_same(part(library(y), library(score)), part(y, score), rtol=1e-12)
