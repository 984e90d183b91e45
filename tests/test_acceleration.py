"""The balance step and the extrapolation after a sweep."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from comtl.engine.acceleration import balance_step, can_rotate, extrapolate, split_exponents
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.factors import State, thin_svd
from comtl.losses import Logistic
from comtl.penalties import L1, Free, NonNegative, Ridge, Simplex
from comtl.penalties.learned_relation import LearnedRelation
from helpers import problem, random_factors, random_orthogonal, run

P, T = 8, 6


def make_state(kinds, K1=3, K2=3, seed=0, relative_epsilon=1e-2):
    """State at random factors; ``kinds`` gives a penalty, or the strength of a relation."""
    point = random_factors(seed, P, T, K1, K2, core="S" in kinds)
    point = point.with_(F=7.0 * point.F)
    for name, kind in kinds.items():
        if isinstance(kind, NonNegative):
            point = point.with_(**{name: np.abs(getattr(point, name))})
    penalties = {
        name: LearnedRelation(kind).initialised(getattr(point, name), relative_epsilon)
        if isinstance(kind, float)
        else kind
        for name, kind in kinds.items()
    }
    return State(point, penalties)


penalties = st.sampled_from([0.1, 2.0, Ridge(0.7), L1(0.4), NonNegative(0.5), Simplex()])
cores = st.sampled_from([Ridge(0.7), L1(0.4), NonNegative(0.5), Free()])


smoothings = st.sampled_from([1e-6, 1e-2, 3.0])
ranks = st.integers(1, 9)


@given(penalties, penalties, st.none() | cores, ranks, ranks, smoothings, st.integers(0, 1000))
def test_balance_keeps_the_weights_and_never_raises_the_penalty(f, g, s, K1, K2, smooth, seed):
    kinds = {"F": f, "G": g} | ({} if s is None else {"S": s})
    state = make_state(kinds, K1, K1 if s is None else K2, seed, smooth)
    moved = balance_step(state)
    W = state.factors.coef
    assert_allclose(moved.factors.coef, W, atol=1e-10 * np.abs(W).max())
    assert moved.regularizer <= state.regularizer * (1 + 1e-12)
    for name, penalty in moved.penalties.items():
        factor = getattr(moved.factors, name)
        assert factor.shape == getattr(state.factors, name).shape
        if isinstance(penalty, NonNegative):
            assert np.all(factor >= 0)


@given(st.integers(0, 1000), st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.integers(1, 9))
def test_balance_of_two_factors_reaches_the_schatten_norm(seed, lam1, lam2, K):
    ridge = balance_step(make_state({"F": Ridge(lam1), "G": Ridge(lam2)}, K, K, seed))
    sigma = thin_svd(ridge.factors.feature_loadings, ridge.factors.G)[1]
    scale = 2.0 * (lam1 * lam2) ** 0.5
    assert_allclose(ridge.regularizer, scale * sigma.sum(), rtol=1e-8)
    sharp = balance_step(make_state({"F": lam1, "G": lam2}, K, K, seed, relative_epsilon=1e-12))
    assert_allclose(sharp.regularizer, scale * np.sqrt(sigma).sum() ** 2, rtol=1e-3)


@given(st.integers(0, 1000), st.integers(1, 7), st.integers(1, 7))
def test_balance_of_three_factors_reaches_the_schatten_norm(seed, K1, K2):
    kinds = {"F": 0.3, "S": Ridge(2.0), "G": 1.7}
    state = balance_step(make_state(kinds, K1, K2, seed, relative_epsilon=1e-12))
    sigma = thin_svd(state.factors.feature_loadings, state.factors.G)[1]
    product = 0.3 * 2.0 * 1.7
    expected = 3.0 * product ** (1 / 3) * (sigma**0.4).sum() ** (5 / 3)
    assert_allclose(state.regularizer, expected, rtol=1e-3)


@pytest.mark.parametrize("f", [0.2, Ridge(0.7), L1(0.4), NonNegative(0.5)])
@pytest.mark.parametrize("g", [3.0, Ridge(0.7), L1(0.4)])
def test_no_other_scale_is_better(f, g):
    state = balance_step(make_state({"F": f, "G": g}, relative_epsilon=1e-10))
    for scale in (0.9, 0.99, 1.01, 1.1):
        point = state.factors
        other = state.at(point.with_(F=scale * point.F, G=point.G / scale))
        other = other.updated("F").updated("G")
        assert other.regularizer > state.regularizer


def test_held_factors_and_a_free_core_leave_nothing_to_move():
    state = make_state({"F": 0.1, "S": Free(), "G": 1.0})
    assert balance_step(state) is state
    state = make_state({"F": 0.1, "G": 1.0}).with_(fixed=frozenset("G"))
    assert balance_step(state) is state


def test_exponents_follow_the_roots():
    relation = make_state({"F": 0.1, "G": 1.0}).penalties["F"]
    split = split_exponents({"F": relation, "S": Ridge(1.0), "G": relation})
    assert split == pytest.approx({"F": 0.4, "S": 0.2, "G": 0.4})
    assert split_exponents({"F": relation, "G": L1(1.0)}) is None


@pytest.mark.parametrize("shape", [(3, 3), (9, 2), (2, 9)])
def test_thin_svd_is_that_of_the_product(shape):
    point = random_factors(2, P, T, *shape, core=True)
    U, sigma, V = thin_svd(point.feature_loadings, point.G)
    product = point.coef - point.shared[:, None]
    assert_allclose((U * sigma) @ V.T, product, atol=1e-10)
    assert_allclose(sigma, np.linalg.svd(product)[1][: len(sigma)], atol=1e-10)
    assert_allclose(U.T @ U, np.eye(len(sigma)), atol=1e-10)


# ---- extrapolation: the same weights seen from two sides, and fewer sweeps ----------------------


def started(core=False, **params):
    data = problem(3, P, 7, 9)
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
    now = np.random.default_rng(0).dirichlet(np.ones(3), size=7)
    state = state.at(state.factors.with_(G=now))
    last = state.factors.with_(G=np.full((7, 3), 1.0 / 3.0))
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
    recipe, plain = Recipe(penalties, ranks, fixed=held), replace(schedule, extrapolate=False)
    quick, slow = (
        [step.objective for step in run(fit, recipe, each)] for each in (schedule, plain)
    )
    assert np.all(np.diff(quick) <= 1e-10 * np.abs(quick[:-1]))
    assert len(quick) < 0.8 * len(slow)
    assert quick[-1] < slow[-1] + 1e-3 * abs(slow[-1])
