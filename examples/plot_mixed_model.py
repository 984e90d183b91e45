"""
A mixed model, fitted twice
===========================

``HierarchicalRegressor`` is a linear mixed model. This example fits the same data with statsmodels
and compares the estimates, with random intercepts and with random slopes of every feature.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from comtl import HierarchicalRegressor

rng = np.random.default_rng(0)
n_groups, n_rows = 30, 12
group = np.repeat(np.arange(n_groups), n_rows)
X = rng.standard_normal((len(group), 3))
intercepts = 2.0 * rng.standard_normal(n_groups)
slopes = [1.0, -0.5, 0.0] + [0.8, 0.6, 0.0] * rng.standard_normal((n_groups, 3))
y = intercepts[group] + (X * slopes[group]).sum(axis=1) + rng.standard_normal(len(group))

# %%
# Random intercepts
# -----------------
# In lme4: ``y ~ x1 + x2 + x3 + (1 | group)``, by REML.

ours = HierarchicalRegressor("intercept", tol=1e-10, max_iter=5000).fit(X, y, task=group)
theirs = sm.MixedLM(y, sm.add_constant(X), group).fit(reml=True)

print("fixed slopes, comtl:      ", ours.shared_coef_.round(4))
print("fixed slopes, statsmodels:", theirs.fe_params[1:].round(4))
gap = np.abs(ours.predict(X, task=group) - theirs.fittedvalues).max()
print(f"largest difference of fitted values: {gap:.1e}")

# %%
# Random slopes
# -------------
# ``structure="diagonal"`` has one slope variance per feature, in lme4
# ``(1 + x1 + x2 + x3 || group)``. In statsmodels the covariance is constrained to be diagonal.

ours = HierarchicalRegressor("diagonal", tol=1e-10, max_iter=20000).fit(X, y, task=group)
free = sm.regression.mixed_linear_model.MixedLMParams.from_components(
    fe_params=np.ones(4), cov_re=np.eye(4)
)
# comtl centres the features, and the variance of the intercept depends on their origin.
Z = sm.add_constant(X - X.mean(axis=0))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a variance of zero is on the boundary
    theirs = sm.MixedLM(y, Z, group, exog_re=Z).fit(reml=True, free=free)
blups = np.array([theirs.random_effects[number] for number in range(n_groups)])
their_slopes = theirs.fe_params[1:] + blups[:, 1:]

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for number, ax in enumerate(axes):
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.scatter(their_slopes[:, number], ours.coef_[:, number], s=18)
    middle = their_slopes[:, number].mean()
    ax.set(
        title=f"slopes of x{number + 1}", xlabel="statsmodels", aspect="equal",
        xlim=(middle - 2, middle + 2), ylim=(middle - 2, middle + 2),
    )  # fmt: skip
axes[0].set_ylabel("comtl")
plt.show()

gap = np.abs(ours.coef_ - their_slopes).max(axis=0)
print("largest difference of the slopes:", [f"{one:.1e}" for one in gap])

# %%
# Conclusion
# ----------
# The predictions agree to the tolerances of the two optimisers; the variance of the third slope is
# zero or nearly so in both. Mixed-model software adds tests and standard errors of the fixed
# effects, which comtl does not have. comtl adds a prior on a full covariance, so that 20 features
# may have random slopes, low-rank covariances, and prediction intervals.
