"""The way through the rows comes to what the Grams say."""

from dataclasses import fields, replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comtl import HierarchicalClassifier, HierarchicalRegressor
from comtl.hierarchical import population
from comtl.hierarchical.likelihoods import Bernoulli, Gaussian
from comtl.hierarchical.logistic_bound import ClassTable
from comtl.hierarchical.posterior import Prior
from comtl.hierarchical.task_data import TaskGrams, TaskRows, padded
from comtl.linear import OutputColumns
from comtl.rows.fit_input import FitInput
from test_evidence import FAMILIES, MEMBERS, classes, covariances, fit, grams, never_falls, problem


def told(X, y, weights, offsets):
    return TaskRows.of(np.column_stack([X, np.ones(len(y))]), y, weights, offsets)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("features", [2, 9])
@pytest.mark.parametrize("mean_variance", [1.0, np.inf])
def test_posteriors_agree(number, features, mean_variance):
    X, y, weights, offsets, _ = problem(number, tasks=7, features=features, rows=6)
    rng = np.random.default_rng(number)
    covariance = covariances(features, rng)[number]
    noise = rng.uniform(0.3, 1.0, 7)
    prior = Prior(covariance, noise, 0.5, mean_variance)
    data = told(X, y, weights, offsets)
    one = Gaussian(False, grams(X, y, weights, offsets)).infer(prior)
    other = Gaussian(False, data).infer(prior)
    for field in fields(one):
        if field.name not in ("covariances", "score_variances"):
            expected = getattr(one, field.name)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                getattr(other, field.name), expected, atol=1e-9 * scale, err_msg=field.name
            )
    found = data.covariances(prior, other)
    np.testing.assert_allclose(found, one.covariances, atol=1e-9)
    rows = padded(np.column_stack([X, np.ones(len(y))]), offsets)
    forms = np.einsum("tmq,tqr,tmr->tm", rows, found, rows)
    np.testing.assert_allclose(other.score_variances, forms, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    family=st.sampled_from(FAMILIES),
    kind=st.sampled_from(["common noise", "own noise", "classes"]),
)
def test_the_evidence_never_falls(seed, family, kind):
    X, y, weights, offsets, _ = problem(seed, 5, features=8)
    likelihood, energy = Gaussian(kind == "own noise", told(X, y, weights, offsets)), y**2
    if kind == "classes":
        rows = np.column_stack([X, np.ones(len(y))])
        likelihood, energy = (
            Bernoulli.of(ClassTable.of(rows, np.sign(y), weights, offsets).bound),
            0.0 * y,
        )
    assert never_falls(fit(likelihood, family, (5, 8)), weights @ energy)


def few_rows():
    """Sixteen tasks of five rows each on twelve features."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(80, 12)), np.repeat(np.arange(16), 5)
    W = rng.normal(size=12) + 0.5 * rng.normal(size=(16, 12))
    y = np.einsum("ij,ij->i", X, W[task]) + rng.normal(size=80)
    return X, y, task, rng


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "full", "factor"])
@pytest.mark.parametrize("noise", ["common", "task"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_agree(structure, noise):
    X, y, task, rng = few_rows()
    weights = rng.choice([0.5, 1.0, 3.0], 80)
    found = []
    for few in (0.0, np.inf):
        with mock.patch.object(population, "FEW_ROWS", few):
            model = HierarchicalRegressor(structure, noise=noise, max_iter=8)
            found.append(model.fit(X, y, task=task, sample_weight=weights))
    rows, summed = found
    np.testing.assert_allclose(rows.coef_, summed.coef_, atol=1e-6)
    assert rows.log_evidence_ == pytest.approx(summed.log_evidence_, rel=1e-8)
    for one, other in zip(
        rows.predict(X, task=task, return_std=True),
        summed.predict(X, task=task, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("mean_variance", [1.0, np.inf])
def test_bounds_agree(number, mean_variance):
    """Step by step, with a row of no weight and tasks of different size."""
    X, y, weights, offsets, _ = problem(number, tasks=7, features=9, rows=6)
    weights[0] = 0.0
    covariance = covariances(9, np.random.default_rng(number))[number]
    prior = Prior(covariance, np.ones(7), 1.0, mean_variance)
    rows = np.column_stack([X, np.ones(len(y))])
    told = rows, np.where(y > 0.0, 1.0, -1.0), weights, offsets
    summed, by_rows = classes(*told), Bernoulli.of(ClassTable.of(*told).bound)
    assert summed.n_rows == by_rows.n_rows
    for _ in range(len(MEMBERS)):
        one, other = summed.infer(prior), by_rows.infer(prior)
        assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)
        for name in ("mean", "mean_covariance", "effects", "moments", "pull", "stiffness"):
            expected = getattr(one, name)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                getattr(other, name), expected, atol=1e-7 * scale, err_msg=name
            )
        summed, _ = summed.updated(prior, one, 0.0)
        # What suits the posterior is a matter of it, not of the prior that comes next.
        by_rows, _ = by_rows.updated(replace(prior, mean_variance=3.0), other, 0.0)


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "full", "factor"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_of_classes_agree(structure, classes):
    X, y, task, rng = few_rows()
    y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 80)
    found = []
    for few in (0.0, np.inf):
        with mock.patch.object(population, "FEW_ROWS", few):
            model = HierarchicalClassifier(structure, max_iter=8)
            found.append(model.fit(X, y, task=task, sample_weight=weights))
    rows, summed = found
    np.testing.assert_allclose(rows.coef_, summed.coef_, atol=1e-6)
    assert rows.log_evidence_ == pytest.approx(summed.log_evidence_, rel=1e-8)


def test_the_shorter_way_is_taken_for_classes():
    X, y, weights, offsets, _ = problem(0, tasks=4, features=20, rows=6)
    task, labels = np.repeat(np.arange(4), np.diff(offsets)), y > 0.0
    for features, kind in ((20, TaskRows), (3, TaskGrams)):
        model = HierarchicalClassifier("isotropic", max_iter=1)
        cells = FitInput(X[:, :features], labels, task, weights).read(model)
        ready = model._population(cells, OutputColumns.of(cells))
        assert isinstance(ready.bernoulli().bound.data, kind)


def test_the_shorter_way_is_taken():
    X, y, weights, offsets, _ = problem(0, tasks=4, features=20, rows=6)
    task = np.repeat(np.arange(4), np.diff(offsets))
    for features, kind in ((20, TaskRows), (3, TaskGrams)):
        model = HierarchicalRegressor("isotropic", max_iter=1)
        cells = FitInput(X[:, :features], y, task, weights).read(model)
        ready = model._population(cells, OutputColumns.of(cells))
        assert isinstance(ready.gaussian(heteroscedastic=False).data, kind)
