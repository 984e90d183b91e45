"""Tasks related by a covariance between them: the route for wide tables."""

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeClassifier

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.hierarchical.coregionalised import (
    CentredRows,
    ridge_scales,
    solve_related,
    task_relation,
)
from comtl.rows.design import Design
from comtl.stacking import multitask
from comtl.stacking.default_members import suits_components
from comtl.stacking.members import Shape
from comtl.stacking.stack_rows import principal_components
from helpers import plain_design


def test_signs_that_flip_between_tasks_are_learnt():
    """Text-like rows: the sign of what counts differs from task to task."""
    rng, task = np.random.default_rng(0), np.repeat(np.arange(6), 150)
    X = sparse.random_array((900, 2500), density=0.05, rng=rng, format="csr")
    sign = np.where(np.arange(6) % 2, 1.0, -1.0)
    y = (X @ rng.standard_normal(2500)) * sign[task] + 0.1 * rng.standard_normal(900)
    weights = np.ones(len(y))
    design = Design.standardized(X, weights, scale=False)
    rows = CentredRows(design, weights, np.arange(0, 901, 150))
    target = rows.center(y)
    relation = task_relation(rows, target, *ridge_scales(rows, target))
    off = ~np.eye(6, dtype=bool)
    assert np.corrcoef(relation[off], np.outer(sign, sign)[off])[0, 1] > 0.8
    model = MultitaskClassifier(cv=3).fit(X, y > 0, task=task)
    assert model.coef_.shape == (6, 2500)
    alike = np.corrcoef(model.coef_)
    assert np.mean(np.sign(alike[off]) == np.outer(sign, sign)[off]) > 0.9


@pytest.mark.parametrize("packed", [True, False])
def test_related_weights_equal_the_kernel_solution(packed):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 4, 9, 12])
    code = np.repeat(np.arange(3), np.diff(offsets))
    X = rng.standard_normal((12, 20)) * (rng.random((12, 20)) < 0.6)
    weights = rng.choice([1.0, 2.0], 12)
    design = Design.standardized(sparse.csr_array(X) if packed else X, weights)
    rows = CentredRows(design, weights, offsets)
    Z = X * design.inverse_scale - design.shift
    root = np.sqrt(weights)
    same = code[:, None] == code
    centre = np.eye(12) - same * np.outer(root, root) / (same @ weights)
    Z = centre @ (root[:, None] * Z)
    y = centre @ rng.standard_normal(12)
    C, rest, noise = rng.standard_normal((3, 1)), 0.4, 0.7
    omega = C @ C.T + rest * np.eye(3)
    kernel = (Z @ Z.T) * omega[np.ix_(code, code)]
    dual = np.linalg.solve(kernel + noise * np.eye(12), y)
    W = omega[:, code] @ (dual[:, None] * Z)
    found = solve_related(rows, y, C, rest, noise, tol=1e-12)
    np.testing.assert_allclose(found, W, atol=1e-8)


@pytest.mark.parametrize("features", [5, 60])
def test_sizes_of_weights_and_noise_are_most_likely(features):
    rng = np.random.default_rng(1)
    offsets = np.array([0, 30, 55, 100])
    code = np.repeat(np.arange(3), np.diff(offsets))
    X = rng.standard_normal((100, features))
    # With more features than rows, rows that come twice would tell of no noise at all.
    weights = rng.choice([0.0, 1.0, 2.0 if features == 5 else 1.0], 100, p=[0.1, 0.7, 0.2])
    W = 0.5 * rng.standard_normal((3, features))
    y = np.einsum("ij,ij->i", X, W[code]) + rng.standard_normal(100)
    rows = CentredRows(plain_design(X), weights, offsets)
    root = np.sqrt(weights)
    target = rows.center(root * y)

    def deviance(size, noise):
        total = 0.0
        for t in range(3):
            own = np.repeat(np.flatnonzero(code == t), weights[code == t].astype(int))
            covariance = noise * np.eye(len(own)) + size * X[own] @ X[own].T
            one = np.ones(len(own))
            inverse = np.linalg.inv(covariance)
            projected = inverse - np.outer(inverse @ one, one @ inverse) / (one @ inverse @ one)
            total += np.linalg.slogdet(covariance)[1] + np.log(one @ inverse @ one)
            total += y[own] @ projected @ y[own]
        return total

    found = ridge_scales(rows, target)
    best = deviance(*found)
    for size, noise in itertools.product((0.95, 1.0, 1.05), repeat=2):
        assert deviance(size * found[0], noise * found[1]) >= best - 1e-3
    assert features > 5 or 0.3 < found[1] < 2.0


def test_targets_without_signal_are_all_noise():
    rng = np.random.default_rng(0)
    design = plain_design(rng.standard_normal((200, 30)))
    rows = CentredRows(design, np.ones(200), np.array([0, 100, 200]))
    size, noise = ridge_scales(rows, rows.center(rng.standard_normal(200)))
    assert 30 * size < 0.2 * noise and 0.7 < noise < 1.4
    assert ridge_scales(rows, np.zeros(200))[0] < 1e-10


def test_a_small_task_among_large_ones_is_told_by_its_own_rows():
    """More rows than features in most tasks, none of which has to do with another."""
    rng = np.random.default_rng(0)
    sizes = np.array([60, 900, 900, 900])
    task = np.repeat(np.arange(4), sizes)
    X = sparse.random_array((len(task) + 500, 300), density=0.1, rng=rng, format="csr")
    W = 2.0 * rng.standard_normal((4, 300))
    own = np.append(task, np.zeros(500, dtype=int))
    y = np.asarray(X.multiply(W[own]).sum(axis=1)).ravel() + 0.5 * rng.standard_normal(len(own)) > 0
    with mock.patch("comtl.stacking.default_members.MOST_WORK", 0.0):
        model = MultitaskClassifier(cv=3).fit(X[: len(task)], y[: len(task)], task=task)
    found = model.score(X[len(task) :], y[len(task) :], task=own[len(task) :])
    alone = RidgeClassifier(1.0).fit(X[:60], y[:60]).score(X[len(task) :], y[len(task) :])
    assert found > alone - 0.03


@pytest.mark.parametrize("packed", [True, False])
def test_principal_components_keep_what_rows_have_in_common(packed):
    rng = np.random.default_rng(0)
    X = sparse.random_array((30, 200), density=0.2, rng=rng, format="csr")
    X = X if packed else rng.normal(5.0, 2.0, size=(30, 200))
    found = principal_components(X, scale=not packed)
    dense = X.toarray() if packed else (X - X.mean(axis=0)) / X.std(axis=0)
    dense = dense - dense.mean(axis=0)
    assert found.shape == (30, 29)
    np.testing.assert_allclose(found @ found.T, dense @ dense.T, atol=1e-9)


@pytest.mark.parametrize("packed", [True, False])
def test_folds_of_few_rows_are_fitted_to_principal_components(packed, monkeypatch):
    rng, task = np.random.default_rng(0), np.arange(90) % 3
    latent = rng.standard_normal((180, 5))
    X = latent @ rng.standard_normal((5, 4000)) + rng.standard_normal((180, 4000))
    y = latent @ rng.standard_normal(5) + 0.5 * rng.standard_normal(180)
    X = sparse.csr_array(np.where(X > 2.0, X, 0.0)) if packed else X
    (X, X_new), (y, y_new) = ((part[:90], part[90:]) for part in (X, y))
    shape = Shape(4000, 3, 3, sparse=packed, n_rows=90)
    assert suits_components(shape) and not suits_components(replace(shape, n_rows=3000))
    assert not suits_components(replace(shape, indicators=True))
    model = MultitaskRegressor(cv=3).fit(X, y, task=task)
    assert model.coef_.shape == (3, 4000) and model.members_.keys() == model.weights_.keys()
    monkeypatch.setattr(multitask, "suits_components", lambda _: False)
    same = MultitaskRegressor(cv=3).fit(X, y, task=task)
    error, expected = (np.std(one.predict(X_new, task=task) - y_new) for one in (model, same))
    assert error < 1.05 * expected < 0.8 * y_new.std()
