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


def problem(kind, tasks=4, rows=12, features=3):
    """Rows of tasks with weights of their own: X, y as ``kind`` takes it, and the tasks."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((tasks * rows, features))
    W = rng.standard_normal((tasks, features))
    y = (X * W[task]).sum(axis=1) + 0.3 * rng.standard_normal(len(task))
    return X, (y > 0).astype(int) if "Classifier" in kind.__name__ else y, task
