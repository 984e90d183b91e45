"""
When something else is enough, or better
========================================

Multitask learning pays between two ends: tasks that are all the same, where one pooled model is
enough, and tasks that have nothing in common or plenty of rows, where separate models are. And
a linear model, however it shares, does not see what is not linear.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from comtl import HierarchicalRegressor
from comtl.baselines import IndependentRegressor, PooledRegressor

# %%
# How much tasks differ
# ---------------------
# Thirty tasks, four features, noise 1. The weights of a task are those of all plus a part of its
# own, whose size we raise. Ten rows for each task on the left, a hundred on the right. The two
# simple models have the best of four penalties, chosen on the test rows: they are flattered.


def draw(rng, weights, rows):
    task = np.repeat(np.arange(len(weights)), rows)
    X = rng.standard_normal((len(task), weights.shape[1]))
    return X, (X * weights[task]).sum(axis=1) + rng.standard_normal(len(task)), task


def rmse(model, X, y, task):
    return np.sqrt(np.mean((model.predict(X, task=task) - y) ** 2))


sizes = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
penalties = (0.01, 0.1, 1.0, 10.0)
models = {
    "pooled": [PooledRegressor(alpha) for alpha in penalties],
    "separate": [IndependentRegressor(alpha) for alpha in penalties],
    "hierarchical": [HierarchicalRegressor("isotropic")],
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, rows in zip(axes, (10, 100)):
    errors = {name: np.zeros(len(sizes)) for name in models}
    for place, size in enumerate(sizes):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            weights = [1.0, -1.0, 0.5, 0.0] + size * rng.standard_normal((30, 4))
            train, test = draw(rng, weights, rows), draw(rng, weights, 100)
            for name, settings in models.items():
                fits = [model.fit(train[0], train[1], task=train[2]) for model in settings]
                errors[name][place] += min(rmse(model, *test) for model in fits) / 3
    for name, error in errors.items():
        ax.plot(range(len(sizes)), error, marker="o", label=name)
    ax.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    ax.set(title=f"{rows} rows for each task", xlabel="spread of the weights between tasks")
    ax.set_xticks(range(len(sizes)), sizes)
    ax.set_ylim(0.95, 2.2)
axes[0].set_ylabel("RMSE on held-out rows (noise is 1)")
axes[0].legend(loc="upper left")
plt.show()

# %%
# The hierarchical model keeps to the better of the two, and that is its point: you need not know
# where you are. What it gains over *both* is most in the middle of the left panel, and next to
# nothing on the right: with a hundred rows for five numbers separate models have all they need.
#
# What is not linear
# ------------------
# Now all tasks share a bend and an interaction, and differ in their level only. Boosted trees get
# the number of the task as a category.

rng = np.random.default_rng(0)
levels = rng.standard_normal(30)


def bent(rows):
    task = np.repeat(np.arange(30), rows)
    X = rng.standard_normal((len(task), 4))
    signal = levels[task] + 2.0 * np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    return X, signal + rng.standard_normal(len(task)), task


train, test = bent(60), bent(100)
linear = HierarchicalRegressor("isotropic").fit(train[0], train[1], task=train[2])
trees = HistGradientBoostingRegressor(categorical_features=[4], random_state=0)
trees.fit(np.column_stack([train[0], train[2]]), train[1])
guess = trees.predict(np.column_stack([test[0], test[2]]))
print(f"hierarchical, linear: {rmse(linear, *test):.2f}")
print(f"boosted trees:        {np.sqrt(np.mean((guess - test[1]) ** 2)):.2f}")

# %%
# Columns that say what bends bring the linear model back, if you know them:


def richer(X):
    return np.column_stack([X, np.abs(X[:, 0]), X[:, 1] * X[:, 2]])


linear.fit(richer(train[0]), train[1], task=train[2])
print(f"hierarchical, with the right columns: {rmse(linear, richer(test[0]), *test[1:]):.2f}")

# %%
# Conclusion
# ----------
# Put a pooled model, separate models and boosted trees on the same folds before you decide.
# ``comtl.evaluation.compare`` does it for the first two. ``MultitaskRegressor(basis="hinges")``
# finds bends of single columns by itself; interactions are up to you, or to trees.
