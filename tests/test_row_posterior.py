"""The way through the rows comes to what the Grams say."""

from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from comtl import HierarchicalClassifier, HierarchicalRegressor
from comtl.arrays import segment_forms
from comtl.hierarchical import population
from comtl.hierarchical.covariances import Full
from comtl.hierarchical.posterior import Prior
from comtl.hierarchical.tangents import tangent_of
from comtl.linear import OutputColumns
from comtl.rows.fit_input import FitInput
from test_evidence import MEMBERS, covariance_of, likelihood_of, problem


def assert_close(one, other, names, share):
    """Whether parts of two posteriors differ by a share of the largest entry at most."""
    for name in names:
        expected = getattr(other, name)
        atol = share * np.abs(expected).max()
        assert_allclose(getattr(one, name), expected, atol=atol, err_msg=name)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("features", [2, 9])
@pytest.mark.parametrize("mean_variance", [1.0, np.inf])
def test_posteriors_agree(number, features, mean_variance):
    X, y, weights, offsets, _ = problem(number, tasks=7, features=features, rows=6)
    rng = np.random.default_rng(number)
    covariance = covariance_of(MEMBERS[number], rng, features)
    noise = rng.uniform(0.3, 1.0, 7)
    prior = Prior(covariance, noise, 0.5, mean_variance)
    one = likelihood_of(X, y, weights, offsets).infer(prior)
    by_rows = likelihood_of(X, y, weights, offsets, by_rows=True)
    other = by_rows.infer(prior)
    assert_close(other, one, ("log_evidence", "mean", "effects", "covariances"), 1e-9)
    assert_allclose(other.common.covariance, one.common.covariance, atol=1e-9)
    assert_allclose(other.common.determined, one.common.determined, atol=1e-8)
    for each in MEMBERS[number], Full():
        slopes = [
            tangent_of(each, found).contract([part.curvature for part in found.blocks])
            for found in (one, other)
        ]
        if each.variances != "matrix":  # Its basis is one of several.
            assert_allclose(*slopes, rtol=1e-6, atol=1e-7)
    rows = np.column_stack([X, np.ones(len(y))])
    forms = segment_forms(rows, one.covariances, offsets)
    assert_allclose(other.score_variances, forms, atol=1e-9)


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "full", "factor"])
@pytest.mark.parametrize("kind", ["common", "task", 2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_agree(structure, kind):
    """Of values, by the variances of their noise, and of so many classes."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(80, 12)), np.repeat(np.arange(16), 5)
    W = rng.normal(size=12) + 0.5 * rng.normal(size=(16, 12))
    y = np.einsum("ij,ij->i", X, W[task]) + rng.normal(size=80)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 80)
    if kind in (2, 3):
        y = np.digitize(y, np.quantile(y, np.arange(1, kind) / kind))
        plain = HierarchicalClassifier(structure, max_iter=8)
    else:
        plain = HierarchicalRegressor(structure, noise=kind, max_iter=8)
    found = []
    for few in (0.0, np.inf):
        with mock.patch.object(population, "FEW_ROWS", few):
            found.append(clone(plain).fit(X, y, task=task, sample_weight=weights))
    rows, summed = found
    assert_allclose(rows.coef_, summed.coef_, atol=1e-6)
    assert rows.log_evidence_ == pytest.approx(summed.log_evidence_, rel=1e-8)
    if kind in ("common", "task"):
        one, other = (model.predict(X, task=task, return_std=True) for model in found)
        assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("mean_variance", [1.0, np.inf])
def test_classes_agree(number, mean_variance):
    """Step by step, with a row of no weight and tasks of different size."""
    X, y, weights, offsets, _ = problem(number, tasks=7, features=9, rows=6)
    weights[0] = 0.0
    covariance = covariance_of(MEMBERS[number], np.random.default_rng(number), 9)
    prior = Prior(covariance, np.ones(7), 1.0, min(mean_variance, 3.0))
    summed, by_rows = (
        likelihood_of(X, y, weights, offsets, kind="classes", by_rows=way) for way in (False, True)
    )
    assert summed.n_rows == by_rows.n_rows
    for _ in range(len(MEMBERS)):
        one, other = summed.infer(prior), by_rows.infer(prior)
        assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)
        assert_close(other, one, ("mean", "effects"), 1e-7)
        summed, by_rows = summed.refreshed(one), by_rows.refreshed(other)


@pytest.mark.parametrize("features", [3, 20])
def test_the_shorter_way_is_taken(features):
    """As many rows as a task has, or as there are columns."""
    X, y, weights, offsets, _ = problem(0, tasks=4, features=20, rows=6)
    task = np.repeat(np.arange(4), np.diff(offsets))
    for model, target in ((HierarchicalRegressor(), y), (HierarchicalClassifier(), y > 0.0)):
        cells = FitInput(X[:, :features], target, task, weights).read(model)
        ready = model._population(cells, OutputColumns.of(cells))
        data = model._likelihood(ready).data
        longest = int(np.diff(offsets).max())
        assert max(block.rows.shape[1] for block in data.blocks) == min(longest, features + 1)
