"""
Clusters of features and of tasks
=================================

Co-clustering groups tasks with similar coefficients and, at the same time, features with similar
effects. Here the coefficients are constant on blocks, up to a small variance.
``TriFactorRegressor`` with clusters of features and of tasks estimates such blocks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.covariance import graphical_lasso
from sklearn.metrics import adjusted_rand_score

from comtl import BiFactorRegressor, TriFactorRegressor
from comtl.baselines import IndependentRegressor
from comtl.datasets import make_coclusters

data = make_coclusters(n_features=30, n_tasks=60, n_feature_clusters=4, n_task_clusters=3)
print(f"{len(data.coef)} tasks with {len(data.y) // len(data.coef)} rows each")

# %%
# Fit
# ---
# The numbers of clusters must be chosen: four of features, three of tasks. There is no penalty
# to tune.

model = TriFactorRegressor(
    4, 3, feature_penalty="clusters", task_penalty="clusters", random_state=0
).fit(data.X, data.y, task=data.task)
alone = IndependentRegressor(alpha=1.0).fit(data.X, data.y, task=data.task)

for side in ("feature", "task"):
    index = adjusted_rand_score(data[f"{side}_clusters"], getattr(model, f"{side}_clusters_"))
    print(f"adjusted Rand index of the {side} clusters: {index:.2f}")

# %%
# Heat map
# --------
# Rows and columns are ordered by the *estimated* clusters. Left: true coefficients; middle: ridge
# regression per task; right: the model.

rows, columns = np.argsort(model.task_clusters_), np.argsort(model.feature_clusters_)
top = np.abs(data.coef).max()
fig, axes = plt.subplots(1, 3, figsize=(10, 5), sharey=True, layout="constrained")
tables = {"true weights": data.coef, "each task alone": alone.coef_, "clusters": model.coef_}
for ax, (name, table) in zip(axes, tables.items()):
    image = ax.imshow(table[rows][:, columns], cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto")
    for end in np.flatnonzero(np.diff(np.sort(model.task_clusters_))):
        ax.axhline(end + 0.5, color="black", linewidth=0.8)
    for end in np.flatnonzero(np.diff(np.sort(model.feature_clusters_))):
        ax.axvline(end + 0.5, color="black", linewidth=0.8)
    ax.set(title=name, xlabel="features, by cluster", xticks=[], yticks=[])
axes[0].set_ylabel("tasks, by cluster")
fig.colorbar(image, ax=axes, label="weight", shrink=0.8)
plt.show()

# %%
# Prediction error
# ----------------


def rmse(fitted):
    guess = fitted.predict(data.X_test, task=data.task_test)
    return np.sqrt(np.mean((guess - data.y_test) ** 2))


print(f"each task alone: {rmse(alone):.2f}, clusters: {rmse(model):.2f}, noise: 1.00")

# %%
# The data have a block structure here, so the model that assumes it has the lowest error. Without
# block structure hard clusters predict much worse than ``BiFactorRegressor``
# (``benchmarks/bench_coclusters.md``, second table). Compare both on held-out rows before you
# interpret clusters, and fit other numbers of clusters to see which are stable.

# %%
# Conditional dependence between tasks
# ------------------------------------
# Without clusters: ``BiFactorRegressor`` learns a covariance between tasks, whose inverse the
# graphical lasso makes sparse. A zero means that two tasks are conditionally independent given the
# others.

relation = BiFactorRegressor(5, random_state=0).fit(data.X, data.y, task=data.task).task_relation_
covariance = relation.toarray()
scale = np.sqrt(np.diag(covariance))
correlation = covariance / np.outer(scale, scale)
_, precision = graphical_lasso(correlation, alpha=0.2, enet_tol=1e-6)

linked = precision != 0.0
same = data.task_clusters[:, None] == data.task_clusters
for name, pairs in (("within", same & ~np.eye(len(same), dtype=bool)), ("across", ~same)):
    print(f"pairs of tasks {name} clusters that are linked: {linked[pairs].mean():.0%}")
