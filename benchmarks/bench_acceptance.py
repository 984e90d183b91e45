"""Figures of the foundation: the rank-3 problem, new tasks on it, and one fit of big200.

`make bench` writes the result beside this file.
"""

import time
import warnings

import numpy as np
from problems import low_rank
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressor, TriFactorRegressor

MODELS = {
    "BiFactorRegressor(4)": lambda **kw: BiFactorRegressor(4, random_state=0, **kw),
    "TriFactorRegressor(6, 4)": lambda **kw: TriFactorRegressor(6, 4, random_state=0, **kw),
}


def rmse(model, data, tasks=None):
    kept = slice(None) if tasks is None else np.isin(data.task_test, tasks)
    guess = model.predict(data.X_test[kept], task=data.task_test[kept])
    return float(np.sqrt(np.mean((data.y_test[kept] - guess) ** 2)))


def adapted(make, seed):
    """Thirty tasks train; ten rows each of five more are adapted to."""
    data = low_rank(seed, n_tasks=35)
    old, new = data.task < 30, (data.task >= 30) & (np.arange(len(data.y)) % 30 < 10)
    model = make().fit(data.X[old], data.y[old], task=data.task[old])
    model = model.adapt(data.X[new], data.y[new], task=data.task[new])
    return rmse(model, data, np.arange(30, 35))


def fitted(make, seed, init):
    data = low_rank(seed)
    return rmse(make(init=init).fit(data.X, data.y, task=data.task), data)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# Acceptance\n\nWritten by `python benchmarks/bench_acceptance.py`: test RMSE at the")
    print("default penalties, mean of seeds 0 to 4, and CPU seconds of one thread.\n")
    print("| | svd start | random start | adapt, 10 rows |\n| --- | --- | --- | --- |")
    with threadpool_limits(1):
        for name, make in MODELS.items():
            starts = [np.mean([fitted(make, s, i) for s in range(5)]) for i in ("svd", "random")]
            new = np.mean([adapted(make, s) for s in range(5)])
            print(f"| {name} | {starts[0]:.3f} | {starts[1]:.3f} | {new:.3f} |", flush=True)
        data = low_rank(0, 200, 200, 50, 5)
        begun = time.process_time()
        model = BiFactorRegressor(5, alpha_task=0.1, tol=1e-5, random_state=0)
        model.fit(data.X, data.y, task=data.task)
        spent = time.process_time() - begun
        error = rmse(model, data)
        print(f"\nbig200 (P=T=200, 50 rows, K=5, alpha_task=0.1): {spent:.2f} s, RMSE {error:.3f}.")
