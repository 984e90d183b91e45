"""Which members a stack can afford as features grow: CPU seconds and error of three libraries.

``python benchmarks/bench_width.py`` fits `MultitaskRegressor` with all structures, with a few, and
by the task-covariance route alone.
"""

import time
import warnings
from unittest import mock

import numpy as np

from comtl import MultitaskRegressor
from comtl.stacking import default_members as library

LIBRARIES = {"all": (1e15, 1e15), "fewer": (0.0, 1e15), "related": (0.0, 0.0)}
"""Values of LITTLE_WORK and MOST_WORK that force each."""


def problem(P, T, n, seed):
    """Common coefficients, three directions and independent random slopes."""
    rng = np.random.default_rng(seed)
    common, rest = rng.normal(size=P), 0.3 * rng.normal(size=(T, P))
    W = (common + rng.normal(size=(T, 3)) @ rng.normal(size=(3, P)) + rest) / np.sqrt(P)
    parts = []
    for rows in (n, 100):
        task = np.repeat(np.arange(T), rows)
        # Features that hang together, as they do in tables.
        X = rng.normal(size=(T * rows, P // 4)) @ rng.normal(size=(P // 4, P)) / np.sqrt(P // 4)
        X += 0.5 * rng.normal(size=X.shape)
        y = np.einsum("ij,ij->i", X, W[task]) + 0.7 * rng.normal(size=len(task))
        parts.append((X, y, task))
    return parts


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Members by width\n")
    print("| features | tasks | rows a task | work | library | CPU s | test RMSE |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for P, T, n in ((40, 12, 40), (100, 12, 40), (100, 12, 150), (160, 12, 60), (60, 60, 40)):
        (X, y, task), (X_test, y_test, task_test) = problem(P, T, n, 0)
        for name, (little, most) in LIBRARIES.items():
            if name == "all" and T * P**3 > 2e7:
                continue
            with (
                mock.patch.object(library, "LITTLE_WORK", little),
                mock.patch.object(library, "MOST_WORK", most),
            ):
                start = time.process_time()
                model = MultitaskRegressor().fit(X, y, task=task)
                seconds = time.process_time() - start
            error = np.sqrt(np.mean((model.predict(X_test, task=task_test) - y_test) ** 2))
            work = f"{T * (P + 1) ** 3:.1e}"
            print(
                f"| {P} | {T} | {n} | {work} | {name} | {seconds:.0f} | {error:.4f} |", flush=True
            )


if __name__ == "__main__":
    main()
