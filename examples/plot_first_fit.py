"""
A first fit on a table
======================

The table has one row per pupil: two scores from earlier years and the score to predict. Each
school has its own intercept and slopes, but few pupils. ``MultitaskRegressor`` needs the table and
the name of the column with the school.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from comtl import MultitaskRegressor

# %%
# The table
# ---------
# Simulated, so that the true slopes are known: 24 schools of 8 to 40 pupils.

rng = np.random.default_rng(0)
n_schools = 24
sizes = rng.integers(8, 41, n_schools)
code = np.repeat(np.arange(n_schools), sizes)
level = 60 + 5 * rng.standard_normal(n_schools)
slopes = [4.0, 2.0] + 1.5 * rng.standard_normal((n_schools, 2))

scores = rng.standard_normal((len(code), 2))
truth = level[code] + (scores * slopes[code]).sum(axis=1)
pupils = pd.DataFrame(
    {
        "school": np.array([f"school {number + 1:02d}" for number in range(n_schools)])[code],
        "reading": scores[:, 0],
        "maths": scores[:, 1],
        "score": truth + 5 * rng.standard_normal(len(code)),
    }
)
pupils.head()

# %%
# Fit
# ---

X, y = pupils.drop(columns="score"), pupils["score"]
model = MultitaskRegressor(task_column="school").fit(X, y)
pd.Series(model.weights_).round(3)

# %%
# The model is a weighted sum of several models, with weights chosen on held-out rows. The result
# is one linear model per school.

weights = pd.DataFrame(model.coef_, index=model.tasks_, columns=["reading", "maths"])
weights["intercept"] = model.intercept_
weights["pupils"] = sizes
weights.round(2).head()

# %%
# Shrinkage
# ---------
# Least squares on each school alone overfits. The joint model shrinks the slopes of a school
# towards those of all schools: the fewer pupils, the more.

alone = np.empty((n_schools, 3))
for number in range(n_schools):
    mask = code == number
    rows = np.column_stack([scores[mask], np.ones(mask.sum())])
    alone[number] = np.linalg.lstsq(rows, y[mask], rcond=None)[0]

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
limits = [1.0, 8.5]
for ax, estimate, name in zip(
    axes, (alone[:, 0], model.coef_[:, 0]), ("each school alone", "all schools together")
):
    error = np.sqrt(np.mean((estimate - slopes[:, 0]) ** 2))
    ax.plot(limits, limits, color="0.7", linewidth=1, zorder=0)
    points = ax.scatter(slopes[:, 0], estimate, c=sizes, cmap="viridis", edgecolor="white", s=50)
    ax.set(
        title=f"{name}\nroot mean squared error {error:.2f}",
        xlabel="true slope of reading",
        xlim=limits,
    )
axes[0].set_ylabel("estimated slope of reading")
fig.colorbar(points, ax=axes, label="pupils in the school")
plt.show()

# %%
# Prediction intervals
# --------------------
# ``predict_interval`` gives bounds for the score of a new pupil.

new = pd.DataFrame(
    {"school": model.tasks_[:6].repeat(2), "reading": [-1.0, 1.0] * 6, "maths": [0.0] * 12}
)
lower, upper = model.predict_interval(new, level=0.9)
new.assign(guess=model.predict(new), lower=lower, upper=upper).round(1).head(6)
