"""
Which tasks gain from the others?
=================================

A lower error on average may hide tasks that lose. ``comtl.evaluation.compare`` fits a model, one
ridge model for all tasks and one for each task on the same folds, and tells the errors on held-out
rows task by task.
"""

import matplotlib.pyplot as plt
import numpy as np

from comtl import HierarchicalRegressor
from comtl.evaluation.compare_models import compare

# %%
# Most tasks are drawn from one population. Three are not: their weights have nothing to do with
# the others. Sizes differ as well, from 10 to 160 rows.

rng = np.random.default_rng(1)
n_tasks, n_features = 24, 6
sizes = np.geomspace(10, 160, n_tasks).astype(int)
weights = [1.5, -1.0, 0.5, 0.0, 0.0, 1.0] + 0.4 * rng.standard_normal((n_tasks, n_features))
strangers = np.array([4, 12, 20])
weights[strangers] = 1.5 * rng.standard_normal((3, n_features))
task = np.repeat(np.arange(n_tasks), sizes)
X = rng.standard_normal((len(task), n_features))
y = (X * weights[task]).sum(axis=1) + 1.5 * rng.standard_normal(len(task))

found = compare(HierarchicalRegressor(), X, y, task)
for name, value in found.overall.items():
    print(f"{name:<10}{value:.3f}")

# %%
# "mean" predicts one constant, "pooled" and "separate" are ridge regressions whose penalties were
# chosen by cross-validation within the training rows.
#
# By task
# -------
# The gain is how much lower the squared error of the model is, with bars of two standard errors.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
usual = np.setdiff1d(np.arange(n_tasks), strangers)
for ax, other in zip(axes, ("separate", "pooled")):
    gain, bar = found.loss_reduction[other], 2 * found.loss_reduction_se[other]
    for group, colour, name in ((usual, "C0", "usual tasks"), (strangers, "C3", "strangers")):
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
# Against separate models small tasks gain most, and what is to be gained dwindles with rows of
# their own. Against the pooled model it is the strangers that gain, as it fits them badly.
# With few held-out rows most bars cross zero: do not read a story into a single task.

for name, group in (("usual", usual), ("strangers", strangers)):
    for other in ("separate", "pooled"):
        print(f"{name:<10} against {other:<9} {np.mean(found.loss_reduction[other][group]):+.2f}")
