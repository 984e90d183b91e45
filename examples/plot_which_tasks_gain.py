"""
Which tasks gain from the others?
=================================

A lower mean error may hide tasks with a higher one. ``comtl.evaluation.compare`` fits a model and
reference models, one ridge model for all tasks and one per task, on the same folds, and computes
the held-out error of each task.
"""

import matplotlib.pyplot as plt
import numpy as np

from comtl import HierarchicalRegressor
from comtl.evaluation import compare

# %%
# Most tasks are drawn from one population. Three are outliers with unrelated coefficients. Sizes
# range from 10 to 160 rows.

rng = np.random.default_rng(1)
n_tasks, n_features = 24, 6
sizes = np.geomspace(10, 160, n_tasks).astype(int)
weights = [1.5, -1.0, 0.5, 0.0, 0.0, 1.0] + 0.4 * rng.standard_normal((n_tasks, n_features))
outliers = np.array([4, 12, 20])
weights[outliers] = 1.5 * rng.standard_normal((3, n_features))
task = np.repeat(np.arange(n_tasks), sizes)
X = rng.standard_normal((len(task), n_features))
y = (X * weights[task]).sum(axis=1) + 1.5 * rng.standard_normal(len(task))

comparison = compare(HierarchicalRegressor(), X, y, task)
for name, value in comparison.overall.items():
    print(f"{name:<10}{value:.3f}")

# %%
# "mean" predicts one constant, "pooled" and "separate" are ridge regressions whose penalties were
# chosen by cross-validation within the training rows.
#
# By task
# -------
# The gain is the decrease of the squared error relative to the reference model, with error bars of
# two standard errors.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
typical = np.setdiff1d(np.arange(n_tasks), outliers)
for ax, other in zip(axes, ("separate", "pooled")):
    gain, bar = comparison.loss_reduction[other], 2 * comparison.loss_reduction_se[other]
    for group, colour, name in ((typical, "C0", "typical tasks"), (outliers, "C3", "outliers")):
        ax.errorbar(sizes[group], gain[group], bar[group], fmt="o", color=colour, label=name)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="rows of the task", title=f"gain on {other} models")
    ax.set_xticks([10, 20, 40, 80, 160], [10, 20, 40, 80, 160])
    ax.minorticks_off()
axes[0].set_ylabel("decrease of the squared error")
axes[0].legend()
plt.show()

# %%
# Conclusion
# ----------
# Relative to separate models small tasks gain most, and the gain decreases with the number of rows.
# Relative to the pooled model the outliers gain, as it fits them badly.
# With few held-out rows most error bars include zero: do not interpret single tasks.

for name, group in (("typical", typical), ("outliers", outliers)):
    for other in ("separate", "pooled"):
        print(
            f"{name:<10} against {other:<9} {np.mean(comparison.loss_reduction[other][group]):+.2f}"
        )
