"""One loss, three ways to hold the rows: dense, sparse and as Grams."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from comtl.arrays import blocks as blocks_module
from comtl.arrays import segment_sum
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.losses import Logistic, Squared
from comtl.rows import design as design_module
from comtl.rows.design import Design
from helpers import Problem, covariance_matrix, numeric_gradient, problem, random_factors

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
P, T, K = 6, 5, 3
LOSSES = [Squared(), Logistic()]


@pytest.fixture(params=[False, True], ids=["whole", "blocks"], autouse=True)
def small_blocks(request, monkeypatch):
    """Every test runs once on whole arrays and once cut into small blocks."""
    if request.param:
        monkeypatch.setattr(blocks_module, "CACHE_ROWS", (4, 4))
        monkeypatch.setattr(blocks_module, "KERNEL_ROWS", 2)
        monkeypatch.setattr(
            blocks_module, "CHUNK_ENTRIES", dict.fromkeys(["dense", "sparse"], (8 * P, 8 * P))
        )
        monkeypatch.setattr(blocks_module, "THREAD_WORK", {"dense": 1, "sparse": 1})
        monkeypatch.setattr(design_module, "_DENSE_ENTRIES", 5 * P)


def everything(fit, point, seed=0):
    """All that an expansion offers at a point, on random arguments."""
    rng = np.random.default_rng(seed)
    expansion = fit.quadratic_at(point)
    loadings, step = rng.standard_normal((T, 2)), rng.standard_normal((P, 2))
    intercepts, features = rng.standard_normal(T), rng.standard_normal((P, 4))
    quadratic = expansion.task_quadratic(features)
    line = fit.along_segment(point, point.with_(F=rng.standard_normal(point.F.shape)))
    return {
        "value": expansion.value,
        "curvature_sums": expansion.curvature_sums,
        "gradient": expansion.gradient(loadings),
        "normal": expansion.normal(step, loadings, intercepts),
        "task_gradient": expansion.task_gradient(features),
        "hessian": quadratic.hessian,
        "slope": quadratic.gradient,
        "covariance": covariance_matrix(fit.covariance),
        "line": (line(0.0), line(0.3), line(1.0)),
        "n_weighted": fit.n_weighted,
    }


def assert_same(one, other, point):
    left, right = everything(one, point), everything(other, point)
    for name, value in left.items():
        pairs = zip(value, right[name], strict=True) if isinstance(value, tuple) else []
        for a, b in pairs or [(value, right[name])]:
            assert_allclose(a, b, err_msg=name, **CLOSE)


# ---- they agree ---------------------------------------------------------------------------------


@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_dense_sparse_and_gram_agree(core, seed):
    data = problem(seed, P, T, 7)
    point = random_factors(seed, P, T, K, 2 if core else K, core=core)
    assert_same(data.rows(), data.rows(packed=True), point)
    assert_same(data.rows(), data.gram(), point)


@pytest.mark.parametrize("seed", range(3))
def test_dense_and_sparse_agree_for_logistic_loss(seed):
    data, point = problem(seed, P, T, 7, labels=True), random_factors(seed, P, T, K)
    assert_same(data.rows(Logistic()), data.rows(Logistic(), packed=True), point)


def table(seed=0, n=11, missing=0.3, packed=False):
    """Rows shared by the tasks with some cells missing, and the same rows stacked by hand."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, P)), rng.choice([-1.0, 1.0], (n, T))
    seen = rng.random((n, T)) >= missing
    seen[0] = True
    task, row = np.nonzero(seen.T)
    offsets = np.concatenate([[0], np.cumsum(seen.sum(0))])
    weights = rng.uniform(0.5, 2.0, n)
    design = Design.standardized(sparse.csr_array(X) if packed else X, weights)
    y = Y[row, task]
    stacked = Design(X[row], design.shift, design.inverse_scale)
    return design, stacked, (y, weights[row], offsets), row, (Y, weights)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_cells_of_shared_rows_equal_stacked_rows(loss, packed):
    design, stacked, cells, row, _ = table(packed=packed)
    one, other = RowsDatafit(design, *cells, loss, rows=row), RowsDatafit(stacked, *cells, loss)
    assert_same(one, other, random_factors(1, P, T, K))


def test_a_complete_table_equals_its_cells():
    design, stacked, cells, row, (Y, weights) = table(missing=0.0)
    one = GramDatafit.of_table(design, Y, weights)
    assert one.same_design
    other = GramDatafit.of_rows(stacked, *cells)
    assert not other.same_design
    point = random_factors(2, P, T, K)
    assert_same(one, other, point)
    assert_same(one, RowsDatafit(design, *cells, Squared(), rows=row), point)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_value_is_the_weighted_loss_of_every_row(seed, n):
    data, point = problem(seed, P, T, n), random_factors(seed, P, T, K)
    X = data.design.dense_rows(0, len(data.y))
    score = np.sum(X * point.coef.T[data.codes], axis=1) + point.intercepts[data.codes]
    for fit in (data.rows(), data.gram()):
        expected = np.sum(data.weights * (data.y - score) ** 2)
        assert_allclose(fit.quadratic_at(point).value, expected, rtol=1e-9, atol=1e-9)
    labels = Problem(data.X, np.where(data.y > 0, 1.0, -1.0), data.weights, data.offsets)
    expected = np.sum(data.weights * np.log1p(np.exp(-labels.y * score)))
    assert_allclose(labels.rows(Logistic()).quadratic_at(point).value, expected, rtol=1e-9)


# ---- derivatives --------------------------------------------------------------------------------


def make_fit(kind):
    data = problem(3, P, T, 4, labels=kind == "logistic")
    if kind == "gram":
        return data.gram()
    return data.rows(Logistic() if kind == "logistic" else Squared())


KINDS = ["squared", "gram", "logistic"]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_differences(kind):
    fit, point = make_fit(kind), random_factors(4, P, T, K, 2, core=True)
    expansion = fit.quadratic_at(point)
    by_factor, by_intercept = expansion.gradient(point.loadings)
    expected = numeric_gradient(lambda F: fit.quadratic_at(point.with_(F=F)).value, point.F)
    assert_allclose(by_factor, expected, rtol=1e-5, atol=1e-5)
    expected = numeric_gradient(
        lambda b: fit.quadratic_at(point.with_(random_intercepts=b)).value, point.random_intercepts
    )
    assert_allclose(by_intercept, expected, rtol=1e-5, atol=1e-5)
    expected = numeric_gradient(lambda G: fit.quadratic_at(point.with_(G=G)).value, point.G)
    by_task = expansion.task_gradient(point.feature_loadings)
    assert_allclose(by_task, expected, rtol=1e-5, atol=1e-5)
    slopes = expansion.task_quadratic(point.feature_loadings).gradient
    assert_allclose(slopes, np.c_[by_task, by_intercept], **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_normal_is_the_derivative_of_the_gradient(kind):
    fit, point = make_fit(kind), random_factors(5, P, T, K)
    rng = np.random.default_rng(0)
    step, push, h = rng.standard_normal((P, K)), rng.standard_normal(T), 1e-6
    image = fit.quadratic_at(point).normal(step, point.loadings, push)
    ends = [
        fit.quadratic_at(
            point.with_(F=point.F + s * step, random_intercepts=point.random_intercepts + s * push)
        ).gradient(point.loadings)
        for s in (h, -h)
    ]
    for found, ahead, behind in zip(image, *ends, strict=True):
        assert_allclose(found, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_task_quadratic_bends_as_the_loss_does(kind):
    fit, point = make_fit(kind), random_factors(6, P, T, K)
    rng = np.random.default_rng(0)
    step, h = rng.standard_normal((T, K + 1)), 1e-6
    quadratic = fit.quadratic_at(point).task_quadratic(point.F)
    assert_allclose(quadratic.hessian, quadratic.hessian.transpose(0, 2, 1), **CLOSE)

    def slopes(share):
        deviations = point.random_intercepts + share * step[:, K]
        moved = point.with_(G=point.G + share * step[:, :K], random_intercepts=deviations)
        return fit.quadratic_at(moved).task_quadratic(point.F).gradient

    image = (quadratic.hessian @ step[:, :, None])[:, :, 0]
    assert_allclose(image, (slopes(h) - slopes(-h)) / (2 * h), rtol=1e-5, atol=1e-5)
    moved = quadratic.translated(step)
    assert_allclose(moved.gradient, quadratic.gradient + image, **CLOSE)
    if fit.loss.quadratic:
        assert_allclose(moved.gradient, slopes(1.0), **CLOSE)
        assert_allclose(
            quadratic.hessian[:, -1, -1], fit.quadratic_at(point).curvature_sums, err_msg="corner"
        )


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_backward_is_the_transpose_of_scores(seed, packed, cells):
    if cells:
        design, _, parts, row, _ = table(seed, packed=packed)
        fit = RowsDatafit(design, *parts, Squared(), rows=row)
    else:
        fit = problem(seed, P, T, 5).rows(packed=packed)
    rng = np.random.default_rng(seed)
    Q, M = rng.standard_normal((P, K)), rng.standard_normal((T, K))
    values = rng.standard_normal(len(fit.y))
    forward = np.sum(values * fit.scores(Q, M, np.zeros(T)))
    assert_allclose(
        np.sum(Q * fit.backward(values, segment_sum(values, fit.offsets), M)),
        forward,
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_line_is_the_loss_on_the_segment(kind):
    fit, point = make_fit(kind), random_factors(7, P, T, K)
    stop = point.with_(
        G=random_factors(8, P, T, K).G, random_intercepts=0.0 * point.random_intercepts
    )
    line = fit.along_segment(point, stop)
    for share in (0.0, 0.25, 1.0):
        assert_allclose(
            line(share), fit.quadratic_at(point.interpolate(stop, share)).value, rtol=1e-10
        )
