"""The step beyond a sweep: the same weights seen from two sides, and fewer sweeps."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from comtl.engine.acceleration import can_rotate, extrapolate
from comtl.engine.alternation import alternate
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import Logistic
from comtl.penalties import L1, Free, Ridge, Simplex
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
    ahead = extrapolate(turned, state, 5.0)
    assert_allclose(ahead.factors.coef, point.coef, atol=1e-10)
    assert_allclose(ahead.regularizer, state.updated("F").updated("G").regularizer)


def test_the_step_goes_on_in_a_line():
    _, state = started()
    point = state.factors
    last = point.with_(F=0.9 * point.F, offset=point.offset - 1.0)
    ahead = extrapolate(last, state, 2.0).factors
    assert_allclose(ahead.F, 1.2 * point.F, atol=1e-10)
    assert_allclose(ahead.G, point.G, atol=1e-10)
    assert ahead.offset == pytest.approx(point.offset + 2.0)


def test_only_penalties_on_singular_values_allow_it():
    assert can_rotate(started()[1]) and can_rotate(started(core=True)[1])
    for other in ({"F": L1(0.1)}, {"S": Free()}):
        assert not can_rotate(started(core="S" in other, **other)[1])


def test_without_turning_bounds_are_kept_and_held_factors_stay():
    _, state = started(G=Simplex())
    now = np.random.default_rng(0).dirichlet(np.ones(3), size=T)
    state = state.at(state.factors.with_(G=now))
    last = state.factors.with_(G=np.full((T, 3), 1.0 / 3.0))
    shares = extrapolate(last, state, 8.0).factors.G
    assert shares.min() == 0.0 and not np.allclose(shares, now)
    assert_allclose(shares.sum(axis=1), 1.0)
    held = state.with_(fixed=frozenset({"G"}))
    assert extrapolate(last, held, 8.0).factors.G is state.factors.G


KINDS = {
    "two": ({"F": 0.1, "G": 0.02}, None),
    "three": ({"F": 0.1, "G": 0.02, "S": Ridge(1.0)}, None),
    "sparse": ({"F": Ridge(0.1), "G": L1(0.5)}, None),
    "shares": ({"F": Ridge(0.1), "G": Simplex()}, None),
    "whole": ({"F": Free(), "G": 0.05}, {"F": np.eye(20)}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [False, True])
def test_fewer_sweeps_to_the_same_objective(kind, labels):
    penalties, held = KINDS[kind]
    # Shares have minima of their own, which paths of different length may tell apart.
    data = problem(3 if kind == "shares" else 0, 20, 15, 12, labels=labels)
    fit = data.rows(Logistic()) if labels else data.rows()
    ranks = (20, 20) if held else (5, 5)
    schedule = Schedule(tol=1e-6, max_iter=2_000)
    start = start_state(fit, Recipe(penalties, ranks, fixed=held), schedule, like=data.y)
    quick = [step.objective for step in alternate(fit, start, schedule)]
    plain = replace(schedule, extrapolate=False)
    slow = [step.objective for step in alternate(fit, start, plain)]
    assert np.all(np.diff(quick) <= 1e-10 * np.abs(quick[:-1]))
    assert len(quick) < 0.8 * len(slow)
    assert quick[-1] < slow[-1] + 1e-3 * abs(slow[-1])
