"""Sparse rows of torch: never dense, the numbers of SciPy's."""

import numpy as np
import pytest
from scipy import sparse

from comtl import BiFactorClassifier, BiFactorRegressor, BiFactorRegressorCV, TriFactorRegressor
from comtl.arrays import DeviceCSR
from comtl.rows.design import Design
from libraries import make

torch = pytest.importorskip("torch", reason="torch is not installed")

N, P, T = 200, 30, 5
RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(N, P)) * (RNG.random((N, P)) < 0.2)
DENSE[:, 3], DENSE[:, 4] = 0.0, 2.0
TASK = RNG.integers(0, T, N)
Y = DENSE[:, :5].sum(1) + DENSE[:, 5] * TASK + 0.1 * RNG.normal(size=N)
FIXED = {"max_iter": 4, "tol": 0.0}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support"),
]


def packed(values, layout="csr", width=64):
    rows = torch.asarray(np.asarray(values, dtype=f"float{width}"))
    return rows.to_sparse_csr() if layout == "csr" else rows.to_sparse_coo()


def no_dense(monkeypatch):
    def refuse(*args):
        raise AssertionError("made dense")

    monkeypatch.setattr(DeviceCSR, "dense", refuse)


@pytest.mark.parametrize("center", [True, False])
def test_standardised_rows(center):
    def picked(design):
        return design.picked(np.array([7, 2, 7])).dense_rows(0, 3)

    weights = RNG.uniform(0.1, 1.0, N)
    one = Design.standardized(DeviceCSR.of(packed(DENSE)), torch.asarray(weights), center=center)
    other = Design.standardized(sparse.csr_array(DENSE), weights, center=center)
    right, left = RNG.normal(size=(P, 3)), RNG.normal(size=(N, 3))
    for found, expected in (
        (one.shift, other.shift),
        (one.inverse_scale, other.inverse_scale),
        (one @ torch.asarray(right), other @ right),
        (one.transposed_matmul(torch.asarray(left)), other.transposed_matmul(left)),
        (one.dense_rows(5, 20), other.dense_rows(5, 20)),
        (picked(one), picked(other)),
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-10)
    spread = one._mean_square(torch.asarray(weights), weights.sum())
    assert spread == pytest.approx(other._mean_square(weights, weights.sum()))


@pytest.mark.parametrize("width", [64, 32])
@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize(
    "model,y",
    [
        (BiFactorRegressor(2), Y),
        (TriFactorRegressor(2, 2), Y),
        (BiFactorClassifier(2), np.digitize(Y, [np.median(Y)])),
        (BiFactorClassifier(2), np.digitize(Y, np.quantile(Y, [0.3, 0.6]))),
    ],
    ids=["bi", "tri", "two", "three"],
)
def test_fits(model, y, layout, width):
    library = make("torch", width)
    model.set_params(**FIXED).fit(packed(DENSE, layout, width), library(y), task=TASK)
    found = model.coef_, model.predict(packed(DENSE, layout, width), task=TASK)
    rows = sparse.csr_array(DENSE)
    expected = model.fit(rows, y, task=TASK)
    library.assert_same(found[0], expected.coef_)
    if width == 64 or model._classification is False:
        library.assert_same(found[1], expected.predict(rows, task=TASK))


def test_rows_are_not_made_dense(monkeypatch):
    monkeypatch.setattr("comtl.rows.design.DENSE_SIDE", 4)
    monkeypatch.setattr("comtl.engine.problem.DENSE_SIDE", 4)
    no_dense(monkeypatch)
    rows = packed(DENSE)
    model = BiFactorRegressor(2, **FIXED).fit(rows, torch.asarray(Y), task=TASK)
    found = model.predict(rows, task=TASK)
    expected = BiFactorRegressor(2, **FIXED).fit(sparse.csr_array(DENSE), Y, task=TASK)
    np.testing.assert_allclose(found, expected.predict(DENSE, task=TASK), rtol=1e-7)


def test_a_column_may_hold_the_task():
    rows = np.concatenate([DENSE[:, :7], TASK[:, None], DENSE[:, 7:]], axis=1)
    model = BiFactorRegressor(2, task_column=7, **FIXED)
    found = model.fit(packed(rows), torch.asarray(Y)).predict(packed(rows))
    expected = model.fit(sparse.csr_array(rows), Y).predict(sparse.csr_array(rows))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("residual", [False, True])
def test_new_tasks(residual):
    fresh = RNG.integers(T, T + 2, N)

    def said(rows, to):
        model = BiFactorRegressor(2, **FIXED).fit(rows, to(Y), task=TASK)
        grown = model.adapt(rows, to(Y**2), task=fresh, residual=residual)
        return grown.predict(rows, task=fresh)

    found = said(packed(DENSE), torch.asarray)
    np.testing.assert_allclose(found, said(sparse.csr_array(DENSE), np.asarray), rtol=1e-6)


def test_shared_rows_and_searches():
    table = np.where(RNG.random((N, 3)) < 0.2, np.nan, np.stack([Y, Y**2, -Y], 1))
    options = {"alphas": [0.1, 10.0], "cv": 2, **FIXED}

    def said(rows, to):
        return BiFactorRegressorCV(2, **options).fit(rows, to(table)).coef_

    found = said(packed(DENSE), torch.asarray)
    np.testing.assert_allclose(found, said(sparse.csr_array(DENSE), np.asarray), rtol=1e-6)


def test_values_that_are_not_finite_are_refused():
    rows = DENSE.copy()
    rows[3, 4] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        BiFactorRegressor(2).fit(packed(rows), torch.asarray(Y), task=TASK)
