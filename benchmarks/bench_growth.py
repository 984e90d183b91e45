"""Fit time and memory as rows, tasks or features double; rows on disk that fill the memory.

CSR rows with 20 nonzeros, sorted by task, K=10. Each case runs in a process of its own.
`make bench` writes the result beside this file; `python benchmarks/bench_growth.py N` runs one
series.
"""

import json
import subprocess
import sys

SERIES = {
    "N": [(n, 1_000, 1_000) for n in (100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000)],
    "T": [
        (100_000, t, 1_000) for t in (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 100_000)
    ],
    "N unsorted": [(n, 1_000, 1_000) for n in (400_000, 1_600_000)],
    "P": [(100_000, 1_000, p * 1_000) for p in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000)],
}
K, FILLED, SWEEPS = 10, 20, 6


def case(N, T, P, ordered):
    """Fit once; times and peak memory beyond the data."""
    import resource
    import time
    import warnings

    import numpy as np
    import psutil
    from scipy import sparse

    from comtl import BiFactorRegressor

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    indices = rng.integers(0, P, (N, FILLED), dtype=np.int32)
    indices.sort(axis=1)
    ends = np.arange(0, N * FILLED + 1, FILLED, dtype=np.int32)
    X = sparse.csr_array((rng.standard_normal(N * FILLED), indices.ravel(), ends), shape=(N, P))
    task = rng.integers(0, T, N)
    if ordered:
        task.sort()
    F, G = rng.standard_normal((P, 3)), rng.standard_normal((T, 3))
    y = np.einsum("ik,ik->i", X @ F, G[task]) + rng.standard_normal(N)
    BiFactorRegressor(2, max_iter=1).fit(X[:500, :50], y[:500], task=task[:500])
    before = psutil.Process().memory_info().rss
    model = BiFactorRegressor(K, max_iter=SWEEPS, tol=0.0, random_state=0)
    begun = time.perf_counter()
    model.fit(X, y, task=task)
    spent = time.perf_counter() - begun
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    model.predict(X, task=task)
    predict = time.perf_counter() - begun
    bound = 128 * (P + T) * K + 64 * N + 300 * 2**20
    if not ordered:  # one copy of the data more
        bound += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    result = {"fit": spent, "predict": predict, "beyond": peak - before, "bound": bound}
    print(json.dumps(result))


def measured(sizes, ordered):
    command = [sys.executable, __file__, "case", *map(str, sizes), str(int(ordered))]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(names):
    print("# Scaling\n\nWritten by `python benchmarks/bench_growth.py`: BiFactorRegressor, K=10,")
    print(f"{SWEEPS} sweeps, CSR rows with {FILLED} nonzeros sorted by task. Memory is the peak")
    print("of resident memory beyond the data, as a share of 128 (P+T) K + 64 N bytes + 300 MiB")
    print("(and a copy of the data where rows are not sorted by task).")
    for name in names:
        print(f"\n## {name}\n")
        print("| N | T | P | fit s | times the last | predict s | memory MiB | share |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        last = None
        for sizes in SERIES[name]:
            got = measured(sizes, ordered="unsorted" not in name)
            ratio = f"{got['fit'] / last:.2f}" if last else ""
            last = got["fit"]
            print(
                f"| {sizes[0]:,} | {sizes[1]:,} | {sizes[2]:,} | {got['fit']:.2f} | {ratio} | "
                f"{got['predict']:.3f} | {got['beyond'] / 2**20:.0f} | "
                f"{got['beyond'] / got['bound']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        case(*map(int, sys.argv[2:]))
    else:
        main(sys.argv[1:] or list(SERIES))
