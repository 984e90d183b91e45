"""
When another model is enough, or better
=======================================

If tasks do not differ, one pooled model is enough; if they are unrelated or have many rows,
separate models are. Multitask learning helps in between. With nonlinear effects and interactions
boosted trees may be better than any linear model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from comtl import HierarchicalRegressor
from comtl.baselines import IndependentRegressor, PooledRegressor

# %%
# Variance between tasks
# ----------------------
# Thirty tasks, four features, noise 1. The coefficients of a task are common ones plus random
# slopes of increasing standard deviation. Left: ten rows per task; right: a hundred. The two
# reference models use the best of four penalties on the test rows, which favours them.


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
    for index, size in enumerate(sizes):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            weights = [1.0, -1.0, 0.5, 0.0] + size * rng.standard_normal((30, 4))
            train, test = draw(rng, weights, rows), draw(rng, weights, 100)
            for name, settings in models.items():
                fits = [model.fit(train[0], train[1], task=train[2]) for model in settings]
                errors[name][index] += min(rmse(model, *test) for model in fits) / 3
    for name, error in errors.items():
        ax.plot(range(len(sizes)), error, marker="o", label=name)
    ax.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    ax.set(title=f"{rows} rows per task", xlabel="standard deviation of the random slopes")
    ax.set_xticks(range(len(sizes)), sizes)
    ax.set_ylim(0.95, 2.2)
axes[0].set_ylabel("RMSE on held-out rows (noise is 1)")
axes[0].legend(loc="upper left")
plt.show()

# %%
# The hierarchical model is close to the better of the two everywhere. Its gain over *both* is
# largest in the middle of the left panel, and almost zero on the right: a hundred rows are
# enough to estimate the five parameters of a task separately.
#
# Nonlinear effects
# -----------------
# Now all tasks share a nonlinear effect and an interaction, and differ in their intercepts only.
# Boosted trees get the task as a categorical feature.

rng = np.random.default_rng(0)
intercepts = rng.standard_normal(30)


def draw_nonlinear(rows):
    task = np.repeat(np.arange(30), rows)
    X = rng.standard_normal((len(task), 4))
    signal = intercepts[task] + 2.0 * np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    return X, signal + rng.standard_normal(len(task)), task


train, test = draw_nonlinear(60), draw_nonlinear(100)
linear = HierarchicalRegressor("isotropic").fit(train[0], train[1], task=train[2])
trees = HistGradientBoostingRegressor(categorical_features=[4], random_state=0)
trees.fit(np.column_stack([train[0], train[2]]), train[1])
guess = trees.predict(np.column_stack([test[0], test[2]]))
print(f"hierarchical, linear: {rmse(linear, *test):.2f}")
print(f"boosted trees:        {np.sqrt(np.mean((guess - test[1]) ** 2)):.2f}")

# %%
# With the right columns, if they are known, the linear model has the lowest error:


def expanded(X):
    return np.column_stack([X, np.abs(X[:, 0]), X[:, 1] * X[:, 2]])


linear.fit(expanded(train[0]), train[1], task=train[2])
print(f"hierarchical, with the right columns: {rmse(linear, expanded(test[0]), *test[1:]):.2f}")

# %%
# Conclusion
# ----------
# Compare with a pooled model, separate models and boosted trees on the same folds.
# ``comtl.evaluation.compare`` does it for the first two. ``MultitaskRegressor()``
# also tries hinges of single columns and boosted trees, and keeps what held-out rows favour.
