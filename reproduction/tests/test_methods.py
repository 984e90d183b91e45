"""The methods of the tables and how they are tuned."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from comtl import TaskStratifiedKFold
from comtl.datasets import make_syn4
from comtl.models import grid
from comtl.models.search import search
from comtl.rows.fit_input import FitInput
from comtl_reproduction import methods, tuning
from comtl_reproduction.methods import METHODS, Method
from comtl_reproduction.metrics import choose_cut, macro_f, rmse
from comtl_reproduction.text import COLUMNS, fit_and_score, held_out_scores
from comtl_reproduction.tuning import tune


@pytest.fixture(scope="module")
def data():
    return make_syn4(n_tasks=6, n_features=5, n_train=12, n_test=20)


def rows_of(data):
    return FitInput(data.X, data.y, data.task)


def test_rmse_is_the_unweighted_mean_over_tasks():
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 50))
    task = rng.permutation(np.repeat(["a", "b", "c"], [5, 15, 30]))
    by_hand = [np.sqrt(np.mean((truth - guess)[task == t] ** 2)) for t in "abc"]
    found = rmse(truth, guess, task)
    assert found["rmse"] == pytest.approx(np.mean(by_hand))
    assert found["rmse_pooled"] == pytest.approx(np.sqrt(np.mean((truth - guess) ** 2)))


def test_macro_f_is_scikit_learns_for_each_task():
    rng = np.random.default_rng(1)
    truth, guess = rng.random((2, 90)) > 0.6
    task = rng.integers(4, size=90)
    by_hand = [f1_score(truth[task == t], guess[task == t], average="macro") for t in range(4)]
    found = macro_f(truth, guess, task)
    assert found["f"] == pytest.approx(np.mean(by_hand))
    assert found["f_pooled"] == pytest.approx(f1_score(truth, guess, average="macro"))


def test_the_cut_is_no_worse_than_zero_and_follows_tasks():
    rng = np.random.default_rng(2)
    task = np.repeat([0, 1], 200)
    truth = rng.random(400) < np.where(task == 0, 0.2, 0.6)
    scores = truth + 0.3 * rng.normal(size=400) + np.where(task == 0, -1.0, 0.4)
    reached, cuts = choose_cut(truth, scores, task)
    assert reached > macro_f(truth, scores > 0.0, task)["f"] + 0.2
    assert cuts[0] < cuts[1]
    own = np.array([cuts[t] for t in task])
    assert macro_f(truth, scores > own, task)["f"] == pytest.approx(reached)


def test_every_method_can_be_tuned(data, monkeypatch):
    monkeypatch.setattr(tuning, "WIDENINGS", 0)
    truth = rmse(data.y_test, 0.0 * data.y_test, data.task_test)["rmse"]
    for name, method in METHODS.items():
        small = Method(
            name,
            method.kind,
            {key: values[len(values) // 2 :][:2] for key, values in method.penalties.items()},
            dict.fromkeys(method.ranks, (2, 3)),
            method.fixed,
        )
        tuned = tune(small, rows_of(data))
        guess = tuned.model.predict(data.X_test, task=data.task_test)
        assert rmse(data.y_test, guess, data.task_test)["rmse"] < 1.1 * truth, name
        assert set(tuned.setting) == set(method.penalties) | set(method.ranks)


def test_a_winner_at_the_edge_widens_the_grid(data):
    far = Method("far", "Independent", {"alpha": (1e4, 1e5)})
    near = Method("near", "Independent", {"alpha": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2)})
    found = tune(far, rows_of(data))
    assert found.setting["alpha"] < 1e3
    assert found.loss <= tune(near, rows_of(data)).loss * 1.05


def test_the_choice_is_that_of_the_search_on_training_rows_alone(data):
    method = Method("ridge", "Independent", {"alpha": (0.01, 1.0, 100.0)})
    tuned = tune(method, rows_of(data))
    grid = [0.01, 0.1, 1.0, 10.0, 100.0]
    models = [method.model(text=False, alpha=alpha) for alpha in grid]
    splits = [
        list(TaskStratifiedKFold(3, random_state=number).split(data.X, None, data.task))
        for number in range(3)
    ]
    losses = [search(models[0], models, rows_of(data), cv=cv, warm=False).mean for cv in splits]
    mean = np.mean(losses, axis=0)
    assert tuned.setting["alpha"] == grid[int(mean.argmin())]  # there are fewer than finalists
    assert tuned.loss == pytest.approx(mean.min())


def test_pairs_and_grids_for_text():
    tri, sparse = METHODS["TriFactor"], METHODS["GO-MTL"]
    assert len(tri.rank_settings(text=False)) == 49
    assert len(tri.rank_settings(text=True)) == 8
    assert [s["n_components"] for s in sparse.rank_settings(text=True)] == [2, 5, 10]
    assert sparse.axes(text=False)["alpha_task"] == methods.GRIDS["decades"]
    assert tri.model(text=True).loss == "squared" and not tri.model(text=True).standardize


def test_scores_of_training_rows_come_from_models_that_have_not_seen_them(data):
    labels = np.where(data.y > 0, 1, -1)
    rows = FitInput(data.X, labels, data.task)
    model = METHODS["ITL"].model(text=True, alpha=1e-6)
    scores = held_out_scores(model, rows)
    seen = model.fit(rows.X, rows.y, task=rows.task).decision_function(rows.X, task=rows.task)
    # Twelve rows and five columns a task: what has been seen is fitted better.
    assert np.mean((seen - labels) ** 2) < 0.8 * np.mean((scores - labels) ** 2)
    test = FitInput(data.X_test, np.where(data.y_test > 0, 1, -1), data.task_test)
    small = Method("pooled", "Pooled", {"alpha": (0.1, 1.0)})
    found = fit_and_score(small, rows, test)
    assert set(found) == set(COLUMNS)
    model = small.model(text=True, alpha=float(found["setting"].split("=")[1]))
    guess = model.fit(rows.X, rows.y, task=rows.task).predict(test.X, task=test.task)
    parts = [(test.y[test.task == t], guess[test.task == t]) for t in range(6)]
    by_hand = [f1_score(*part, average="macro") for part in parts]
    assert found["f"] == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("after", [0, 7])
def test_an_interruption_of_a_search_ends_the_experiment(after, data, monkeypatch):
    losses, calls = grid.Fold.losses, iter(range(after + 1))

    def interrupted(*args, **kwargs):
        if next(calls) == after:
            raise KeyboardInterrupt
        return losses(*args, **kwargs)

    monkeypatch.setattr(grid.Fold, "losses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(METHODS["FMTL"], rows_of(data))
