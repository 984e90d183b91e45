"""Small tables that the tests of reading share."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from comtl.rows.observations import Observations
from comtl.rows.reading import read_training


class Model(BaseEstimator):
    def __init__(self, task_column=None):
        self.task_column = task_column


def train(X, y, task=None, column=None, **kwargs) -> Observations:
    return read_training(Model(column), X, y, task, **kwargs)


X3 = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
Y3 = np.array([1.0, 2.0, 3.0])
SPARSE = [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.dok_array]


def frame(make, **columns):
    return make({"age": [1.0, 2.0, 3.0], "school": ["b", "a", "b"], "size": [4, 5, 6], **columns})
