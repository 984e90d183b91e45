"""The ONNX graph says what the model says."""

import numpy as np
import pytest

import comtl
from comtl.baselines import IndependentClassifier, PooledRegressor

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

rng = np.random.default_rng(0)
TASK = np.repeat(["a", "b", "c", "d"], 20)
X = rng.normal(size=(80, 4))
Y = X @ rng.normal(size=4) + np.repeat(rng.normal(size=4), 20) + 0.3 * rng.normal(size=80)


def uneven(signal):
    """Few positives, and nowhere for sure: even odds would name hardly any."""
    noisy = signal + 2.0 * np.random.default_rng(1).normal(size=signal.shape)
    return noisy > np.quantile(noisy, 0.8, axis=0)


def said(model, rows, task=None):
    made = model.to_onnx()
    onnx.checker.check_model(made, full_check=True)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    inputs = {"X": rows}
    if task is not None:
        inputs["task"] = task.astype(object) if task.dtype.kind == "U" else task
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def assert_classes_agree(model, rows, task=None, tolerance=1e-10):
    """The graph names the same classes, by the same scores and probabilities of two."""
    found, scores = said(model, rows, task), model.decision_function(rows, task=task)
    assert found["prediction"].tolist() == model.predict(rows, task=task).tolist()
    known = np.isfinite(found["scores"])
    near = {"rtol": tolerance, "atol": 0.01 * tolerance}
    np.testing.assert_allclose(found["scores"][known], scores[known], **near)
    if "probability" in found:
        chance = model.predict_proba(rows, task=task)
        chance = chance[:, 1] if chance.ndim > found["probability"].ndim else chance
        np.testing.assert_allclose(found["probability"], chance, **near)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("labels", [TASK, np.unique(TASK, return_inverse=True)[1]])
def test_values(dtype, labels):
    rows = X.astype(dtype)
    model = comtl.BiFactorRegressor(2, shared=True).fit(rows, Y.astype(dtype), task=labels)
    found = said(model, rows, labels)
    assert found["prediction"].dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(
        found["prediction"], model.predict(rows, task=labels), rtol=tolerance, atol=tolerance
    )


def test_a_label_never_seen_gets_the_mean():
    model = comtl.HierarchicalRegressor().fit(X, Y, task=TASK)
    new = np.array(["a", "zebra"] * 5)
    found = said(model, X[:10], new)["prediction"]
    np.testing.assert_allclose(found, model.predict(X[:10], task=new), rtol=1e-12)


def test_hinges_and_a_task_column():
    table = np.column_stack([X, np.unique(TASK, return_inverse=True)[1]])
    target = Y + 3 * np.abs(X[:, 0])
    model = comtl.MultitaskRegressor(cv=2, form="hinges", task_column=4).fit(table, target)
    assert model.form_ == "hinges"
    found = said(model, X, table[:, 4].astype(np.int64))["prediction"]
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hinges_of_classes_and_of_a_column_for_each(dtype):
    rows, bent = X.astype(dtype), 3 * np.abs(X[:, 0])
    model = comtl.MultitaskClassifier(cv=2, form="hinges").fit(rows, bent > 2, task=TASK)
    assert model.form_ == "hinges"
    assert_classes_agree(model, rows.astype(model.coef_.dtype), TASK, 1e-4)
    table = comtl.MultitaskRegressor(cv=2, form="hinges").fit(rows, np.column_stack([bent, -bent]))
    assert table.form_ == "hinges"
    guess = said(table, rows.astype(table.coef_.dtype))["prediction"]
    np.testing.assert_allclose(guess, table.predict(rows), rtol=1e-5, atol=1e-5)


def test_one_task_and_a_column_for_each():
    for model, y in (
        (PooledRegressor(), Y),
        (comtl.HierarchicalRegressor(), np.column_stack([Y, Y**2, -Y])),
    ):
        model.fit(X, y)
        np.testing.assert_allclose(said(model, X)["prediction"], model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("names", [["no", "yes"], [3, 7], [False, True]], ids=str)
def test_two_classes(names):
    model = comtl.MultitaskClassifier(form="linear", cv=2, threshold="balanced_accuracy")
    model.fit(X, np.array(names)[uneven(Y).astype(int)], task=TASK)
    assert np.all(model.thresholds_ != 0.0)
    found = assert_classes_agree(model, X, np.where(np.arange(80) % 7, TASK, "new"))
    assert np.isfinite(found["scores"]).all() and "probability" in found


def test_thresholds_of_one_task_and_of_a_column_for_each():
    for y in (uneven(Y), uneven(np.column_stack([Y, -Y, X[:, 0]]))):
        model = comtl.MultitaskClassifier(form="linear", cv=2, threshold="balanced_accuracy")
        model.fit(X, y)
        assert np.all(model.thresholds_ != 0.0)
        assert "probability" in assert_classes_agree(model, X)


def test_several_classes_of_which_a_task_saw_some():
    label = np.digitize(Y, [-1.0, 1.0])
    label[TASK == "b"] = np.minimum(label[TASK == "b"], 1)
    model = IndependentClassifier(1.0).fit(X, label, task=TASK)
    new = np.where(np.arange(80) % 7, TASK, "new")
    known = np.isfinite(assert_classes_agree(model, X, new)["scores"])
    assert known[new == "b"].sum(axis=1).max() == 2
