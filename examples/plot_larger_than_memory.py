"""
Rows larger than memory
=======================

Rows may come in blocks, from a database or from files, in any order. ``spool_rows`` writes them to
disk sorted by task and returns memory-mapped arrays, which ``fit`` accepts like any others.
The data here are small so that the page builds quickly; the steps are the same for large data.
"""

import tempfile
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from comtl import BiFactorRegressor, open_rows, spool_rows

# %%
# A source of blocks
# ------------------
# A generator yields blocks of sparse rows; only one block is in memory at a time.

n_tasks, n_features, rank = 500, 2000, 3
truth = np.random.default_rng(0)
F = truth.standard_normal((n_features, rank))
G = truth.standard_normal((n_tasks, rank))


def blocks(count, rows=5000, nonzeros=50):
    for number in range(count):
        rng = np.random.default_rng(number + 1)
        task = rng.integers(0, n_tasks, rows)
        columns = rng.integers(0, n_features, (rows, nonzeros))
        indices = np.repeat(np.arange(rows), nonzeros), columns.ravel()
        X = sparse.csr_array((rng.standard_normal(rows * nonzeros), indices), (rows, n_features))
        y = ((X @ F) * G[task]).sum(axis=1) + rng.standard_normal(rows)
        yield X, y, task


# %%
# Spool and fit
# -------------

sizes = [2, 4, 8, 16]
peaks, seconds, stored = [], [], []
folder = tempfile.TemporaryDirectory()
for count in sizes:
    tracemalloc.start()
    X, y, task = spool_rows(blocks(count), folder.name, overwrite=True)
    peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    stored.append((X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20)
    start = time.perf_counter()
    model = BiFactorRegressor(rank, random_state=0, tol=1e-2).fit(X, y, task=task)
    seconds.append(time.perf_counter() - start)

print(X.shape, "sorted by task:", bool((np.diff(task) >= 0).all()))

# %%
# ``open_rows`` maps the same rows again later or in another process.

again = open_rows(folder.name)
print([part.shape for part in again])

# %%
# Time and memory
# ---------------

rows = np.array(sizes) * 5
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot(rows, stored, marker="o", label="rows on disk")
axes[0].plot(rows, peaks, marker="o", label="memory while writing")
axes[0].set(xlabel="thousand rows", ylabel="MiB", ylim=(0, None))
axes[0].legend()
axes[1].plot(rows, seconds, marker="o", color="C2")
axes[1].set(xlabel="thousand rows", ylabel="seconds of fit", ylim=(0, None))
plt.show()
folder.cleanup()

# %%
# Conclusion
# ----------
# Memory while writing is one block and a few numbers per row (its task, its length, its target),
# independent of the width of a row; for rows of 50 nonzeros that is a small part of their size. The
# time of a fit is about linear in the number of rows. Ten million
# sparse rows, 2.4 GiB of files, took 152 s with 1.06 GiB of memory on two cores
# (``benchmarks/bench_disk.md``).
