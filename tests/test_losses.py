"""Losses: values, derivatives by differences, scores of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from comtl.losses import Logistic, Squared, sigmoid

LOSSES = [Squared(), Logistic()]
scores = st.floats(-30.0, 30.0)
labels = st.sampled_from([-1.0, 1.0])


@given(scores, st.floats(-30.0, 30.0))
def test_squared_is_the_square_without_a_half(score, y):
    assert Squared().value(np.array([y]), np.array([score])) == (y - score) ** 2


@given(scores, labels)
def test_logistic_is_the_log_likelihood(score, y):
    value = Logistic().value(np.array([y]), np.array([score]))
    assert_allclose(value, np.log1p(np.exp(-y * score)), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@given(score=scores, y=labels)
def test_derivative_by_differences(loss, score, y):
    y, score, h = np.array([y]), np.array([score]), 1e-6
    slope = (loss.value(y, score + h) - loss.value(y, score - h)) / (2 * h)
    assert_allclose(loss.derivative(y, score), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@given(score=scores, y=labels)
def test_curvature_by_differences(loss, score, y):
    y, score, h = np.array([y]), np.array([score]), 1e-5
    bend = (loss.derivative(y, score + h) - loss.derivative(y, score - h)) / (2 * h)
    assert_allclose(loss.curvature(y, score), bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_curvature_is_constant_exactly_where_the_loss_says_quadratic(loss):
    y = np.ones(3)
    bends = loss.curvature(y, np.array([-2.0, 0.0, 5.0]))
    assert (np.ptp(bends) == 0.0) == loss.quadratic


@pytest.mark.parametrize("size", [1e2, 1e4, 1e100, 1e300])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logistic_is_finite_and_right_for_extreme_scores(size, y):
    score, target = np.array([-size, size]), np.full(2, y)
    wrong = np.array([y > 0, y < 0])
    assert_allclose(Logistic().value(target, score), np.where(wrong, size, 0.0), atol=1e-40)
    assert_allclose(Logistic().derivative(target, score), np.where(wrong, -y, 0.0), atol=1e-40)
    assert_allclose(Logistic().curvature(target, score), 0.0, atol=1e-40)


@given(scores)
def test_sigmoid_is_the_logistic_function(score):
    assert_allclose(sigmoid(np.array([score])), 1.0 / (1.0 + np.exp(-score)), atol=1e-15)


@pytest.mark.parametrize("score", [-300.0, -50.0, 50.0, 300.0])
def test_logistic_keeps_its_digits_far_out(score):
    small, at = np.exp(-abs(score)), np.array([score])
    assert_allclose(Logistic().curvature(np.ones(1), at), small, rtol=1e-12)
    right = np.sign(at)
    assert_allclose(Logistic().derivative(right, at), -right * small, rtol=1e-12)
    assert_allclose(Logistic().value(right, at), small, rtol=1e-12)


def test_dispersion_is_estimated_for_squared_loss_and_one_for_logistic():
    assert Squared().dispersion(6.0, 3.0) == 2.0
    assert Logistic().dispersion(6.0, 3.0) == 1.0
