"""Long fits: killed and begun again, interrupted, watched."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pkgutil import resolve_name

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import comtl
from comtl.engine import problem as engine
from comtl.engine import progress
from comtl.models import grid
from comtl.saving import ModelFileError
from comtl.stacking import stack

PROBLEM = """
import numpy as np
rng = np.random.default_rng(0)
task = np.repeat(np.arange(12), 15)
X = rng.normal(size=(180, 8))
W = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 8))
y = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.normal(size=180)
"""
KILLED = """
import os, signal, sys, comtl
from comtl.engine.progress import Checkpoint
left, path = int(sys.argv[1]), sys.argv[2]
def counted(write):
    def put(self, name, value):
        global left
        write(self, name, value)
        # Members of a stack have checkpoints of their own, in memory alone.
        if self._path is None:
            return
        self.flush()
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    return put
Checkpoint.save, Checkpoint.save_later = map(counted, (Checkpoint.save, Checkpoint.save_later))
"""
DRAWN = {}
exec(PROBLEM, DRAWN)
X, Y, TASK = (DRAWN[name] for name in ("X", "y", "task"))
TABLED = np.column_stack([X, TASK])
MODELS = {
    "BiFactorRegressor": "comtl.BiFactorRegressor(3, tol=1e-7, random_state=0, checkpoint=path)",
    "TriFactorRegressor": (
        "comtl.TriFactorRegressor(3, 2, shared=True, tol=1e-7, random_state=0, checkpoint=path)"
    ),
    "hard clusters": (
        "comtl.TriFactorRegressor(3, 2, feature_penalty='clusters', task_penalty='clusters', "
        "random_state=0, checkpoint=path)"
    ),
    "BiFactorRegressorCV": (
        "comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=3, random_state=0, "
        "checkpoint=path)"
    ),
    "MultitaskRegressor": "comtl.MultitaskRegressor(cv=3, checkpoint=path)",
    "with hinges": "comtl.MultitaskRegressor(cv=2, form='hinges', checkpoint=path)",
}


def built(text, path):
    return eval(text, {"comtl": comtl, "path": path})


@pytest.mark.parametrize(
    ("text", "after"),
    [(text, after) for name, text in MODELS.items() for after in (1, 2)[name == "with hinges" :]],
)
def test_a_fit_killed_goes_on_to_the_same_result(text, after, tmp_path, caplog):
    path = str(tmp_path / "fit.checkpoint")
    code = KILLED + PROBLEM + f"{text}.fit(X, y, task=task)"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(after), path],
        env=environment,
    )
    assert child.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["fit.checkpoint"]
    with caplog.at_level(logging.INFO, "comtl"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        resumed = built(text, path).fit(X, Y, task=TASK)
        lines = len(caplog.records)
        whole = built(text, None).fit(X, Y, task=TASK)
    assert not os.listdir(tmp_path)
    assert lines < len(caplog.records) - lines, "begun again rather than gone on"
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    np.testing.assert_array_equal(resumed.intercept_, whole.intercept_)
    if "CV" in text:
        scores = (each.cv_results_["mean_test_score"] for each in (resumed, whole))
        np.testing.assert_array_equal(*scores)
    if "Multitask" in text:
        assert resumed.weights_ == whole.weights_
    else:
        np.testing.assert_array_equal(resumed.objective_history_, whole.objective_history_)


def left_behind(path):
    """A checkpoint of a fit that did not end."""
    model = comtl.BiFactorRegressor(2, random_state=0, checkpoint=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "EVERY", 0.0)
        patch.setattr(progress.Checkpoint, "finish", lambda self: None)
        model.fit(X, Y, task=TASK)
    assert os.path.exists(path)
    return model


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    model = left_behind(str(tmp_path / "fit"))
    for params, y in (({}, Y + 1e-9), ({"alpha_task": 0.7}, Y)):
        with pytest.raises(ValueError, match=r"another fit.*remove"):
            clone(model).set_params(**params).fit(X, y, task=TASK)
    # What does not change the outcome may change.
    model.set_params(verbose=1).fit(X, Y, task=TASK)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "fit"
    model = left_behind(str(path))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ModelFileError):
        model.fit(X, Y, task=TASK)
    comtl.BiFactorRegressor(2).fit(X, Y, task=TASK).save(path)
    with pytest.raises(ModelFileError, match="no checkpoint"):
        model.fit(X, Y, task=TASK)


def interrupting(function, after):
    """The function, with the user's interruption when it is called once more than ``after``."""
    calls = []

    def called(*args, **kwargs):
        calls.append(1)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    return called


def test_a_stack_makes_do_with_the_folds_it_has(monkeypatch):
    monkeypatch.setattr(stack, "fit_fold", interrupting(stack.fit_fold, 2))
    with pytest.warns(ConvergenceWarning, match="after 2 of 4 folds"):
        model = comtl.MultitaskRegressor(cv=4).fit(X, Y, task=TASK)
    assert model.score(X, Y, task=TASK) > 0.8
    monkeypatch.setattr(stack, "fit_fold", interrupting(stack.fit_fold, 0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, task=TASK)


@pytest.mark.parametrize(
    "name", ["hierarchical.hierarchical_estimators.fit_em", "models.factor_model.FactorFit.steps"]
)
def test_no_member_of_a_stack_swallows_an_interruption(name, monkeypatch):
    steps, seen = resolve_name(f"comtl.{name}"), []

    def stopped(*args, **kwargs):
        yield next(steps(*args, **kwargs))
        seen.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"comtl.{name}", stopped)
    with pytest.raises(KeyboardInterrupt):
        comtl.MultitaskRegressor(cv=2).fit(X, Y, task=TASK)
    assert len(seen) == 1


ALONE = {"task_penalty": "ridge"}  # fitted one by one, not in batches


def test_a_search_makes_do_with_the_batches_it_has(monkeypatch):
    monkeypatch.setattr(grid, "_batch", interrupting(grid._batch, 1))
    search = comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=4, random_state=0)
    with pytest.warns(ConvergenceWarning, match="so far decides"):
        search.fit(X, Y, task=TASK)
    assert search.best_params_["n_components"] == 2
    known = np.isfinite(search.cv_results_["mean_test_score"])
    assert known.tolist() == [False, False, True, True]
    monkeypatch.setattr(grid, "_batch", interrupting(grid._batch, 0))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, task=TASK)


@pytest.mark.parametrize("after", [5, 9])
def test_a_search_makes_do_with_the_folds_it_has(after, monkeypatch):
    monkeypatch.setattr(grid.Fold, "losses", interrupting(grid.Fold.losses, after))
    search = comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=4, random_state=0, **ALONE)
    with pytest.warns(ConvergenceWarning, match="so far decides"):
        search.fit(X, Y, task=TASK)
    assert search.best_params_["n_components"] == 2
    assert search.score(X, Y, task=TASK) > 0.8
    # After nine, the screening of all settings is done and kept.
    assert after == 5 or np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("warm_path", [True, False])
def test_a_search_without_a_fold_ends(warm_path, monkeypatch):
    monkeypatch.setattr(grid.Fold, "losses", interrupting(grid.Fold.losses, 0))
    search = comtl.BiFactorRegressorCV(1, alphas=(0.1, 1.0), cv=4, warm_path=warm_path, **ALONE)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, task=TASK)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_that_nobody_interrupts_is_silent(n_jobs):
    search = comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=3, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, Y, task=TASK)


def test_an_interrupted_fit_leaves_its_checkpoint(tmp_path, monkeypatch):
    path = str(tmp_path / "fit")
    model = comtl.BiFactorRegressor(3, tol=1e-9, random_state=0, checkpoint=path)
    alternate = engine.alternate

    def stopped(*args):
        for step in alternate(*args):
            yield step
            if step.sweep == 4:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine, "alternate", stopped)
        with pytest.warns(ConvergenceWarning, match="Interrupted after sweep 4"):
            model.fit(X, Y, task=TASK)
    assert model.n_iter_ == 4
    assert os.path.exists(path)
    model.fit(X, Y, task=TASK)
    whole = comtl.BiFactorRegressor(3, tol=1e-9, random_state=0).fit(X, Y, task=TASK)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert not os.path.exists(path)


class Recorder:
    """Callback of scikit-learn that counts subtasks, and may stop a fit."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.names, self.scores, self.down = [], [], 0

    def setup(self, estimator, context):
        self.names.append(context.task_name)

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.names.append(context.task_name)
        if fitted_estimator is not None and context.parent is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.names) == self.stop_after

    def teardown(self, estimator, context):
        self.down += 1


def test_callbacks_see_every_sweep_and_may_stop_a_fit():
    seen, model = Recorder(), comtl.BiFactorRegressor(3, task_column=8, random_state=0)
    model.set_callbacks(seen).fit(TABLED, Y)
    assert seen.names == ["fit", *["sweep"] * (model.n_iter_ + 1), "fit"]
    assert seen.down == 1
    assert seen.scores[-1] == model.score(TABLED, Y)
    assert seen.scores[-1] > seen.scores[0]
    model.set_callbacks(Recorder(stop_after=4)).fit(TABLED, Y)
    assert model.n_iter_ == 2 and not model.converged_
    several = comtl.MultitaskRegressor(cv=4, task_column=8).set_callbacks(Recorder(stop_after=3))
    assert several.fit(TABLED, Y).score(TABLED, Y) > 0.8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_callbacks_see_folds_steps_and_fits():
    for model, name in (
        (comtl.MultitaskRegressor(cv=3, task_column=8), "fold"),
        (comtl.HierarchicalRegressor(task_column=8, max_iter=5), "step"),
        (comtl.BiFactorRegressorCV([1, 2, 3], alphas=[0.1], cv=3, task_column=8), "batch of fits"),
        (comtl.BiFactorRegressorCV(2, alphas=[1], cv=3, task_column=8, **ALONE), "fit on a fold"),
    ):
        seen = Recorder()
        model.set_callbacks(seen).fit(TABLED, Y)
        assert seen.names[0] == seen.names[-1] == "fit"
        assert seen.names.count(name) >= 3


def test_the_progress_bar_of_scikit_learn_works(tmp_path):
    from sklearn.callback import ProgressBar

    model = comtl.BiFactorRegressor(3, task_column=8).set_callbacks(ProgressBar()).fit(TABLED, Y)
    model.save(tmp_path / "m.comtl")
    assert "_skl_callbacks" not in vars(comtl.load(tmp_path / "m.comtl"))
