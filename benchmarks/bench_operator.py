"""The operators at the hardware's speed, a whole fit in plain passes, predict, and peers.

A plain pass is one `X @ V` and one `X.T @ R` by NumPy at the same shapes, in the same run.
`make bench` writes the result beside this file.
"""

import time
import warnings

import numpy as np
from problems import low_rank
from scipy import sparse
from sklearn.linear_model import MultiTaskLasso
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressor, TriFactorRegressor
from comtl.arrays.blocks import RowBlocks, added, single_blas


def best(*works, repeats=9, clock=time.perf_counter):
    """Shortest time of each of several works, taken in turns: the machines are noisy."""
    times = [[] for _ in works]
    for _ in range(repeats):
        for spent, work in zip(times, works, strict=True):
            begun = clock()
            work()
            spent.append(clock() - begun)
    return [min(spent) for spent in times]


def csr(rows, columns, filled, seed=0):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(0, columns, (rows, filled), dtype=np.int32), axis=1)
    ends = np.arange(0, rows * filled + 1, filled, dtype=np.int32)
    values = rng.standard_normal(rows * filled)
    return sparse.csr_array((values, places.ravel(), ends), shape=(rows, columns))


def operators():
    print("\n## Fused operator: product and transpose while a block is in cache\n")
    print("100,000 × 500 float64. Floor: 4·N·P·K operations at the rate of square dgemm, or one")
    print("read of X (400 MB) where that takes longer.\n")
    print("| rows | K | plain pass ms | fused ms | times the plain rate | GFLOP/s | of dgemm |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    X, square = rng.standard_normal((100_000, 500)), rng.standard_normal((2_000, 2_000))
    for name, rows in (("dense", X), ("CSR, 1 % nonzero", csr(100_000, 500, 5))):
        blocks = RowBlocks(rows)
        for K in (1, 5, 8, 10, 16, 32):
            V, R = rng.standard_normal((500, K)), rng.standard_normal((100_000, K))

            def fused(blocks=blocks, V=V):
                def part(number):
                    return added(b.backward(b.forward(V)) for b in blocks.chunk(number))

                return added(blocks.each(part, V.shape[1]))

            plain, dgemm = best(lambda V=V, R=R, X=rows: (X @ V, X.T @ R), lambda: square @ square)
            with single_blas():
                (spent,) = best(fused)
            rate = 4.0 * blocks.nnz * K / spent / 1e9
            share = f"{rate / (16.0 / dgemm):.0%}" if rows is X else ""
            print(
                f"| {name} | {K} | {1e3 * plain:.1f} | {1e3 * spent:.1f} | {plain / spent:.2f} | "
                f"{rate:.1f} | {share} |"
            )


def rmse(model, data):
    gap = data.y_test - model.predict(data.X_test, task=data.task_test)
    each = [np.sqrt(np.mean(gap[data.task_test == t] ** 2)) for t in np.unique(data.task_test)]
    return np.sqrt(np.mean(gap**2)), np.mean(each)


def fits():
    print("\n## A whole fit\n\nK=5, relative decrease of the objective below 1e-5.\n")
    print("| problem | model | λ1 = λ2 | fit s | CPU s | plain passes | sweeps | RMSE | by task |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, sizes, threads in (("big200", (200, 200, 50), 1), ("big1000", (1_000, 500, 50), 2)):
        data = low_rank(0, *sizes, 5)
        rng = np.random.default_rng(0)
        V, R = rng.standard_normal((sizes[0], 5)), rng.standard_normal((len(data.y), 5))
        models = {
            "Bi": lambda: BiFactorRegressor(
                5, alpha_feature=0.01, alpha_task=0.01, tol=1e-5, random_state=0
            ),
            "Tri": lambda: TriFactorRegressor(
                5, 5, alpha_feature=0.01, alpha_task=0.01, alpha_core=0.1, tol=1e-5, random_state=0
            ),
        }
        for label, make in models.items():
            with threadpool_limits(threads):
                (plain,) = best(lambda V=V, R=R, X=data.X: (X @ V, X.T @ R))
                model = make().fit(data.X, data.y, task=data.task)
                works = [lambda make=make, d=data: make().fit(d.X, d.y, task=d.task)]
                (spent,), (cpu,) = best(*works, repeats=5), best(*works, clock=time.process_time)
            error, each = rmse(model, data)
            print(
                f"| {name}, {threads} threads | {label} | 0.01 | {spent:.2f} | {cpu:.2f} | "
                f"{spent / plain:.0f} | {model.n_iter_} | {error:.4f} | {each:.4f} |"
            )


def predictions():
    print("\n## Predict\n\nK=10, share of the rate of `X @ v` with one vector.\n")
    print("| rows | tasks | X @ v ms | predict ms | share |\n| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    sets = {
        "dense 100,000 × 500": rng.standard_normal((100_000, 500)),
        "CSR 400,000 × 2,000, 20 nonzeros": csr(400_000, 2_000, 20),
        "CSR 400,000 × 500, 5 nonzeros": csr(400_000, 500, 5),
    }
    for name, X in sets.items():
        for tasks in (100, 10_000, 100_000):
            task = np.sort(rng.permutation(np.arange(X.shape[0]) % tasks))
            y, v = rng.standard_normal(X.shape[0]), rng.standard_normal(X.shape[1])
            model = BiFactorRegressor(10, max_iter=1).fit(X, y, task=task)
            # Apart, not in turns: the threads of BLAS stay busy for a while after a product.
            (one,) = best(lambda X=X, v=v: X @ v)
            (all_,) = best(lambda m=model, X=X, t=task: m.predict(X, task=t))
            print(f"| {name} | {tasks:,} | {1e3 * one:.1f} | {1e3 * all_:.1f} | {one / all_:.0%} |")


def shared_rows():
    print(
        "\n## Comparison with shared rows\n\n"
        "n=2,000, P=200, T=100, rank 5, all tasks on the same rows;"
    )
    print("CPU seconds, one thread, one setting each.\n")
    rng = np.random.default_rng(0)
    W = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 100))
    X, T = rng.standard_normal((2_000, 200)), rng.standard_normal((2_000, 200))
    Y, truth = X @ W + rng.standard_normal((2_000, 100)), T @ W
    print("| model | CPU s | RMSE of the noise-free test target |\n| --- | --- | --- |")
    models = {
        "BiFactorRegressor(5)": BiFactorRegressor(5, random_state=0),
        "scikit-learn MultiTaskLasso(0.01)": MultiTaskLasso(alpha=0.01),
    }
    with threadpool_limits(1):
        for name, model in models.items():
            (spent,) = best(lambda model=model: model.fit(X, Y), repeats=3, clock=time.process_time)
            error = np.sqrt(np.mean((model.predict(T) - truth) ** 2))
            print(f"| {name} | {spent:.2f} | {error:.3f} |")


def own_rows():
    """GPBoost's mixed model with random slopes, where it is installed."""
    try:
        import gpboost
    except ImportError:
        print("\nGPBoost is not installed: `pip install gpboost` adds its comparison.")
        return
    print("\n## Comparison with separate rows\n\nT=200 tasks of 50 rows, P=20, weights common plus")
    print("rank 3; CPU seconds of one fit.\n\n| model | CPU s | test RMSE |\n| --- | --- | --- |")
    rng = np.random.default_rng(0)
    W = rng.standard_normal((20, 1)) + rng.standard_normal((20, 3)) @ rng.standard_normal((3, 200))
    task = np.repeat(np.arange(200), 50)
    X, X_test = rng.standard_normal((2, len(task), 20))
    y, y_test = (
        np.einsum("ij,ji->i", rows, W[:, task]) + rng.standard_normal(len(task))
        for rows in (X, X_test)
    )
    ours = BiFactorRegressor(3, shared=True, random_state=0)
    (spent,) = best(lambda: ours.fit(X, y, task=task), repeats=3, clock=time.process_time)
    error = np.sqrt(np.mean((y_test - ours.predict(X_test, task=task)) ** 2))
    print(f"| BiFactorRegressor(3, shared=True) | {spent:.2f} | {error:.3f} |")
    ones = np.ones((len(task), 1))

    def mixed():
        model = gpboost.GPModel(
            group_data=task,
            group_rand_coef_data=X,
            ind_effect_group_rand_coef=[1] * 20,
            likelihood="gaussian",
        )
        return model.fit(y=y, X=np.hstack([ones, X]))

    begun = time.process_time()
    model = mixed()
    spent = time.process_time() - begun
    guess = model.predict(
        group_data_pred=task,
        group_rand_coef_data_pred=X_test,
        X_pred=np.hstack([ones, X_test]),
        predict_var=False,
    )["mu"]
    error = np.sqrt(np.mean((y_test - guess) ** 2))
    print(f"| GPBoost, random slopes | {spent:.2f} | {error:.3f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# Operators, fits and predictions\n\nWritten by `python benchmarks/bench_operator.py`.")
    print("Ratios are within one run.")
    operators()
    fits()
    predictions()
    shared_rows()
    own_rows()
