"""Small tables that tests share."""

import numpy as np
import pandas as pd
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


def pupils(n=240, tasks=8):
    """Scores of pupils, with missing values, that depend on hours, sex and school."""
    rng = np.random.default_rng(0)
    school = rng.integers(0, tasks, n)
    frame = pd.DataFrame(
        {
            "school": [f"s{number:02d}" for number in school],
            "age": rng.normal(11, 1, n).round(2),
            "sex": rng.choice(["f", "m"], n),
            "meals": rng.choice(["yes", "no"], n),
            "hours": rng.exponential(5, n),
        }
    )
    level = 5 * rng.normal(size=tasks)
    frame["score"] = 50 + level[school] + frame.hours + 2 * (frame.sex == "f") + rng.normal(size=n)
    frame["passed"] = np.where(frame.score > frame.score.median(), "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "sex"] = None
    return frame
