"""The hierarchical engine: posteriors against dense normals, evidence that never falls."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from comtl import HierarchicalClassifier, HierarchicalRegressor
from comtl.arrays import segment_forms
from comtl.datafits.gram_datafit import GramDatafit
from comtl.hierarchical.covariances import (
    COVARIANCE_FAMILIES,
    CovarianceFamily,
    Diagonal,
    EffectCovariance,
    Factor,
    Full,
    InterceptOnly,
    Isotropic,
)
from comtl.hierarchical.em import fit_em, maximise
from comtl.hierarchical.laplace import ClassRows, EachClassRow, SummedClasses
from comtl.hierarchical.likelihoods import Bernoulli, Gaussian
from comtl.hierarchical.posterior import Prior, _dense_forms
from comtl.hierarchical.tangents import tangent_of
from comtl.hierarchical.task_data import TaskRows
from helpers import plain_design


class Spiked(CovarianceFamily):
    """A family of a user: one variance and one correlation of all slopes."""

    def project(self, matrix):
        slopes = matrix[:-1, :-1]
        each = np.diagonal(slopes).mean()
        between = (slopes.sum() - np.trace(slopes)) / max(slopes.size - len(slopes), 1)
        found = np.zeros_like(matrix)
        found[:-1, :-1] = between + (each - between) * np.eye(len(slopes))
        found[-1, -1] = matrix[-1, -1]
        return found


MEMBERS = [InterceptOnly(), Diagonal(), Isotropic(), Factor(1), Full(), Spiked()]
FAMILIES = [*MEMBERS, Full(prior_weight=1.0), Factor(2)]


def problem(seed=0, tasks=4, features=3, rows=6):
    """Rows of tasks of different size, the intercept as last column."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, rows + 1, tasks)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.standard_normal((offsets[-1], features))
    code = np.repeat(np.arange(tasks), sizes)
    W = rng.standard_normal((tasks, features)) + rng.standard_normal(features)
    y = np.einsum("np,np->n", X, W[code]) + rng.standard_normal(tasks)[code]
    y += 0.5 * rng.standard_normal(len(y))
    weights = rng.choice([1.0, 2.0], len(y))
    return X, y, weights, offsets, code


def likelihood_of(X, y, weights, offsets, *, kind="common noise", by_rows=False):
    """Of values, or of their signs as classes, from Grams or from the rows."""
    rows = np.column_stack([X, np.ones(len(y))])
    if kind == "classes":
        data = ClassRows(rows, np.where(y > 0.0, 1.0, -1.0), weights, offsets)
        return Bernoulli.of(EachClassRow(data) if by_rows else SummedClasses(data))
    if by_rows:
        return Gaussian(kind == "own noise", TaskRows.of(rows, y, weights, offsets))
    sums = GramDatafit.of_rows(plain_design(X), y, weights, offsets)
    return Gaussian(kind == "own noise", TaskRows.of_grams(sums))


def covariance_of(family, rng, features=3):
    """Random covariance of a family."""
    A = rng.standard_normal((features + 1, features + 1))
    if family.variances == "matrix":
        return EffectCovariance.of(family.project(A @ A.T))
    variances = np.diagonal(A @ A.T).copy()
    if family.variances == "all":
        variances[:-1] = variances[0]
    directions = np.vstack(
        [rng.standard_normal((features, family.n_directions)), np.zeros((1, family.n_directions))]
    )
    return family.starting(EffectCovariance(variances, directions))


def dense(X, y, weights, code, prior):
    """Restricted likelihood and posterior of β + u_t from the normal law of all rows."""
    # A weight of w is w rows.
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    rows, y, code = np.column_stack([X, np.ones(len(y))])[again], y[again], code[again]
    B, q = prior.covariance.matrix, rows.shape[1]
    same = code[:, None] == code
    V = same * (rows @ B @ rows.T) + np.diag(prior.noise[code])
    precision = np.linalg.inv(V)
    stiff = rows.T @ precision @ rows + np.diag(prior.mean_precision)
    mean = np.linalg.solve(stiff, rows.T @ precision @ y)
    gap = y - rows @ mean
    total = gap @ precision @ gap + mean @ (prior.mean_precision * mean)
    finite = prior.mean_precision[prior.mean_precision > 0]
    log = -0.5 * (
        np.linalg.slogdet(V)[1]
        + np.linalg.slogdet(stiff)[1]
        - np.log(finite).sum()
        + total
        + (len(y) - (q - len(finite))) * np.log(2 * np.pi)
    )
    C = np.linalg.inv(stiff)
    effects, spread = [], []
    for t in range(len(prior.noise)):
        cross = B @ (rows * (code == t)[:, None]).T
        gain = cross @ precision
        effects.append(gain @ gap)
        left = np.eye(q) - gain @ rows
        spread.append(B - gain @ cross.T + left @ C @ left.T)
    return log, mean, np.array(effects), np.array(spread)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("mean_variance", [np.inf, 0.8])
def test_posterior_and_evidence_equal_those_of_the_dense_normal(number, mean_variance):
    X, y, weights, offsets, code = problem(number, rows=9)
    covariance = covariance_of(MEMBERS[number], np.random.default_rng(number))
    noise = np.random.default_rng(1).uniform(0.3, 1.0, len(offsets) - 1)
    prior = Prior(covariance, noise, 0.5, mean_variance)
    found = likelihood_of(X, y, weights, offsets).infer(prior)
    log, mean, effects, spread = dense(X, y, weights, code, prior)
    assert found.log_evidence == pytest.approx(log, rel=1e-9)
    assert_allclose(found.mean, mean, atol=1e-9)
    assert_allclose(found.effects, effects, atol=1e-9)
    assert_allclose(found.covariances, spread, atol=1e-9)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.parametrize("mean_variance", [np.inf, 0.8])
@pytest.mark.parametrize("kind", ["common noise", "classes", "classes by rows"])
def test_gradients_are_those_of_finite_differences(number, mean_variance, kind):
    X, y, weights, offsets, _ = problem(number, rows=9)
    rng, family = np.random.default_rng(number), MEMBERS[number]
    kind, by_rows = kind.removesuffix(" by rows"), kind.endswith("by rows")
    likelihood = likelihood_of(X, y, weights, offsets, kind=kind, by_rows=by_rows)
    if kind == "classes":  # A plane may part them.
        mean_variance = min(mean_variance, 3.0)
    tasks, noise = len(offsets) - 1, 1.0 if kind == "classes" else 0.5
    prior = Prior(covariance_of(family, rng), np.full(tasks, noise), noise, mean_variance)
    posterior = likelihood.infer(prior)
    tangent = tangent_of(family, posterior)
    gradient = tangent.contract([part.curvature for part in posterior.blocks])
    symmetric = np.ones((4, 4)) if family.variances == "matrix" else None
    for _ in range(3):
        change = rng.standard_normal(len(gradient))
        if symmetric is not None:
            square = change.reshape(4, 4)
            change = (square + square.T).ravel()
        if isinstance(family, Spiked):  # Only changes within the family count.
            change = family.project(change.reshape(4, 4)).ravel()
        step = 1e-5 / np.abs(change).max()
        ends = [
            likelihood.infer(replace(prior, covariance=tangent.moved(way * change))).log_evidence
            for way in (-step, step)
        ]
        slope = (ends[1] - ends[0]) / (2.0 * step)
        assert 0.5 * gradient @ change == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("family", [InterceptOnly(), Isotropic(), Diagonal(), Factor(2)])
@pytest.mark.parametrize("by_rows", [False, True])
def test_the_curvature_is_that_of_products(family, by_rows):
    X, y, weights, offsets, _ = problem(0, tasks=9, rows=9)
    covariance = covariance_of(family, np.random.default_rng(1))
    prior = Prior(covariance, np.full(9, 0.7), 0.7, 0.8)
    posterior = likelihood_of(X, y, weights, offsets, by_rows=by_rows).infer(prior)
    tangent, data = tangent_of(family, posterior), posterior.data
    beyond = data.counts.copy()
    for block in data.blocks:
        beyond[block.tasks] -= block.targets.shape[1]
    matrix = tangent.curvature(prior.noise, beyond)
    vector = np.random.default_rng(2).standard_normal(len(matrix))
    found, own, weighed = tangent.change(vector[:-1]), 0.7 * vector[-1], []
    for part, change in zip(posterior.blocks, found, strict=True):
        weighed.append(part.inverse @ (change + own * np.eye(change.shape[1])) @ part.inverse)
    traces = sum(0.7 * np.trace(one, axis1=1, axis2=2).sum() for one in weighed)
    expected = np.append(tangent.contract(weighed), traces + beyond.sum() * vector[-1])
    assert_allclose(matrix @ vector, expected, rtol=1e-10)


def fit(likelihood, family, **options):
    """All steps of a fit."""
    options = {"max_iter": 60, "tol": 0.0, **options}
    return list(fit_em(likelihood, family, **options))


def never_falls(stages, energy=0.0):
    """Whether the objective rises but for rounding.

    There is much of it where rows can be met next to exactly, and where common slopes vanish.
    ``energy`` is the sum of squares that the noise is a part of.
    """
    path = np.array([stage.objective for stage in stages])
    noise = np.array([stage.prior.noise.min() for stage in stages[1:]])
    common = np.array([stage.prior.mean_variance for stage in stages[1:]])
    slack = 1e-7 * (1.0 + np.abs(path[-1])) + 1e-11 * energy / noise + 1e-14 / common
    return bool(np.all(np.diff(path) >= -slack))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    family=st.sampled_from(FAMILIES),
    kind=st.sampled_from(["common noise", "own noise", "classes"]),
    tasks=st.integers(2, 6),
    by_rows=st.booleans(),
)
def test_the_evidence_or_its_bound_never_falls(seed, family, kind, tasks, by_rows):
    features = 8 if by_rows else 3
    X, y, weights, offsets, _ = problem(seed, tasks, features)
    likelihood = likelihood_of(X, y, weights, offsets, kind=kind, by_rows=by_rows)
    energy = 0.0 if kind == "classes" else weights @ y**2
    assert never_falls(fit(likelihood, family), energy)


def dependent(seed):
    """Enough rows for free common slopes, of parts with their total, or of all levels of a kind."""
    X, y, weights, offsets, code = problem(seed, tasks=8, rows=30)
    rng = np.random.default_rng(seed)
    if seed % 2:
        X = np.column_stack([X * rng.lognormal(2.0, 1.0, X.shape[1]), X[:, 0]])
        X[:, -1] = X[:, :-1].sum(axis=1)
    else:
        X = np.column_stack([np.eye(3)[rng.integers(0, 3, len(y))], X[:, 0]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y + rng.choice([0.0, 5.0]) * rng.standard_normal(8)[code], weights, offsets


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), family=st.sampled_from(FAMILIES), by_rows=st.booleans())
def test_the_evidence_never_falls_with_columns_that_depend_on_each_other(seed, family, by_rows):
    X, y, weights, offsets = dependent(seed)
    likelihood = likelihood_of(X, y, weights, offsets, by_rows=by_rows)
    stages = fit(likelihood, family, max_iter=60)
    assert np.isinf(stages[-1].prior.mean_variance)
    assert never_falls(stages, weights @ y**2)
    # Of the direction that the rows leave open the common slopes have nothing.
    open_direction = np.linalg.svd(X)[2][-1]
    assert abs(open_direction @ stages[-1].posterior.mean[:-1]) < 1e-6


def test_the_evidence_of_classes_is_nearly_the_integral():
    """One task, an intercept only: the evidence is an integral over one number and the mean."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(12) < 0.7, 1.0, -1.0)
    offsets = np.array([0, 6, 12])
    likelihood = likelihood_of(np.zeros((12, 1)), signs, np.ones(12), offsets, kind="classes")
    prior = Prior(EffectCovariance.diagonal(np.array([0.0, 0.5])), np.ones(2), 1.0, 1.0)
    found = likelihood.infer(prior).log_evidence
    grid = np.linspace(-8.0, 8.0, 801)
    density = np.exp(-0.5 * grid**2 / 0.5) / np.sqrt(2 * np.pi * 0.5)
    step = grid[1] - grid[0]
    likely = []
    for b in grid:  # the common intercept is free, so it is integrated with weight one
        each = []
        for part in (signs[:6], signs[6:]):
            score = -np.logaddexp(0.0, -part[:, None] * (b + grid)).sum(axis=0)
            each.append(np.sum(np.exp(score) * density) * step)
        likely.append(np.prod(each))
    evidence = np.log(np.sum(likely) * step)
    assert found == pytest.approx(evidence, abs=0.05)


@pytest.mark.parametrize("by_rows", [False, True])
def test_weights_of_classes_are_the_most_likely(by_rows):
    X, y, weights, offsets, code = problem(1, rows=9)
    rows, signs = np.column_stack([X, np.ones(len(y))]), np.where(y > 0.0, 1.0, -1.0)
    covariance = covariance_of(Full(), np.random.default_rng(0))
    prior = Prior(covariance, np.ones(4), 1.0, 0.8)
    found = likelihood_of(X, y, weights, offsets, kind="classes", by_rows=by_rows).infer(prior)
    inverse, precision = np.linalg.inv(covariance.matrix), prior.mean_precision

    def slope(mean, effects):
        scores = np.einsum("np,np->n", rows, mean + effects[code])
        each = (weights * signs / (1.0 + np.exp(signs * scores)))[:, None] * rows
        own = np.array([each[code == t].sum(axis=0) for t in range(4)]) - effects @ inverse
        return np.append(own.ravel(), each.sum(axis=0) - precision * mean)

    assert np.abs(slope(found.mean, found.effects)).max() < 1e-5
    assert np.abs(slope(found.mean, 0.9 * found.effects)).max() > 0.01


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_a_maximum_is_flat(family):
    """At the end no change of noise or scale raises the evidence."""
    *told, _ = problem(3, tasks=12, rows=12)
    likelihood, goal = likelihood_of(*told), {"max_iter": 3000, "tol": 1e-11}
    *_, end = fit(likelihood, family, **goal)
    best = end.objective
    covariance = end.prior.covariance
    groups = np.array([0, 0, 0, 1]) if not isinstance(family, Diagonal | Full) else np.arange(4)
    if family.refines and isinstance(family, Full):  # The prior is about an isotropic covariance.
        *_, start = fit(likelihood, Isotropic(), **goal)
        family = family.with_prior(start.prior.covariance.raised(1e-3))
    for share in (0.99, 1.01):
        louder = replace(end.prior, noise=end.prior.noise * share)
        assert likelihood.infer(louder).log_evidence + family.log_prior(covariance) < best + 1e-4
        for number in np.unique(groups):
            scales = np.where(groups == number, share, 1.0)
            other = EffectCovariance(
                covariance.variances * scales**2, covariance.directions * scales[:, None]
            )
            value = likelihood.infer(replace(end.prior, covariance=other)).log_evidence
            assert value + family.log_prior(other) < best + 1e-4


def test_few_steps_reach_what_many_of_em_do():
    """EM steps, from the same start: the moments of the effects given the rows."""
    rng = np.random.default_rng(0)
    tasks, rows = 40, 10
    X = rng.standard_normal((tasks * rows, 4))
    code = np.repeat(np.arange(tasks), rows)
    y = X[:, 0] + 0.05 * rng.standard_normal(tasks)[code] + rng.standard_normal(len(code))
    likelihood = likelihood_of(X, y, np.ones(len(y)), np.arange(0, len(y) + 1, rows))
    start = EffectCovariance.diagonal(np.full(5, 0.1))
    prior = Prior(start, np.full(tasks, 0.5), 0.5, np.inf)
    *_, fast = maximise(likelihood, Isotropic(), prior, max_iter=8, tol=0.0)
    plain, table = prior, np.column_stack([X, np.ones(len(y))])
    for _ in range(100):
        found = likelihood.infer(plain)
        gap = y - np.sum(table * found.weights[code], axis=1)
        spread = segment_forms(table, found.covariances, np.arange(0, len(y) + 1, rows))
        noise = float(np.mean(gap**2 + spread))
        grams = np.einsum("tmq,tmr->tqr", *[table.reshape(tasks, rows, 5)] * 2) / plain.noise[0]
        B = plain.covariance.matrix
        within = np.linalg.inv(np.linalg.inv(B) + grams)
        shrink = within @ grams
        within = within + shrink @ found.common.covariance @ np.swapaxes(shrink, 1, 2)
        moments = (within.diagonal(axis1=1, axis2=2) + found.effects**2).mean(axis=0)
        moments[:-1] = moments[:-1].mean()
        plain = Prior(EffectCovariance.diagonal(moments), np.full(tasks, noise), noise, np.inf)
    assert fast.posterior.log_evidence > likelihood.infer(plain).log_evidence


def test_a_family_is_one_class_and_a_line_in_the_registry(monkeypatch):
    monkeypatch.setitem(COVARIANCE_FAMILIES, "spiked", Spiked)
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((3000, 4)), np.repeat(np.arange(300), 10)
    W = 1.0 + rng.standard_normal((300, 1)) + 0.5 * rng.standard_normal((300, 4))
    y = np.einsum("np,np->n", X, W[task]) + rng.standard_normal(3000)
    labels = np.sign(y)
    found = HierarchicalRegressor("spiked").fit(X, y, task=task)
    assert_allclose(found.slope_covariance_, 1.0 + 0.25 * np.eye(4), atol=0.25)
    plain = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    assert found.log_evidence_ > plain.log_evidence_ + 100.0
    classes = HierarchicalClassifier("spiked", tol=1e-4).fit(X, labels, task=task)
    assert classes.score(X, labels, task=task) > 0.8
    assert found.predict(X, task=task, return_std=True)[1].shape == (3000,)


@pytest.mark.parametrize("kind", ["common noise", "own noise", "classes"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_fits_start_from_the_population_of_a_larger_one(family, kind):
    X, y, weights, offsets, _ = problem(1, tasks=12, rows=20)
    *_, whole = fit(likelihood_of(X, y, weights, offsets, kind=kind), family)
    # A fold: the rows of some tasks, whose fit starts where that of all ended.
    part = offsets[:8]
    rows = slice(0, part[-1])
    fold = likelihood_of(X[rows], y[rows], weights[rows], part, kind=kind)
    for prior, likelihood in ((whole.prior, whole.likelihood), (whole.prior, fold)):
        first, second = fit(likelihood, family, max_iter=1, warm=prior)
        assert first.step == 0 and never_falls([first, second])
        assert first.prior.covariance is prior.covariance
        assert second.prior.center is prior.center
        assert len(fit(likelihood, family, max_iter=0, warm=prior)) == 1
    again = fit(whole.likelihood, family, max_iter=0, warm=whole.prior)[0]
    assert again.objective == pytest.approx(whole.objective, rel=1e-12)


def test_common_weights_that_say_nothing_vanish_within_a_few_steps():
    """Plain steps take a thousand and more: the variance of the common weights goes to zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rest = rng.choice([-1.0, 1.0], 60), np.ones(60), np.array([0, 60])
    ends = []
    for rows in (X, 0.0 * X):
        likelihood = likelihood_of(rows, *rest, kind="classes")
        ends.append(fit(likelihood, InterceptOnly(), max_iter=200, tol=1e-6)[-1])
    stage, alone = ends
    assert stage.converged and stage.step <= 60
    assert stage.prior.mean_variance < 1e-3
    assert stage.objective == pytest.approx(alone.objective, abs=1e-2)


def test_quadratic_forms_of_segments():
    rng = np.random.default_rng(0)
    rows, matrices = rng.standard_normal((9, 3)), rng.standard_normal((3, 3, 3))
    offsets = np.array([0, 1, 7, 9])
    code = np.repeat(np.arange(3), np.diff(offsets))
    expected = [row @ matrices[t] @ row for row, t in zip(rows, code, strict=True)]
    assert_allclose(segment_forms(rows, matrices, offsets), expected)


@pytest.mark.parametrize("rank", [28, 20])
def test_covariances_of_fixed_effects_come_back_from_their_forms(rank):
    root = np.random.default_rng(0).standard_normal((28, rank))
    level, more, less = _dense_forms(root @ root.T)
    found = level * np.eye(28) + more.T @ more - less.T @ less
    np.testing.assert_allclose(found, root @ root.T, atol=1e-12 * np.abs(root @ root.T).max())
