"""
Coverage of prediction intervals
================================

A 90 % interval should contain nine new targets of ten. This example measures the coverage of two
models, marginally and for each task.
"""

import matplotlib.pyplot as plt
import numpy as np

from comtl import HierarchicalRegressor, MultitaskRegressor

# %%
# Thirty tasks of 20 rows. In a third of them the noise has three times the standard deviation.

rng = np.random.default_rng(0)
n_tasks, n_train, n_test = 30, 20, 400
noise = np.where(np.arange(n_tasks) % 3 == 0, 3.0, 1.0)
weights = [1.0, 0.5] + 0.7 * rng.standard_normal((n_tasks, 2))


def draw(rows):
    task = np.repeat(np.arange(n_tasks), rows)
    X = rng.standard_normal((len(task), 2))
    y = (X * weights[task]).sum(axis=1) + noise[task] * rng.standard_normal(len(task))
    return X, y, task


X, y, task = draw(n_train)
X_test, y_test, t_test = draw(n_test)
models = {
    "hierarchical": HierarchicalRegressor("full"),
    "hierarchical,\nnoise by task": HierarchicalRegressor("full", noise="task"),
    "multitask": MultitaskRegressor(),
}
for model in models.values():
    model.fit(X, y, task=task)

# %%
# Marginal coverage
# -----------------
# The share of held-out targets within the bounds, for levels from 10 % to 95 %.

levels = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
inside = {
    name: np.array(
        [
            (low <= y_test) & (y_test <= up)
            for low, up in (model.predict_interval(X_test, level, t_test) for level in levels)
        ]
    )
    for name, model in models.items()
}

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
axes[0].plot([0, 1], [0, 1], color="0.7", linewidth=1)
for name, hits in inside.items():
    axes[0].plot(levels, hits.mean(axis=1), marker="o", markersize=4, label=name.replace("\n", " "))
axes[0].set(xlabel="nominal level", ylabel="coverage", title="all rows")
axes[0].legend(loc="upper left")

places = np.arange(len(models))
for shift, quiet, name, colour in ((-0.17, True, "noise 1", "C0"), (0.17, False, "noise 3", "C3")):
    selected = (noise == 1.0) == quiet
    for place, hits in zip(places, inside.values()):
        shares = np.array([hits[8][t_test == number].mean() for number in np.flatnonzero(selected)])
        jitter = np.linspace(-0.08, 0.08, len(shares))
        axes[1].scatter(
            place + shift + jitter, shares, s=14, color=colour, label=name if place == 0 else None
        )
axes[1].axhline(0.9, color="black", linewidth=0.8)
axes[1].set(title="90 % intervals, each point a task", xticks=places, ylabel="coverage")
axes[1].set_xticks(places, list(models))
axes[1].legend()
plt.show()

for name, hits in inside.items():
    label = name.replace("\n", " ")
    print(f"{label:<30} coverage of 90 % intervals {hits[8].mean():.3f}")

# %%
# Conclusion
# ----------
# At 90 % all three models have the nominal marginal coverage. Coverage by task differs: with one
# noise variance for all, intervals are too narrow for the noisy tasks and too wide for the others,
# and at lower levels the marginal coverage is off too. ``noise="task"`` and the multitask model
# estimate the noise of each task. With 20 rows this estimate is shrunk towards the other tasks, so
# coverage of noisy tasks is still too low and of the others too high. If the noise differs between
# your tasks and single tasks matter, check the coverage by task as here.
