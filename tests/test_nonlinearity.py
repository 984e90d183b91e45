"""The log marginal likelihood that hinges add, without a stack that has them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from comtl import (
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskClassifier,
    MultitaskRegressor,
)
from comtl.evaluation import nonlinearity_evidence
from comtl.evaluation.nonlinearity import MIN_LOG_EVIDENCE, MOST_STEPS
from comtl.stacking.hinges import Hinges


def rows(depth, *, seed=0, count=300, classes=False):
    """Rows of ten tasks: the first column bends by ``depth``, the third has two values."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(count, 3)), np.arange(count) % 10
    X[:, 2] = X[:, 2] > 0
    slopes = 0.5 + 0.3 * rng.normal(size=(10, 3))
    score = (X * slopes[task]).sum(axis=1) + rng.normal(size=10)[task] + depth * np.abs(X[:, 0])
    noise = rng.logistic(size=count) if classes else rng.normal(size=count)
    return X, (score + noise > 0.5) if classes else score + noise, task


@pytest.mark.parametrize("classes", [False, True])
def test_it_is_the_difference_of_two_mixed_models(classes):
    X, y, task = rows(0.8, classes=classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    weights /= weights.mean()
    kind = HierarchicalClassifier if classes else HierarchicalRegressor
    expanded = Hinges.of(X, weights).expanded(X)
    assert expanded.shape[1] == 3 + 8
    plain, with_hinges = (
        kind("isotropic", shrink_common=True, max_iter=MOST_STEPS)
        .fit(columns, y, task=task, sample_weight=weights)
        .log_evidence_
        for columns in (X, expanded)
    )
    stack = MultitaskClassifier() if classes else MultitaskRegressor()
    found = nonlinearity_evidence(stack, X, y, task, weights)
    assert found == pytest.approx(with_hinges - plain, abs=1e-6 * abs(plain))


@pytest.mark.parametrize(
    ("model", "depth", "options", "most"),
    [
        *((MultitaskRegressor(), 0.8, {"seed": seed}, MIN_LOG_EVIDENCE) for seed in range(5)),
        (MultitaskClassifier(), 1.5, {"count": 2000, "classes": True}, 0.0),
    ],
    ids=str,
)
def test_it_tells_nonlinear_rows_from_linear_ones(model, depth, options, most):
    linear, nonlinear = (
        nonlinearity_evidence(model, *rows(bend, **options)) for bend in (0.0, depth)
    )
    assert linear < most <= MIN_LOG_EVIDENCE < nonlinear


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e4]), st.sampled_from([-7.0, 0.0, 100.0]))
def test_units_of_columns_and_target_do_not_matter(seed, factor, shift):
    X, y, task = rows(0.5, seed=seed, count=120)
    model = MultitaskRegressor()
    found = nonlinearity_evidence(model, factor * X + shift, factor * y + shift, task)
    assert found == pytest.approx(nonlinearity_evidence(model, X, y, task), abs=1e-2)


def test_columns_of_a_target_may_be_of_any_units():
    X, y, _ = rows(0.8)
    both = np.stack([y, y[::-1]], axis=1)
    found, scaled = (
        nonlinearity_evidence(MultitaskRegressor(), X, both * [1.0, unit]) for unit in (1.0, 1e5)
    )
    assert found > MIN_LOG_EVIDENCE and scaled == pytest.approx(found, abs=1e-2)


def test_rows_may_be_sparse_or_a_frame_with_the_task():
    X, y, task = rows(0.8)
    found = nonlinearity_evidence(MultitaskRegressor(), X, y, task)
    other = nonlinearity_evidence(MultitaskRegressor(), sparse.csr_array(X), y, task)
    assert other == pytest.approx(found, abs=1e-3)
    frame = pd.DataFrame(X, columns=["age", "dose", "sex"]).assign(site=task)
    model = MultitaskRegressor(task_column="site")
    assert nonlinearity_evidence(model, frame, y) == pytest.approx(found, abs=1e-9)
    assert model.basis is None and not hasattr(model, "tasks_")


def test_where_no_column_can_have_hinges_it_is_zero():
    X, y, task = rows(0.8)
    wide = np.random.default_rng(0).normal(size=(len(y), 300))
    for columns in (X[:, 2:], wide):
        assert nonlinearity_evidence(MultitaskRegressor(), columns, y, task) == 0.0


@pytest.mark.parametrize("weight", [1 / 300, 3.0, 500.0])
def test_units_of_weights_do_not_matter(weight):
    for depth in (0.0, 0.8):
        X, y, task = rows(depth)
        found, weighted = (
            nonlinearity_evidence(MultitaskRegressor(), X, y, task, weights)
            for weights in (None, np.full(len(y), weight))
        )
        assert weighted == pytest.approx(found, abs=1e-6)


def test_it_asks_for_a_stack():
    with pytest.raises(TypeError, match="model must be a MultitaskRegressor or"):
        nonlinearity_evidence(HierarchicalRegressor(), *rows(0.8))
