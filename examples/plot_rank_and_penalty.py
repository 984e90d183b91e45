"""
Choosing rank and penalty
=========================

``BiFactorRegressor`` has two important parameters, the rank ``n_components`` and the penalty
``alpha_task``. This example shows how much they matter and what cross-validation chooses.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from comtl import BiFactorRegressor, BiFactorRegressorCV
from comtl.datasets import make_syn4

# %%
# The paper's syn4, whose true rank is 3: 30 tasks of 25 rows, 20 features.

data = make_syn4(random_state=0)
ranks, penalties = [1, 2, 3, 5, 10], np.logspace(-3, 2, 6)
surface = np.empty((len(ranks), len(penalties)))
for i, rank in enumerate(ranks):
    for j, penalty in enumerate(penalties):
        model = BiFactorRegressor(rank, alpha_task=penalty, random_state=0)
        model.fit(data.X, data.y, task=data.task)
        gap = model.predict(data.X_test, task=data.task_test) - data.y_test
        surface[i, j] = np.sqrt(np.mean(gap**2))

# %%
# Cross-validation
# ----------------
# Three folds of the training rows, stratified by task.

search = BiFactorRegressorCV(ranks, alphas=penalties, cv=3, random_state=0)
search.fit(data.X, data.y, task=data.task)
print("chosen:", search.best_params_)
chosen = ranks.index(search.n_components_), int(np.argmin(abs(penalties - search.alpha_task_)))
best = np.unravel_index(surface.argmin(), surface.shape)
print(f"error of the choice {surface[chosen]:.3f}, lowest on the grid {surface[best]:.3f}")

# %%

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
image = ax.imshow(
    surface, cmap="viridis_r", norm=LogNorm(vmax=surface[2:].max()), aspect="auto", origin="lower"
)
for (i, j), value in np.ndenumerate(surface):
    dark = value > 1.5 * surface.min()
    ax.text(
        j, i, f"{value:.2f}", ha="center", va="center", size=8, color="white" if dark else "black"
    )
ax.scatter(*best[::-1], s=420, facecolor="none", edgecolor="C3", linewidth=2, label="lowest")
ax.scatter(*chosen[::-1], s=420, marker="s", facecolor="none", edgecolor="black", linewidth=2,
           label="chosen by cross-validation")  # fmt: skip
ax.set(xlabel="alpha_task", ylabel="n_components", title="RMSE on test rows (noise is 1)")
ax.set_xticks(range(len(penalties)), [f"{penalty:g}" for penalty in penalties])
ax.set_yticks(range(len(ranks)), ranks)
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, markerscale=0.5)
plt.show()

# %%
# Conclusion
# ----------
# No penalty compensates for too small a rank. Too large a rank does little harm: at the right
# penalty (1 here) every rank from the true 3 on has the same error, as the penalty shrinks the
# singular values of the coefficients, small ones to zero. Knowing the rank gains a little more.
# So search over both if time allows; otherwise choose a large rank and search over the penalty.
