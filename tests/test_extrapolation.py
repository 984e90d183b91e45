"""The step beyond a sweep: the same weights seen from two sides, and fewer sweeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from comtl import alternation
from comtl.alternation import Recipe, Schedule, alternate, start_state
from comtl.extrapolation import beyond, can_turn
from comtl.losses import Logistic
from comtl.penalties import L1, Free, Ridge
from helpers import problem, random_orthogonal

P, T = 8, 7


def started(core=False, **params):
    data = problem(3, P, T, 9)
    penalties = {"F": 0.1, "G": 0.5, **({"S": Ridge(1.0)} if core else {})}
    recipe = Recipe({**penalties, **params}, (3, 3))
    return data.rows(), start_state(data.rows(), recipe, Schedule(), like=data.y)


@pytest.mark.parametrize("core", [False, True])
def test_a_turned_factor_is_no_step(core):
    _, state = started(core)
    point, rng = state.factors, np.random.default_rng(0)
    one = random_orthogonal(rng, 3)
    other = random_orthogonal(rng, 3) if core else one
    turned = point.with_(F=point.F @ one, G=point.G @ other)
    if core:
        turned = turned.with_(S=one.T @ point.S @ other)
    ahead = beyond(turned, state, 5.0)
    assert_allclose(ahead.factors.coef, point.coef, atol=1e-10)
    assert_allclose(ahead.regularizer, state.refreshed("F").refreshed("G").regularizer)


def test_the_step_goes_on_in_a_line():
    _, state = started()
    point = state.factors
    last = point.with_(F=0.9 * point.F, offset=point.offset - 1.0)
    ahead = beyond(last, state, 2.0).factors
    assert_allclose(ahead.F, 1.2 * point.F, atol=1e-10)
    assert_allclose(ahead.G, point.G, atol=1e-10)
    assert ahead.offset == pytest.approx(point.offset + 2.0)


def test_only_penalties_on_singular_values_allow_it():
    assert can_turn(started()[1]) and can_turn(started(core=True)[1])
    for other in ({"F": L1(0.1)}, {"S": Free()}):
        assert not can_turn(started(core="S" in other, **other)[1])


@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_fewer_sweeps_to_the_same_objective(core, labels, monkeypatch):
    data = problem(0, 20, 15, 12, labels=labels)
    fit = data.rows(Logistic()) if labels else data.rows()
    penalties = {"F": 0.1, "G": 0.02, **({"S": Ridge(1.0)} if core else {})}
    schedule = Schedule(tol=1e-6, max_iter=2_000)
    start = start_state(fit, Recipe(penalties, (5, 5)), schedule, like=data.y)
    histories = []
    for allowed in (True, False):
        monkeypatch.setattr(alternation, "can_reach", lambda state, a=allowed: a)
        histories.append([step.objective for step in alternate(fit, start, schedule)])
    quick, slow = histories
    assert np.all(np.diff(quick) <= 1e-10 * np.abs(quick[:-1]))
    assert len(quick) < 0.8 * len(slow)
    assert quick[-1] < slow[-1] + 1e-3 * abs(slow[-1])
