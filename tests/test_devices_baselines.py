"""The baselines on arrays of other libraries: the numbers of NumPy, where the rows lie."""

import numpy as np
import pytest

from comtl import baselines
from comtl.clusters import in_order
from libraries import NAMES, make

N, P, T = 200, 5, 6
RNG = np.random.default_rng(1)
X, TASK = RNG.normal(size=(N, P)) + 1.0, RNG.integers(0, T, N)
W = RNG.normal(size=(P, 2)) @ RNG.normal(size=(2, T))
Y = (X * W.T[TASK]).sum(1) + 0.3 * RNG.normal(size=N)
NEW_X, NEW_TASK = RNG.normal(size=(50, P)) + 1.0, RNG.integers(T, T + 2, 50)
NEW_Y = NEW_X[:, 0] + 0.5 * RNG.normal(size=50)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def cut(values, count):
    return np.digitize(values, np.quantile(values, np.arange(1, count) / count)) + 3


def cases():
    for name in baselines.__all__:
        if name.endswith("Regressor"):
            yield pytest.param(name, Y, NEW_Y, id=name)
        else:
            for count in (2, 3):
                yield pytest.param(name, cut(Y, count), cut(NEW_Y, count), id=f"{name}-{count}")


@pytest.mark.parametrize("name,old,new", list(cases()))
@pytest.mark.parametrize("library", NAMES)
def test_baselines(library, name, old, new):
    library = make(library)

    def said(to):
        model = getattr(baselines, name)(max_iter=5, random_state=0)
        model.fit(to(X), to(old), task=TASK)
        grown = [model.adapt(to(NEW_X), to(new), task=NEW_TASK, residual=r) for r in (False, True)]
        scores = model.predict if name.endswith("Regressor") else model.decision_function
        found = [model.coef_, model.intercept_, scores(to(X), task=TASK)]
        found += [g.coef_ for g in grown]
        small = model.score(to(X), to(old), task=TASK), in_order(model.task_clusters_).tolist()
        return found, small, model.to_numpy().coef_

    (found, score, copy), (expected, goal, own) = said(library), said(np.asarray)
    for one, other in zip(found, expected, strict=True):
        # Settings that new tasks are chosen from may be as good as tied.
        library.assert_same(one, other, rtol=1e-4 if other is expected[-1] else 1e-7)
    assert score == (pytest.approx(goal[0], abs=1e-7), goal[1])
    np.testing.assert_allclose(copy, own, rtol=1e-6, atol=1e-6)
