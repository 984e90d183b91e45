"""Ten million CSR rows from memory-mapped files: time and peak memory of a fit.

20 nonzeros per row, 100,000 tasks, 100,000 features, K=10; the files (2.6 GB) go to a temporary
folder. `make bench` writes the result beside this file; `python benchmarks/bench_disk.py 1000000`
runs with fewer rows.
"""

import os
import resource
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
from scipy import sparse

from comtl import BiFactorRegressor

TASKS, FEATURES, FILLED, K = 100_000, 100_000, 20, 10
PIECE = 500_000


def write(folder, rows):
    """Write the rows piece by piece, sorted by task."""
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((FEATURES, 3)), rng.standard_normal((TASKS, 3))
    names = ("data", "indices", "y", "task")
    files = [(folder / name).open("wb") for name in names]
    for start in range(0, rows, PIECE):
        count = min(PIECE, rows - start)
        indices = np.sort(rng.integers(0, FEATURES, (count, FILLED), dtype=np.int32), axis=1)
        values = rng.standard_normal((count, FILLED))
        task = np.arange(start, start + count) * TASKS // rows
        latent = np.einsum("ij,ijk->ik", values, F[indices])
        y = np.einsum("ik,ik->i", latent, G[task]) + rng.standard_normal(count)
        for file, part in zip(files, (values, indices, y, task), strict=True):
            part.tofile(file)
    for file in files:
        file.close()


def mapped(folder, rows):
    """Map the files as what `fit` takes."""
    data, y = (np.memmap(folder / name, np.float64, "r") for name in ("data", "y"))
    indices, task = (
        np.memmap(folder / "indices", np.int32, "r"),
        np.memmap(folder / "task", int, "r"),
    )
    ends = np.arange(0, rows * FILLED + 1, FILLED, dtype=np.int32)
    return sparse.csr_array((data, indices, ends), shape=(rows, FEATURES)), y, task


class Watch(threading.Thread):
    """Peak of the memory that is not the mapped files."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.done = 0, False

    def run(self):
        process = psutil.Process()
        while not self.done:
            info = process.memory_info()
            self.peak = max(self.peak, info.rss - info.shared)
            time.sleep(0.2)


def main(rows):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        write(folder, rows)
        X, y, task = mapped(folder, rows)
        size = sum(path.stat().st_size for path in folder.iterdir())
        watch = Watch()
        watch.start()
        begun, cpu = time.perf_counter(), time.process_time()
        model = BiFactorRegressor(K, random_state=0).fit(X, y, task=task)
        spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
        watch.done = True
        whole = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print("# Rows from disk\n\nWritten by `python benchmarks/bench_disk.py`.\n")
        print("| rows | files GiB | fit s | CPU s | sweeps | private GiB | with mapped pages GiB |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        print(
            f"| {rows:,} | {size / 2**30:.1f} | {spent:.0f} | {cpu:.0f} | {model.n_iter_} | "
            f"{watch.peak / 2**30:.2f} | {whole / 2**30:.2f} |"
        )
        some = slice(0, rows, max(rows // 100_000, 1))
        print(f"\nR² on rows of the fit: {model.score(X[some], y[some], task=task[some]):.3f}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000_000)
