"""Figures: what is drawn, not only that something is."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    BiFactorRegressorCV,
    HierarchicalRegressor,
    MultitaskRegressor,
    TriFactorRegressorCV,
    plot,
)
from comtl.baselines import PooledRegressor
from comtl.show.views import BinnedAxis, seriation_order, view
from pages import comparison_of, large_model

NAMES = ["age", "income", "floor", "rooms", "price $", "ψ"]


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def two_kinds(T=8, n=30, seed=0):
    """Even tasks follow the first three features, odd ones the others."""
    rng = np.random.default_rng(seed)
    W = np.zeros((T, 6))
    W[::2, :3], W[1::2, 3:] = 2.0, -2.0
    task = np.repeat(np.arange(T), n)
    scale = np.array([1.0, 1000.0, 1.0, 1.0, 0.001, 1.0])
    X = rng.normal(size=(T * n, 6))
    y = (X * W[task]).sum(axis=1) + 0.1 * rng.normal(size=T * n)
    frame = pd.DataFrame(X * scale, columns=NAMES)
    frame["town"] = [f"t{label}" for label in task]
    return frame, y


@pytest.fixture(scope="module")
def model():
    X, y = two_kinds()
    return BiFactorRegressor(2, task_column="town", random_state=0).fit(X, y)


def comparison(T=3, **changes):
    rng = np.random.default_rng(0)
    own = 1.0 + np.arange(T)
    errors = {"model": own, "separate": own + rng.permutation(T), "pooled": own + 3.0}
    gains = dict.fromkeys(("separate", "pooled"), np.ones(T))
    fields = {"nominal": np.array([0.5, 0.9]), "coverage": np.array([0.45, 0.93])}
    return comparison_of(changes.pop("errors", errors), gains, gains, **(fields | changes))


def texts(labels):
    return [label.get_text() for label in labels]


def test_coclusters_orders_rows_and_columns_by_cluster(model):
    ax = plot.coclusters(model, ax=(given := pyplot.figure().add_subplot()))
    assert ax is given
    rows, columns = texts(ax.get_yticklabels()), texts(ax.get_xticklabels())
    frame = model.coef_frame()
    assert sorted(rows) == sorted(frame.index) and sorted(columns) == sorted(NAMES)
    clusters = dict(zip(model.tasks_, model.task_clusters_, strict=True))
    order = [clusters[name] for name in rows]
    assert order == sorted(order) and len(set(order)) == 2
    assert {name[1:] for name in rows[:4]} in ({"0", "2", "4", "6"}, {"1", "3", "5", "7"})
    spread = two_kinds()[0][columns].std(ddof=0).to_numpy()
    expected = frame.loc[rows, columns].to_numpy() * spread
    np.testing.assert_allclose(ax.images[0].get_array(), expected, rtol=1e-6)
    # Features of very different units have weights of one size: blocks of two and minus two.
    assert np.abs(expected).max() == pytest.approx(2.0, rel=0.2)


def test_coclusters_has_lines_between_clusters_and_strips(model):
    ax = plot.coclusters(model)
    across = [line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0]
    assert 3.5 in across
    rows, columns = (strip.images[0].get_array() for strip in ax.child_axes)
    assert rows.shape[:2] == (8, 1) and columns.shape[:2] == (1, 6)
    assert len(np.unique(rows.reshape(-1, 3), axis=0)) == 2
    assert ax.get_xlabel() == "6 features" and ax.get_ylabel() == "8 tasks"


def test_coclusters_of_classes_has_a_row_for_each():
    X, y = two_kinds(T=3)
    classes = np.array(["low", "mid", "top"])[np.digitize(y, [-1.0, 1.0])]
    fitted = BiFactorClassifier(2, task_column="town", random_state=0).fit(X, classes)
    rows = texts(plot.coclusters(fitted).get_yticklabels())
    assert len(rows) == 9 and "t0 · low" in rows and "t2 · top" in rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_models_are_put_together():
    fitted, _ = large_model()
    ax = plot.coclusters(fitted)
    drawn = ax.images[0].get_array()
    assert drawn.shape[0] <= 400 and drawn.shape[1] <= 400
    assert texts(ax.get_yticklabels()) == [] and ax.get_xlabel() == "5,000 features"
    seen = view(fitted)
    assert 0.0 < np.abs(drawn).max() <= np.abs(seen.values).max()
    for axes in (plot.feature_relation(fitted), plot.task_relation(fitted)):
        assert max(axes.images[0].get_array().shape) <= 300


def test_task_relation_is_the_learned_one_as_correlations(model):
    ax = plot.task_relation(model)
    names = texts(ax.get_yticklabels())
    assert names == texts(ax.get_xticklabels())
    order = [model.tasks_.tolist().index(name) for name in names]
    learned = model.task_relation_.toarray()
    size = np.sqrt(np.diag(learned))
    expected = (learned / np.outer(size, size))[np.ix_(order, order)]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-8)
    # Tasks of a kind stand side by side.
    assert len({int(name[1:]) % 2 for name in names[:4]}) == 1


def test_relations_without_a_learned_one_are_cosines():
    X, y = two_kinds()
    fitted = HierarchicalRegressor(task_column="town").fit(X, y)
    ax = plot.feature_relation(fitted)
    order = [NAMES.index(name) for name in texts(ax.get_yticklabels())]
    columns = view(fitted).values[:, order]
    columns = columns / np.linalg.norm(columns, axis=0)
    np.testing.assert_allclose(ax.images[0].get_array(), columns.T @ columns, atol=1e-8)


def test_adapted_tasks_are_in_the_relation(model):
    X, y = two_kinds(T=2, seed=1)
    X["town"] = "new " + X["town"]
    adapted = model.adapt(X, y)
    assert "new t0" in texts(plot.task_relation(adapted).get_yticklabels())


def test_bins_keep_means_and_borders():
    clusters = np.array([1, 0, 1, 0, 0, 1, 1, 1])
    values = np.arange(16.0).reshape(8, 2)
    bins = BinnedAxis.of(np.argsort(clusters, kind="stable"), clusters, most=4)
    assert len(bins.clusters) <= 4 and bins.clusters.tolist() == sorted(bins.clusters.tolist())
    sizes = np.diff(bins.edges)
    means = bins.shares @ values
    np.testing.assert_allclose(sizes @ means, values.sum(axis=0))
    for label in (0, 1):
        own = bins.clusters == label
        total = sizes[own] @ means[own]
        np.testing.assert_allclose(total, values[clusters == label].sum(axis=0))
    assert bins.names(list("abcdefgh"))[0] == "b … e (3)"


def test_one_task_and_one_feature():
    X = np.arange(10.0)[:, None]
    fitted = PooledRegressor().fit(X, X[:, 0])
    for draw in (plot.coclusters, plot.task_relation):
        assert draw(fitted).images[0].get_array().shape == (1, 1)


def test_weights_that_are_zero():
    X = np.random.default_rng(0).normal(size=(20, 2))
    fitted = BiFactorRegressor(1).fit(X, np.zeros(20), task=np.repeat([0, 1], 10))
    assert not plot.coclusters(fitted).images[0].get_array().any()


def test_history_is_that_of_the_fit(model):
    ax = plot.history(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_history_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sweep", "objective")
    assert "converged" in ax.get_title()


def test_history_of_a_stack_names_the_remedy():
    X, y = two_kinds(T=2, n=20)
    stack = MultitaskRegressor(task_column="town", cv=2).fit(X, y)
    with pytest.raises(ValueError, match="members_"):
        plot.history(stack)
    assert set(texts(plot.coclusters(stack).get_xticklabels())) == set(NAMES)


def test_task_errors_has_the_largest_gain_on_top():
    found = comparison(5)
    ax = plot.task_errors(found)
    gain = found.errors["separate"] - found.errors["model"]
    expected = found.tasks[np.argsort(-gain)].tolist()
    assert texts(ax.get_yticklabels()) == expected and ax.yaxis_inverted()
    drawn = {dots.get_label(): dots.get_offsets()[:, 0] for dots in ax.collections[1:]}
    np.testing.assert_allclose(drawn["model"], found.errors["model"][np.argsort(-gain)])
    assert ax.get_xlabel() == "RMSE"


def test_task_errors_leaves_out_tasks_without_rows():
    errors = comparison(3).errors
    some = comparison(3, errors=errors | {"model": np.array([1.0, np.nan, 2.0])})
    assert sorted(texts(plot.task_errors(some).get_yticklabels())) == ["t0", "t2"]
    with pytest.raises(ValueError, match="held-out rows"):
        plot.task_errors(comparison(3, errors=errors | {"model": np.full(3, np.nan)}))


def test_task_errors_of_many_are_dots():
    found = comparison(200)
    ax = plot.task_errors(found)
    across, up = ax.collections[0].get_offsets().T
    np.testing.assert_allclose(across, found.errors["separate"])
    np.testing.assert_allclose(up, found.errors["model"])
    assert texts(ax.get_legend().get_texts()) == ["against separate", "against pooled"]


def test_calibration_shows_what_was_covered():
    line = plot.calibration(comparison()).lines[1]
    assert line.get_xdata().tolist() == [0.5, 0.9] and line.get_ydata().tolist() == [0.45, 0.93]
    with pytest.raises(ValueError, match="without intervals"):
        plot.calibration(comparison(nominal=None, coverage=None))


def test_sensitivity_of_ranks_is_a_surface():
    X, y = two_kinds(T=4, n=15)
    settings = {"task_column": "town", "alphas": (1.0, 0.01), "cv": 3, "random_state": 0}
    search = TriFactorRegressorCV([1, 2], [1, 2], **settings).fit(X, y)
    ax = plot.sensitivity(search)
    assert texts(ax.get_yticklabels()) == ["1 × 1", "1 × 2", "2 × 1", "2 × 2"]
    assert texts(ax.get_xticklabels()) == ["0.01", "1"]
    losses = ax.images[0].get_array()
    setting = {"n_feature_clusters": 2, "n_task_clusters": 1, "alpha_task": 0.01}
    place = search.cv_results_["params"].index(setting)
    assert losses[2, 0] == pytest.approx(-search.cv_results_["mean_test_score"][place])
    marked = next(text for text in ax.texts if "★" in text.get_text())
    column, row = marked.get_position()
    assert losses[row, column] == losses.min() == pytest.approx(-search.best_score_)


def test_sensitivity_of_one_rank_is_a_line():
    X, y = two_kinds(T=4, n=15)
    search = BiFactorRegressorCV(2, task_column="town", alphas=(0.01, 1.0, 100.0), cv=3).fit(X, y)
    ax = plot.sensitivity(search)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), -search.cv_results_["mean_test_score"])


def test_errors_name_the_argument(model):
    for draw in (plot.coclusters, plot.task_relation, plot.history):
        with pytest.raises(TypeError, match="model must be a fitted estimator"):
            draw("model")
        with pytest.raises(ValueError, match="not fitted"):
            draw(BiFactorRegressor())
    with pytest.raises(TypeError, match="search must be a fitted"):
        plot.sensitivity(model)
    with pytest.raises(TypeError, match="comparison must be"):
        plot.task_errors(model)
    with pytest.raises(TypeError, match="ax must be"):
        plot.history(model, ax=pyplot.figure())


def test_rows_stand_along_the_leading_direction():
    """Power steps find it where one step from the start does not."""
    rng = np.random.default_rng(0)
    place = rng.permutation(40)
    table = np.outer(place - 19.5, rng.normal(size=6)) + 20.0 * rng.normal(size=6)
    table -= table.mean(axis=0)
    order = seriation_order(table, np.zeros(40, dtype=int))
    steps = np.diff(place[order])
    assert np.all(steps == 1) or np.all(steps == -1)
