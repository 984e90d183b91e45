"""Trees above the linear members of a stack: when they count, what they see, how they are kept."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, RepeatedKFold

import comtl
from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.engine import progress
from comtl.losses import Logistic, Squared
from comtl.rows.fit_input import FitInput
from comtl.saving import ModelFileError
from comtl.stacking import stack as stack_module
from comtl.stacking.default_members import default_members
from comtl.stacking.hinges import Hinges
from comtl.stacking.members import MemberRows, Predicted, Shape
from comtl.stacking.stack import FoldRun, fit_stack
from comtl.stacking.stack_rows import StackRows, TargetScaling
from comtl.stacking.trees import MAX_DEPTH, Bins, Forest, TreeMember


def draw(depth, seed=0, rows=40, tasks=15):
    """Linear in five columns, and an exclusive or of two of them times a task's effect."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), 5))
    slopes = 1.0 + 0.5 * rng.standard_normal((tasks, 5))
    effect = depth * (1.0 + 0.3 * rng.standard_normal(tasks))
    y = np.einsum("np,np->n", X, slopes[task]) + effect[task] * np.sign(X[:, 0] * X[:, 1])
    return X, y + 0.5 * rng.standard_normal(len(task)), task


def halves(X, y, task):
    """Every second row, and the others."""
    half = np.arange(len(y)) % 2 == 0
    return [(X[part], y[part], task[part]) for part in (half, ~half)]


def labels(y, count):
    return np.digitize(y, np.quantile(y, np.arange(1, count) / count))


X, Y, TASK = draw(3.0)
(TRAIN, TEST) = halves(X, Y, TASK)
THREE = labels(Y, 3)
THREE[TASK == 3] = 0  # A task of one class alone.


@cache
def values(form="trees"):
    X, y, task = TRAIN
    return MultitaskRegressor(form=form, cv=3).fit(X, y, task=task)


@cache
def classes():
    return MultitaskClassifier(form="trees", cv=2).fit(X, THREE, task=TASK)


@cache
def columns():
    return MultitaskRegressor(form="trees", cv=2).fit(X, np.column_stack([Y, 1e3 * Y]))


MODELS = [values, classes, columns]


def said(model, X=X, task=TASK):
    """What a model says of rows."""
    given = {} if model._multi_output else {"task": task}
    found = [model.predict(X, **given)]
    if "predict_interval" in dir(model):
        return np.stack([*found, *model.predict_interval(X, **given)])
    return model.predict_proba(X, **given)


def error(model, X, y, task):
    return np.mean((model.predict(X, task=task) - y) ** 2)


def test_trees_win_where_columns_interact():
    linear, trees, both = (values(form) for form in ("linear", "trees", "auto"))
    assert (linear.form_, trees.form_) == ("linear", "trees") and "trees" in both.form_
    assert max(error(one, *TEST) for one in (trees, both)) < 0.7 * error(linear, *TEST)
    rows, target, task = TEST
    low, high = trees.predict_interval(rows, 0.9, task=task)
    assert 0.8 < np.mean((low < target) & (target < high)) < 0.99


@pytest.mark.parametrize("count", [2, 3])
def test_trees_win_among_classes(count):
    X, y, task = draw(4.0, rows=60)
    train, test = halves(X, labels(y, count), task)
    linear, ours = (
        MultitaskClassifier(cv=3, form=form).fit(*train).score(*test) for form in ("linear", "auto")
    )
    assert ours > linear + 0.04


def test_trees_win_on_columns_of_any_unit():
    units, (first, second) = np.array([1.0, 1e4]), (np.s_[:300], np.s_[300:])
    Z = Y + 0.5 * np.random.default_rng(1).standard_normal(len(Y))
    both = np.column_stack([Y, Z])
    linear, one, other = (
        MultitaskRegressor(form=form, cv=2).fit(X[first], both[first] * unit)
        for form, unit in (("linear", 1.0), ("trees", 1.0), ("trees", units))
    )
    assert one.form_ == other.form_ == "trees"
    wrong, right = (np.mean((m.predict(X[second]) - both[second]) ** 2) for m in (linear, one))
    assert right < 0.8 * wrong
    np.testing.assert_allclose(other.predict(X) / units, one.predict(X), rtol=1e-3, atol=1e-3)
    second = one.predict(X, task=np.ones(len(X), int))
    np.testing.assert_allclose(second, one.predict(X)[:, 1], rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_linear_rows_have_a_linear_model(seed):
    train, test = halves(*draw(0.0, seed))
    linear, auto = (MultitaskRegressor(form=form, cv=3).fit(*train) for form in ("linear", "auto"))
    assert auto.form_ == "linear" or error(auto, *test) < 1.05 * error(linear, *test)


def test_what_trees_add_stands_beside_the_linear_part():
    model = values()
    below = {name: one for name, one in model.members_.items() if not name.startswith("trees")}
    coef = sum(model.weights_[name] * one.coef_ for name, one in below.items())
    np.testing.assert_allclose(model.coef_, coef, atol=1e-10)
    assert sum(model.weights_[name] for name in below) > 0.2, "the linear part is no small one"
    rows, codes = X[:50], TASK[:50]
    linear = np.einsum("np,np->n", rows, model.coef_[codes]) + model.intercept_[codes]
    added = model._nonlinear.nonlinear_scores(rows, codes, model._linear)
    np.testing.assert_allclose(model.predict(rows, task=codes), linear + added, rtol=1e-10)
    assert np.abs(added).max() > 1.0
    data = FitInput(X, Y, TASK).read(MultitaskRegressor())
    known = model._observation_scores(data, data.codes)
    np.testing.assert_allclose(known, model.predict(data.X, task=data.tasks[data.codes]))


@pytest.mark.parametrize("made", MODELS)
def test_tasks_never_seen_have_the_mean_of_all(made):
    model = made()
    if model._multi_output:
        codes = np.full((2, 1), -1)
        assert np.isfinite(model._scores(X[:2], codes)).all()
        return
    found, known = model.predict(X[:3], task=[0, 99, 98]), model.predict(X[:1], task=[0])
    np.testing.assert_allclose(found[:1], known, rtol=1e-10)
    assert np.isfinite(found).all() and np.isfinite(said(model, X[:3], [0, 99, 98])).all()


def test_rows_of_a_task_with_one_class_alone_are_read_alike():
    model, only = classes(), TASK == 3
    alone, among = said(model, X[only], TASK[only]), said(model)[only]
    np.testing.assert_allclose(alone, among, rtol=1e-10)


def stacked(members, y, splits, trees=(), n_jobs=None):
    schema = MultitaskRegressor()
    given = FitInput(X, y, TASK)
    data = given.read(schema)
    rows = StackRows(given, schema, Hinges.none(), TargetScaling.of(data), None, splits)
    return fit_stack(rows, data, members, trees, Squared(), FoldRun(n_jobs))


def test_held_out_targets_do_not_shape_what_is_said_of_them(monkeypatch):
    monkeypatch.setattr(
        stack_module, "near_best", lambda loss, held, _: range(held.scores.shape[1])
    )
    members = default_members(Shape(5, 15, 15), classification=False)
    chosen = {
        one.name: one for one in members if one.name in ("bifactor 3", "isotropic", "intercept")
    }
    for warm in (False, True):
        below = [replace(one, warm=warm and name != "bifactor 3") for name, one in chosen.items()]
        splits = list(KFold(3, shuffle=True, random_state=0).split(X))
        stack = stacked(below, Y, splits)
        assert len(stack.members) == 3
        for number, (_, held) in enumerate(splits):
            changed = Y.copy()
            changed[held] += np.random.default_rng(1).standard_normal(len(held))
            found, same = stacked(below, changed, splits).held, stack.fold == number
            ours, others = found.scores - stack.held.scores, ~same
            assert np.abs(ours[others]).max() > 0.1
            if warm:
                assert 0.0 < np.sqrt(np.mean(ours[same] ** 2)) < 0.03
            else:
                np.testing.assert_array_equal(ours[same], 0.0)


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_trees_do_not_see_the_targets_that_they_are_judged_by(loss):
    target = Y if loss.quadratic else np.where(Y > 0.0, 1.0, -1.0)
    ones = np.ones(len(Y))
    rows = MemberRows(
        X, np.arange(len(Y)), TASK, np.zeros(len(Y), int), np.arange(15), target, ones
    )
    base = Predicted(0.5 * X[:, 0])
    train, held = np.arange(0, len(Y), 2), np.arange(1, len(Y), 2)
    parts = [one for some in (train, held) for one in (rows.take(some), base.take(some))]
    one = TreeMember("trees", rounds=40).stages(loss, 0, *parts)
    other = replace(parts[2], y=-parts[2].y)
    two = TreeMember("trees", rounds=40).stages(loss, 0, *parts[:2], other, parts[3])
    most = min(one.shape[1], two.shape[1])
    assert most > 5
    np.testing.assert_allclose(one[:, :most], two[:, :most], rtol=1e-12)


def test_a_weight_of_two_is_much_as_the_row_given_twice():
    """Leaves and bins count rows, so that trees are not the same to the last digit."""
    X, y, task = TRAIN
    times = np.random.default_rng(0).integers(1, 3, len(y))
    numbers = np.repeat(np.arange(len(y)), times)
    fold = np.arange(len(y)) % 2
    models = []
    for rows, apart in (
        ((X[numbers], y[numbers], task[numbers]), fold[numbers]),
        ((X, y, task, times), fold),
        ((X, y, task), fold),
    ):
        first, second = (np.flatnonzero(apart == number) for number in (0, 1))
        model = MultitaskRegressor(form="trees", cv=[(first, second), (second, first)])
        models.append(model.fit(*rows))
    assert all(one.form_ == "trees" for one in models)
    given, *others = (one.predict(TEST[0], task=TEST[2]) for one in models)
    weighed, unweighed = (np.sqrt(np.mean((one - given) ** 2)) for one in others)
    assert weighed < 0.85 * unweighed


def test_weights_may_be_shares_of_the_rows():
    X, y, task = TRAIN
    linear, trees = (
        MultitaskRegressor(form=form, cv=2).fit(X, y, task, np.full(len(y), 1.0 / len(y)))
        for form in ("linear", "trees")
    )
    assert trees.form_ == "trees" and error(trees, *TEST) < error(linear, *TEST)


def test_odd_tables_have_a_model():
    rng = np.random.default_rng(0)
    flat = np.column_stack([X, np.ones(len(X))])
    model = MultitaskRegressor(form="trees", cv=2).fit(flat, Y, task=TASK)
    assert model.form_ == "trees" and np.isfinite(said(model, flat)).all()
    for form in ("trees", "auto"):
        constant = MultitaskRegressor(form=form, cv=2).fit(X, np.ones(len(X)), task=TASK)
        np.testing.assert_allclose(constant.predict(X, task=TASK), 1.0)
        for rows, tasks in ((6, 2), (70, 70), (61, 1)):
            tiny, task = rng.standard_normal((rows, 2)), np.arange(rows) % tasks
            model = MultitaskRegressor(form=form, cv=2).fit(tiny, tiny[:, 0], task=task)
            assert np.isfinite(model.predict(tiny, task=task)).all()
    for unit in (1e-100, 1e100):
        model = MultitaskRegressor(form="trees", cv=2).fit(X, unit * Y, task=TASK)
        assert model.form_ == "trees" and error(model, X, Y * unit, TASK) < 3.0 * unit**2
    single = X.astype(np.float32)
    model = MultitaskRegressor(form="trees", cv=2).fit(single, Y.astype(np.float32), task=TASK)
    assert model.form_ == "trees" and error(model, single, Y, TASK) < 3.0


def test_sparse_rows_have_no_trees():
    packed = sparse.csr_array(X)
    with pytest.raises(TypeError, match='form="trees" grows trees on dense rows'):
        MultitaskRegressor(form="trees", cv=2).fit(packed, Y, task=TASK)
    model = MultitaskRegressor(cv=2).fit(packed, Y, task=TASK)
    assert model.form_ == "linear"
    # What was fitted to dense rows is told of sparse ones too.
    np.testing.assert_allclose(said(values(), packed), said(values()), rtol=1e-10)


def test_folds_that_hold_rows_out_twice_have_no_trees():
    splits = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0).split(X))
    for cv in (splits, splits[:1]):
        assert MultitaskRegressor(form="trees", cv=cv).fit(X, Y, task=TASK).form_ == "linear"


def test_the_result_is_the_same_in_every_run():
    first, *others = (
        MultitaskRegressor(cv=2, n_jobs=n_jobs).fit(X, Y, task=TASK)
        for n_jobs in (None, None, 1, 2)
    )
    assert "trees" in first.form_
    for other in others:
        assert other.weights_ == first.weights_
        np.testing.assert_array_equal(said(other), said(first))


def test_trees_cut_short_are_left_out(monkeypatch):
    calls, fit_trees = [], stack_module.fit_trees

    def interrupted(*given):
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return fit_trees(*given)

    monkeypatch.setattr(stack_module, "fit_trees", interrupted)
    with pytest.warns(ConvergenceWarning, match="folds of the trees, which are left out"):
        model = MultitaskRegressor(form="trees", cv=2).fit(X, Y, task=TASK)
    assert model.form_ == "linear"


def test_a_fit_with_trees_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    path = str(tmp_path / "fit")
    with monkeypatch.context() as patch:
        patch.setattr(progress.Checkpoint, "finish", lambda self: None)
        whole = MultitaskRegressor(cv=2, checkpoint=path).fit(X, Y, task=TASK)
    calls = []
    for name in ("fit_fold", "fit_trees"):
        monkeypatch.setattr(stack_module, name, lambda *given: calls.append(given))
    again = MultitaskRegressor(cv=2, checkpoint=path).fit(X, Y, task=TASK)
    assert not calls and again.weights_ == whole.weights_ and "trees" in again.form_
    np.testing.assert_array_equal(said(again), said(whole))


def test_trees_as_arrays_predict_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    table = np.column_stack([X, rng.integers(0, 4, len(X)), np.ones(len(X))])
    bins = Bins.of(table)
    models = [
        HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=leaves, random_state=0).fit(
            bins(table), Y + number, sample_weight=rng.uniform(0.5, 2.0, len(Y))
        )
        for number, leaves in enumerate((8, 31))
    ]
    bare = Forest.of(models, bins, 0.0)
    for rows in (table, table + 0.1 * rng.standard_normal(table.shape), 10.0 * table):
        expected = sum(one.predict(bins(rows)) for one in models)
        constant = sum(float(one._baseline_prediction.item()) for one in models)
        np.testing.assert_allclose(bare.predict(rows) + constant, expected, rtol=1e-12, atol=1e-12)
    assert 3 < bare.depth < MAX_DEPTH and bare.fits(table.shape[1])
    none = Forest.of([], bins, 1.5)
    np.testing.assert_array_equal(none.predict(table), 1.5)
    assert none.fits(table.shape[1])


@pytest.mark.parametrize("made", MODELS)
def test_models_with_trees_come_back_the_same(made, tmp_path):
    model = made()
    model.save(tmp_path / "m.comtl")
    back = comtl.load(tmp_path / "m.comtl")
    assert "trees" in back.form_
    np.testing.assert_array_equal(said(back), said(model))


def forged(part, name, change):
    """Change an array of a part of the first trees of a model."""

    def forge(model):
        below, above = model._nonlinear.members
        first, *_ = above
        trees = above[first]
        inner = getattr(trees, part)
        made = replace(trees, **{part: replace(inner, **{name: change(getattr(inner, name))})})
        members = below, {**above, first: made}
        return replace(model._nonlinear, members=members)

    return forge


def put(value):
    """A copy of an array with another value at the first node that is no leaf."""

    def change(array):
        array = array.copy()
        array[:1] = value
        return array

    return change


def chained(left):
    """Each node the left child of the one before: deeper than any tree."""
    return np.minimum(np.arange(1, len(left) + 1), len(left) - 1)


DAMAGED = {
    "child beyond the nodes": forged("forest", "left", put(10**6)),
    "child before the nodes": forged("forest", "right", put(-1)),
    "cycle": forged("forest", "left", lambda left: np.roll(np.arange(len(left)), -1)),
    "leaf on one side": forged("forest", "left", put(0)),
    "chain": forged("forest", "left", chained),
    "feature beyond the columns": forged("forest", "feature", put(99)),
    "feature before the columns": forged("forest", "feature", put(-1)),
    "threshold that is no number": forged("forest", "threshold", put(np.nan)),
    "infinite value": forged("forest", "value", lambda value: value + np.inf),
    "constant that is no number": forged("forest", "constant", lambda value: np.nan),
    "fractions for nodes": forged("forest", "right", lambda right: right.astype(float)),
    "too few values": forged("forest", "value", lambda value: value[:-1]),
    "nodes in two dimensions": forged("forest", "left", lambda left: left[:, None]),
    "root beyond the nodes": forged("forest", "roots", lambda roots: roots + 10**6),
    "no level of the task": forged("features", "levelled", lambda levelled: False),
    "means of whole numbers": forged("features", "mean", lambda mean: mean.astype(int)),
    "more hinges": forged("features", "n_hinges", lambda n: n + 1),
    "fewer means": forged("features", "mean", lambda mean: mean[1:]),
    "no members": lambda model: replace(model._nonlinear, members=()),
    "no trees": lambda model: replace(model._nonlinear, members=model._nonlinear.members[:1]),
    "trees below": lambda model: replace(model._nonlinear, members=model._nonlinear.members[::-1]),
    "numbers for members": lambda model: replace(model._nonlinear, members=({"pooled": 1}, {})),
    "units of other tasks": lambda model: replace(model._nonlinear, scale=np.ones(3)),
    "another thing": lambda model: model._nonlinear.blends[0],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_trees_are_refused(name, tmp_path):
    model = values()
    other = object.__new__(type(model))
    vars(other).update(vars(model), _nonlinear=DAMAGED[name](model))
    other.save(tmp_path / "m.comtl")
    with pytest.raises(ModelFileError):
        comtl.load(tmp_path / "m.comtl")
