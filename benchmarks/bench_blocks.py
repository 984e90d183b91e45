"""Sizes of blocks, the choice of rows or Gram matrices, and BLAS with one thread.

`make bench` writes the result beside this file.
"""

import time
from contextlib import nullcontext
from unittest import mock

import numpy as np
from bench_operator import best
from problems import low_rank
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressor
from comtl.arrays import blocks, orthonormal
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine.problem import sweep_costs
from comtl.factors import Factors
from comtl.losses import Squared
from comtl.models import factor_model as base
from comtl.rows.design import Design


def kernel_rows():
    print("\n## Rows per call of BLAS\n")
    print("GFLOP/s of the product and its transpose, one thread, blocks of")
    print("1,008 rows of 500 columns; the last column is the block in one call.\n")
    sizes = (24, 36, 48, 63, 84, 126, 1008)
    print(f"| K | square dgemm | {' | '.join(map(str, sizes))} |")
    print("| --- " * (len(sizes) + 2) + "|")
    rng = np.random.default_rng(0)
    X, square = rng.standard_normal((40 * 1008, 500)), rng.standard_normal((1_500, 1_500))
    with threadpool_limits(1):
        for K in (5, 8, 16):
            V = rng.standard_normal((500, K))

            def work(rows, V=V):
                pieces = X.reshape(-1, 1008 // rows, rows, 500)
                for block in pieces:
                    (block.transpose(0, 2, 1) @ (block @ V)).sum(axis=0)

            spent = best(*(lambda rows=rows: work(rows) for rows in sizes), repeats=5)
            (dgemm,) = best(lambda: square @ square, repeats=5)
            rates = " | ".join(f"{4 * X.size * K / each / 1e9:.1f}" for each in spent)
            print(f"| {K} | {2 * 1.5**3 / dgemm:.1f} | {rates} |")


def blas_at_rest():
    print("\n## BLAS with one thread during a fit\n\nSeconds of one fit of big1000, two threads.\n")
    data = low_rank(0, 1_000, 500, 50, 5)

    def fit():
        BiFactorRegressor(5, tol=1e-5, random_state=0).fit(data.X, data.y, task=data.task)

    def busy():
        with mock.patch.object(base, "single_blas", nullcontext):
            fit()

    rest, free = best(fit, busy, repeats=4)
    print(f"One thread {rest:.2f}, default {free:.2f}: {free / rest:.2f} times as long.")


def rows_or_grams():
    print(
        "\n## Rows or Grams\n\nMilliseconds of a sweep (four products, one quadratic, a fifteenth"
    )
    print("of the making), one thread, and what `sweep_costs` expects; dense rows, K=5.\n")
    print("| P | T | rows a task | rows | expected | Grams | expected |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    for P, T in ((20, 100), (50, 200), (200, 100)):
        for n in (max(P // 6, 2), P // 2, 2 * P):
            X, y = rng.standard_normal((n * T, P)), rng.standard_normal(n * T)
            weights, offsets = np.ones(n * T), np.arange(0, n * T + 1, n)
            design = Design.standardized(X, weights)
            F, G = rng.standard_normal((P, 5)), rng.standard_normal((T, 5))
            point = Factors(F, None, G, np.zeros(P), 0.0, np.zeros(T))
            cells = []
            expected = sweep_costs(T, n * T, P, 5, n * T * P)
            makers = {
                "rows": lambda d=design, p=(y, weights, offsets): RowsDatafit(d, *p, Squared()),
                "gram": lambda d=design, p=(y, weights, offsets): GramDatafit.of_rows(d, *p),
            }
            with threadpool_limits(1):
                for name, make in makers.items():
                    begun = time.perf_counter()
                    data = make()
                    made = time.perf_counter() - begun
                    expansion = data.quadratic_at(point)
                    product, quadratic = best(
                        lambda e=expansion, p=point: e.normal(p.F, p.G, p.random_intercepts),
                        lambda d=data, p=point: d.quadratic_at(p).task_quadratic(p.F),
                        repeats=5,
                    )
                    sweep = 1e3 * (4 * product + quadratic + made / 15)
                    cells.append(f"{sweep:.2f} | {expected[name] / 1e6:.2f}")
            print(f"| {P} | {T} | {n} | {' | '.join(cells)} |")


def tall_matrices():
    print("\n## Orthonormal bases of tall matrices\n\nMilliseconds, ten columns.\n")
    print("| rows | LAPACK's QR | inner products |\n| --- | --- | --- |")
    rng = np.random.default_rng(0)
    for rows in (1_000, 8_000, 64_000, 512_000):
        matrix = rng.standard_normal((rows, 10))
        with mock.patch("comtl.arrays.TALL", 0):
            spent = best(
                lambda m=matrix: np.linalg.qr(m), lambda m=matrix: orthonormal(m), repeats=4
            )
        print(f"| {rows:,} | {1e3 * spent[0]:.2f} | {1e3 * spent[1]:.2f} |")


if __name__ == "__main__":
    print(
        "# Blocks, forms and threads\n\nWritten by `python benchmarks/bench_blocks.py`; blocks of"
    )
    print(f"{blocks.KERNEL_ROWS} rows are in use.")
    kernel_rows()
    blas_at_rest()
    rows_or_grams()
    tall_matrices()
