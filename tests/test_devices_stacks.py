"""Stacks on arrays of other libraries: members where the rows lie, their weights on the host."""

import numpy as np
import pytest

from comtl import MultitaskClassifier, MultitaskRegressor
from libraries import NAMES, make

N, P, T = 90, 3, 4
RNG = np.random.default_rng(5)
X, TASK = RNG.normal(size=(N, P)) + 1.0, np.arange(N) % T
Y = X[:, 0] + X[:, 1] * np.array([1.0, -1.0, 2.0, 0.0])[TASK] + 0.5 * RNG.normal(size=N)


@pytest.fixture(params=NAMES)
def library(request):
    return make(request.param)


def test_values(library):
    def said(to):
        model = MultitaskRegressor(cv=2).fit(to(X), to(Y), task=TASK)
        lower, upper = model.predict_interval(to(X), task=TASK)
        return [model.coef_, model.intercept_, lower, upper], model

    (found, model), (expected, own) = said(library), said(np.asarray)
    for one, other in zip(found, expected, strict=True):
        library.assert_same(one, other, rtol=1e-3)
    assert type(model.to_numpy().coef_) is np.ndarray
    np.testing.assert_allclose(
        model.to_numpy().predict(X, task=TASK), own.predict(X, task=TASK), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("count, threshold", [(2, None), (3, None), (2, "balanced_accuracy")])
def test_classes(count, threshold):
    library = make("torch")
    noisy = Y + 1.5 * np.random.default_rng(3).normal(size=N)
    labels = np.digitize(noisy, np.quantile(noisy, np.arange(1, count) / count + 0.1))

    def said(to):
        model = MultitaskClassifier(cv=2, threshold=threshold).fit(to(X), to(labels), task=TASK)
        assert np.all((model.thresholds_ == 0.0) == (threshold is None))
        return model.predict_proba(to(X), task=TASK), model

    (found, model), (expected, _) = said(library), said(np.asarray)
    library.assert_same(found, expected, rtol=1e-2)
    chance = model.to_numpy().predict_proba(X, task=TASK)
    np.testing.assert_allclose(chance, expected, rtol=1e-2, atol=1e-3)


def test_what_is_of_the_host_says_so(library):
    with pytest.raises(TypeError, match='basis="hinges"'):
        MultitaskRegressor(basis="hinges").fit(library(X), library(Y), task=TASK)
    wide = RNG.normal(size=(20, 1600))
    with pytest.raises(TypeError, match="1600 features"):
        MultitaskRegressor().fit(library(wide), library(Y[:20]), task=TASK[:20])
