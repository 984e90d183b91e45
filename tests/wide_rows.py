"""Cells with more features than rows, that the tests of kernels share."""

import numpy as np
from scipy import sparse

from comtl.datafits.rows_datafit import RowsDatafit
from comtl.losses import Squared
from comtl.rows.design import Design

SIZES = (4, 7, 1, 5)


def wide(features, seed=0, packed=True, loss=None, picked=False):
    """Cells of four tasks."""
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    X = rng.standard_normal((n, features)) * (rng.random((n, features)) < 0.6)
    weights = rng.choice([0.0, 1.0, 2.0], n, p=[0.1, 0.6, 0.3])
    design = Design.standardized(sparse.csr_array(X) if packed else X, np.ones(n))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    rows = rng.permutation(n) if picked else None
    return RowsDatafit(design, y, weights, offsets, loss or Squared(), rows)
