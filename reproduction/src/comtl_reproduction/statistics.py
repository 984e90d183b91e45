"""Means, standard errors, and who is as good as the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

Sample = Mapping[str, float]
"""A method's values by repeat; repeats that are missing are left out."""


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and its standard error; no error for a single value."""
    if len(values) < 2:
        return float(values[0]), None
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def differ(first: Sample, second: Sample, alpha: float = 0.05) -> bool:
    """Whether two methods differ by a paired t-test over the repeats that both have.

    Without two common repeats there is no test: then they differ unless they are equal.
    """
    common = [repeat for repeat in first if repeat in second]
    if not common:
        return True
    left = np.array([first[repeat] for repeat in common])
    right = np.array([second[repeat] for repeat in common])
    gaps = left - right
    rounding = 1e-12 * float(np.abs(left).max() + np.abs(right).max())
    # Equal gaps have no variance to test against.
    if len(common) < 2 or float(np.ptp(gaps)) <= rounding:
        return bool(np.abs(gaps).max() > rounding)
    return bool(stats.ttest_rel(left, right).pvalue < alpha)


def winners(samples: Mapping[str, Sample], *, lower_is_better: bool = True) -> frozenset[str]:
    """Names of the best method by its mean and of those that do not differ from it."""
    means = {name: float(np.mean(list(sample.values()))) for name, sample in samples.items()}
    if not means:
        return frozenset()
    best = (min if lower_is_better else max)(means, key=means.__getitem__)
    same = (name for name in samples if name == best or not differ(samples[best], samples[name]))
    return frozenset(same)
