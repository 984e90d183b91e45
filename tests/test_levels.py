"""Members of a level above: what they are told, and when they count."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, RepeatedKFold

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.engine import progress
from comtl.linear import OutputColumns
from comtl.losses import Squared
from comtl.rows.fit_input import FitInput
from comtl.stacking import stack as stack_module
from comtl.stacking.default_members import default_members
from comtl.stacking.fitted_stack import FittedStack
from comtl.stacking.hinges import Hinges
from comtl.stacking.members import MemberRows, Predicted, Shape
from comtl.stacking.stack import FoldRun, fit_stack
from comtl.stacking.stack_rows import StackRows, TargetScaling


def features(rows, base):
    X = rows.X if rows.row is None else rows.X[rows.row]
    return np.column_stack([X, base.score, base.coef])


@dataclass(frozen=True)
class FittedTrees:
    trees: HistGradientBoostingRegressor
    linear = None

    def score(self, rows, base):
        return Predicted(base.score + self.trees.predict(features(rows, base)))


@dataclass(frozen=True)
class Boosted:
    """Trees on what the stack below leaves."""

    name = "boosted"
    level = 1
    seen: list = field(default_factory=list)

    def fit(self, rows, shared, base):
        self.seen.append((rows, base))
        trees = HistGradientBoostingRegressor(learning_rate=0.1, max_iter=80, random_state=0)
        trees.fit(features(rows, base), rows.y - base.score, sample_weight=rows.weights)
        return FittedTrees(trees)


class WithTrees:
    """A stack with a member on level 1."""

    def _members(self, shape):
        return [*super()._members(shape), Boosted()]


class Values(WithTrees, MultitaskRegressor):
    pass


class Classes(WithTrees, MultitaskClassifier):
    pass


def draw(depth, seed=0, rows=40, tasks=15):
    """Linear in five columns, and an exclusive or of two of them times a task's effect."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), 5))
    slopes = 1.0 + 0.5 * rng.standard_normal((tasks, 5))
    effect = depth * (1.0 + 0.3 * rng.standard_normal(tasks))
    y = np.einsum("np,np->n", X, slopes[task]) + effect[task] * np.sign(X[:, 0] * X[:, 1])
    return X, y + 0.5 * rng.standard_normal(len(task)), task


def fitted_to_half(kinds, X, y, task):
    """Models of every second row, and the others."""
    half = np.arange(len(y)) % 2 == 0
    models = [kind(cv=3).fit(X[half], y[half], task=task[half]) for kind in kinds]
    return models, X[~half], y[~half], task[~half]


def stacked(members, X, y, task, splits):
    schema = MultitaskRegressor()
    given = FitInput(X, y, task)
    data = given.read(schema)
    rows = StackRows(given, schema, Hinges.none(), TargetScaling.of(data), None, splits)
    return fit_stack(rows, members, Squared(), FoldRun()), data


def test_a_member_sees_predictions_made_without_the_row():
    X, y, task = draw(3.0)
    below = default_members(Shape(5, 15, 15), classification=False)[:3]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    trees = Boosted()
    stack, data = stacked([*below, trees], X, y, task, splits)
    names = [one.name for one in stack.members]
    predicted = stack.blends[0](stack.held.predicted(names))
    for number, (rows, base) in enumerate(trees.seen):
        others = stack.fold != number
        assert sorted(rows.y) == sorted(np.delete(y, splits[number][1]))
        for what in ("score", "coef"):
            expected = getattr(predicted, what)[others]
            np.testing.assert_array_equal(getattr(base, what), expected)
    for number, (_, held) in enumerate(splits):
        changed = y.copy()
        changed[held] += np.random.default_rng(1).standard_normal(len(held))
        found, _ = stacked(below, X, changed, task, splits)
        same, one, other = stack.fold == number, found.held, stack.held
        assert not np.array_equal(one.y[same], other.y[same])
        np.testing.assert_array_equal(one.scores[same], other.scores[same, :3])
        assert not np.array_equal(one.scores[~same], other.scores[~same, :3])
    trees.seen.clear()
    fitted = FittedStack.of(stack, data)
    ((rows, base),) = trees.seen
    assert len(rows.y) == len(base.score) == len(y)
    rows = MemberRows.of(data, data.tasks, OutputColumns.of(data))
    found = fitted.blends[-1](fitted.predicted(rows))
    assert np.mean((found.score - data.y) ** 2) < 2.0
    assert found.coef.shape == X.shape


@dataclass(frozen=True)
class Tree:
    """Trees on the rows themselves: a member of the lowest level without coefficients."""

    name = "tree"
    level = 0
    linear = None

    def fit(self, rows, shared, base):
        trees = HistGradientBoostingRegressor(max_iter=40, random_state=0)
        return TreeAlone(trees.fit(rows.X[rows_of(rows)], rows.y, sample_weight=rows.weights))


@dataclass(frozen=True)
class TreeAlone:
    trees: HistGradientBoostingRegressor
    linear = None

    def score(self, rows, base):
        return Predicted(self.trees.predict(rows.X[rows_of(rows)]))


def rows_of(rows):
    return slice(None) if rows.row is None else rows.row


@pytest.mark.parametrize("position", range(4))
def test_coefficients_stay_with_their_members(position):
    X, y, task = draw(3.0)
    below = default_members(Shape(5, 15, 15), classification=False)[:3]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    plain, _ = stacked([*below, Boosted()], X, y, task, splits)
    members = [*below[:position], Tree(), *below[position:], Boosted()]
    stack, data = stacked(members, X, y, task, splits)
    found = stack.held.predicted([one.name for one in stack.members])
    expected = plain.held.predicted([one.name for one in plain.members])
    assert found["tree"].coef is None
    for one in below:
        np.testing.assert_array_equal(found[one.name].coef, expected[one.name].coef)
    fitted = FittedStack.of(stack, data)
    rows = MemberRows.of(data, data.tasks, OutputColumns.of(data))
    assert np.isfinite(fitted.blends[-1](fitted.predicted(rows)).score).all()


def test_members_without_coefficients_count_in_intervals_and_not_in_graphs():
    X, y, task = draw(3.0)
    model = Values(cv=3).fit(X, y, task=task)
    data = FitInput(X, y, task).read(MultitaskRegressor())
    known = model._observation_scores(data, data.codes)
    np.testing.assert_allclose(known, model.predict(data.X, task=data.tasks[data.codes]))
    with pytest.raises(TypeError, match="members 'boosted' in weights_ are not"):
        model.to_onnx()


def test_it_wins_where_columns_interact():
    (plain, model), X, y, task = fitted_to_half((MultitaskRegressor, Values), *draw(3.0))
    assert model.weights_["boosted"] > 0.5
    assert type(model.members_["boosted"]) is FittedTrees
    ours, linear = (np.mean((one.predict(X, task=task) - y) ** 2) for one in (model, plain))
    assert ours < 0.7 * linear
    low, high = model.predict_interval(X, 0.9, task=task)
    assert 0.8 < np.mean((low < y) & (y < high)) < 0.99
    assert model.coef_.shape == (15, 5)
    unseen = model.predict(X[:3], task=[0, 99, 98])
    np.testing.assert_allclose(unseen[0], model.predict(X[:1], task=[0])[0])
    assert np.isfinite(unseen).all()


def test_it_is_left_out_where_the_truth_is_linear():
    X, y, task = draw(0.0)
    plain, model = (kind(cv=3).fit(X, y, task=task) for kind in (MultitaskRegressor, Values))
    assert model.weights_.get("boosted", 0.0) < 0.05
    np.testing.assert_allclose(model.predict(X, task=task), plain.predict(X, task=task), atol=0.05)


@pytest.mark.parametrize("count", [2, 3])
def test_it_wins_among_classes(count):
    X, y, task = draw(4.0, rows=60)
    labels = np.digitize(y, np.quantile(y, np.arange(1, count) / count))
    models, *rest = fitted_to_half((MultitaskClassifier, Classes), X, labels, task)
    assert models[1].weights_["boosted"] > 0.3
    linear, ours = (one.score(*rest) for one in models)
    assert ours > linear + 0.02


def test_columns_of_a_table_keep_their_units():
    X, y, _ = draw(3.0, rows=300, tasks=1)
    units = np.array([1.0, 1e4])
    Y = np.column_stack([y, y + 0.5 * np.random.default_rng(0).standard_normal(len(y))])
    one, other = Values(cv=3).fit(X, Y), Values(cv=3).fit(X, Y * units)
    assert one.weights_["boosted"] > 0.5
    np.testing.assert_allclose(other.predict(X) / units, one.predict(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        one.predict(X, task=np.ones(len(X), int)), one.predict(X)[:, 1], rtol=1e-10
    )


def test_folds_that_hold_rows_out_twice_have_no_level_above():
    X, y, task = draw(3.0)
    splits = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0).split(X))
    assert "boosted" not in Values(cv=splits).fit(X, y, task=task).weights_
    assert "boosted" not in Values(cv=splits[:1]).fit(X, y, task=task).weights_


def test_a_level_above_cut_short_is_left_out(monkeypatch):
    X, y, task = draw(3.0)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(stack_module, "fit_fold_above", interrupted)
    with pytest.warns(ConvergenceWarning, match="next level, which are left out"):
        assert "boosted" not in Values(cv=2).fit(X, y, task=task).weights_


def test_a_fit_with_two_levels_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, y, task = draw(3.0)
    path = str(tmp_path / "fit")
    with monkeypatch.context() as patch:
        patch.setattr(progress.Checkpoint, "finish", lambda self: None)
        whole = Values(cv=2, checkpoint=path).fit(X, y, task=task)
    calls = []
    for name in ("fit_fold", "fit_fold_above"):
        monkeypatch.setattr(stack_module, name, lambda *given: calls.append(given))
    again = Values(cv=2, checkpoint=path).fit(X, y, task=task)
    assert not calls and again.weights_ == whole.weights_
