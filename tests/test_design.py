"""The standardised view of the rows against rows standardised by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.losses import Squared
from comtl.rows import design as design_module
from comtl.rows.design import Design
from helpers import covariance_matrix, plain_design, random_factors

PACKED = [False, True]


def random_rows(seed=0, n=40, P=7, filled=0.5):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, P)) + 2.0) * (rng.random((n, P)) < filled)
    return X, rng.uniform(0.1, 3.0, n)


def by_hand(X, weights, center=True, scale=True):
    share = weights / weights.sum()
    X = X - share @ X if center else X
    spread = np.sqrt(share @ X**2)
    return X / np.where(spread > 1e-12, spread, np.inf) if scale else X


def pack(X, packed):
    return sparse.csr_array(X) if packed else X


def explicit(design):
    return design @ np.eye(design.shape[1])


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_standardized_equals_standardising_by_hand(packed, center, scale):
    X, weights = random_rows()
    expected = by_hand(X, weights, center, scale)
    design = Design.standardized(pack(X, packed), weights, center=center, scale=scale)
    assert_allclose(explicit(design), expected, atol=1e-12)
    assert_allclose(design.dense_rows(0, len(X)), expected, atol=1e-12)
    assert_allclose(design.dense_rows(3, 11), expected[3:11], atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 9), st.booleans())
def test_transpose_is_the_transpose(seed, n, P, packed):
    X, weights = random_rows(seed, n, P)
    design = Design.standardized(pack(X, packed), weights)
    rng = np.random.default_rng(seed)
    right, left = rng.standard_normal((P, 3)), rng.standard_normal((n, 3))
    forward = np.sum((design @ right) * left)
    assert_allclose(np.sum(right * design.transposed_matmul(left)), forward, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3, -3e7, 1e150, 1e-150])
@pytest.mark.parametrize("n", [1, 2, 50, 1000])
def test_constant_columns_become_zero(packed, value, n):
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.standard_normal(n), np.full(n, value)])
    for seed in range(60 if n < 3 else 10):
        weights = np.random.default_rng(seed).uniform(0.1, 3.0, n)
        design = Design.standardized(pack(X, packed), weights)
        assert design.inverse_scale[1] == design.shift[1] == 0.0
    assert np.all(explicit(design)[:, 1] == 0.0)


@pytest.mark.parametrize("packed", PACKED)
def test_rows_of_weight_zero_do_not_make_a_column_vary(packed):
    X, weights = random_rows()
    X[:, 1] = 5.0
    X[:4, 1], weights[:4] = 0.0, 0.0
    assert Design.standardized(pack(X, packed), weights).inverse_scale[1] == 0.0


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("side", [1_500, 4])
def test_columns_of_any_scale_look_alike(packed, side, monkeypatch):
    monkeypatch.setattr(design_module, "DENSE_SIDE", side)
    X, weights = random_rows(P=10)
    scales = np.array([1.0, 1e150, 1e-150, -1e150, 1e6, 1e-6, 1e100, 1e-100, 1e3, 1.0])
    plain = Design.standardized(pack(X, packed), weights)
    scaled = Design.standardized(pack(X * scales, packed), weights)
    signs = np.sign(scales)
    assert_allclose(explicit(scaled), explicit(plain) * signs, atol=1e-10)
    left = np.random.default_rng(0).standard_normal((len(X), 2))
    expected = plain.transposed_matmul(left) * signs[:, None]
    assert_allclose(scaled.transposed_matmul(left), expected, atol=1e-10)
    one, other = (covariance_matrix(d.covariance(weights, rank=3)) for d in (plain, scaled))
    assert np.isfinite(other).all()
    assert_allclose(np.trace(other), np.trace(one), rtol=1e-8)


def test_values_that_cannot_be_scaled_are_refused():
    X, weights = random_rows()
    with pytest.raises(ValueError, match="too large to square"):
        Design.standardized(X * 1e150, weights, scale=False)
    with pytest.raises(ValueError, match="Column 2 of X is too small"):
        Design.standardized(X * np.array([1, 1, 1e-310, 1, 1, 1, 1]), weights)


# ---- pooled second moments ----------------------------------------------------------------------


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("center", [True, False])
def test_covariance_of_few_columns_is_exact(packed, center, monkeypatch):
    monkeypatch.setattr(design_module, "_DENSE_ENTRIES", 50)
    X, weights = random_rows()
    design = Design.standardized(pack(X, packed), weights, center=center)
    other = np.random.default_rng(1).uniform(0.0, 2.0, len(X))
    expected = explicit(design).T @ (other[:, None] * explicit(design)) / other.sum()
    covariance = design.covariance(other)
    assert_allclose(covariance_matrix(covariance), expected, atol=1e-12)
    assert_allclose(covariance.basis.T @ covariance.basis, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("packed", PACKED)
def test_covariance_of_many_columns_keeps_leading_part_and_trace(packed, monkeypatch):
    monkeypatch.setattr(design_module, "DENSE_SIDE", 5)
    rng = np.random.default_rng(3)
    # Four strong directions over weak noise, so that the leading part is well determined.
    X = rng.standard_normal((60, 4)) * [20, 15, 12, 10] @ rng.standard_normal((4, 12))
    X = X + 0.01 * rng.standard_normal((60, 12)) + 1.0
    weights = rng.uniform(0.5, 2.0, 60)
    design = Design.standardized(pack(X, packed), weights, scale=False)
    other = rng.uniform(0.5, 2.0, 60)
    dense = explicit(design).T @ (other[:, None] * explicit(design)) / other.sum()
    covariance = design.covariance(other, rank=4)
    found = covariance_matrix(covariance)
    assert covariance.basis.shape == (12, 4)
    assert_allclose(np.trace(found), np.trace(dense), rtol=1e-10)
    values, basis = np.linalg.eigh(dense)
    rest = values[:-4].mean()
    values[:-4] = rest
    assert_allclose(found, (basis * values) @ basis.T, atol=1e-3 * rest + 1e-8 * values[-1])


# ---- memory -------------------------------------------------------------------------------------


def test_products_never_make_sparse_rows_dense(monkeypatch):
    """Scores, gradients, Hessian products and the low-rank covariance of 3,000 columns."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 3_000), density=0.01, random_state=rng, format="csr")
    weights, offsets = np.ones(500), np.array([0, 200, 500])

    def refuse(*args, **kwargs):
        raise AssertionError("sparse rows were made dense")

    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        for name in ("toarray", "todense", "__array__"):
            monkeypatch.setattr(kind, name, refuse, raising=False)
    # The column maxima are one row of the matrix, and are asked for as such.
    monkeypatch.setattr(design_module, "column_extent", lambda X, _: np.ones((3, X.X.shape[1])))
    design = Design.standardized(X, weights)
    fit = RowsDatafit(design, rng.standard_normal(500), weights, offsets, Squared())
    point = random_factors(0, 3_000, 2, 3)
    expansion = fit.quadratic_at(point)
    expansion.gradient(point.loadings)
    expansion.normal(point.F, point.loadings, point.random_intercepts)
    expansion.task_gradient(point.F)
    expansion.task_quadratic(point.F)
    assert fit.covariance.basis.shape == (3_000, 16)
    with pytest.raises(AssertionError, match="made dense"):
        design.dense_rows(0, 1)


@pytest.mark.parametrize("user", ["covariance", "of_table"])
def test_dense_blocks_of_sparse_rows_stay_small(user, monkeypatch):
    """Blocks are cut by what they take up once dense, not by what is stored."""
    rng = np.random.default_rng(0)
    n, P = 250_000, 40
    X = sparse.random_array((n, P), density=0.01, random_state=rng, format="csr")
    sizes = []
    dense_rows = Design.dense_rows

    def watched(self, start, stop):
        sizes.append((stop - start) * self.shape[1])
        return dense_rows(self, start, stop)

    monkeypatch.setattr(Design, "dense_rows", watched)
    design = plain_design(X)
    if user == "covariance":
        design.covariance(np.ones(n))
    else:
        GramDatafit.of_table(design, rng.standard_normal((n, 2)), np.ones(n))
    # The covariance serves a preconditioner: some of the rows will do.
    assert sum(sizes) <= (n * P if user == "of_table" else n * P // 2)
    assert max(sizes) <= design_module._DENSE_ENTRIES < n * P
