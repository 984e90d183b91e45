"""The page of a model: what it says, that names are harmless, how large it is."""

import base64
import json
import re
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    HierarchicalRegressor,
    MultitaskRegressor,
)
from comtl.baselines import IndependentRegressor, PooledRegressor
from comtl.evaluation import compare
from comtl.show.page import page, write_report
from comtl.show.page_data import as_json
from comtl.show.page_text import headline

EVIL = "</script><script>alert(1)</script>"


def problem(T=6, n=20, seed=0):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(T * n, 3)), np.repeat([f"t{i}" for i in range(T)], n)
    own = np.repeat(rng.normal(size=T), n)
    return X, X[:, 0] * (1.0 + own) + own + 0.5 * rng.normal(size=T * n), task


@pytest.fixture(scope="module")
def fitted():
    X, y, task = problem()
    model = HierarchicalRegressor().fit(X, y, task=task)
    return model, compare(model, X, y, task)


def embedded(text):
    """The numbers of the page, as its script reads them."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=f"<{kind}")


def test_page_is_one_file_that_fetches_nothing(tmp_path, fitted):
    model, found = fitted
    path = write_report(tmp_path / "new" / "report.html", model, comparison=found)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "{{" not in text.split("<script")[0]
    assert not re.search(r"(src|href)=[\"'](?!#)|http(?!-equiv)", text)
    assert "default-src 'none'" in text and "@media print" in text
    assert "prefers-color-scheme: dark" in text
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_the_only_script_is_the_one_that_the_policy_names(fitted):
    text = page(*fitted)
    assert text == page(*fitted)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_summary_and_scores(fitted):
    model, found = fitted
    text = page(model, found, notes=["Task t1 has <few> rows."], title="Schools & towns")
    assert "<title>Schools &amp; towns</title>" in text
    assert "Task t1 has &lt;few&gt; rows." in text
    assert headline(found) in text
    for name in ("model", "separate", "pooled", "mean"):
        assert f"{found.overall[name]:#.4g}" in text
    assert "Coverage of the intervals" in text and f"{100 * found.coverage[-1]:.1f} %" in text
    assert "log marginal likelihood" in text and "Members of the stack" not in text


def test_without_a_comparison_the_page_says_how_to_get_one(fitted):
    text = page(fitted[0])
    assert "Not compared yet" in text and "model.report(" in text
    assert "Coverage of the intervals" not in text and 'id="scores"' not in text
    assert embedded(text)["scores"] is None


def test_table_holds_errors_and_signs(fitted):
    model, found = fitted
    data = embedded(page(model, found))
    assert data["tasks"] == model.tasks_.tolist() and data["scores"]["metric"] == "RMSE"
    np.testing.assert_allclose(data["scores"]["errors"]["model"], found.errors["model"], rtol=1e-6)
    assert data["scores"]["signs"]["pooled"] == found.task_signs("pooled").tolist()
    assert data["scores"]["rows"] == [20.0] * 6
    assert data["taskClusters"] == model.task_clusters_.tolist()


def test_largest_weights_and_nearest_tasks(fitted):
    model, _ = fitted
    data = embedded(page(model))
    count = data["top"]["count"]
    assert count == 3
    features = unpacked(data["top"]["feature"], "u4").reshape(-1, count)
    values = unpacked(data["top"]["value"], "f4").reshape(-1, count)
    spread = unpacked(data["spread"], "f4")
    expected = np.take_along_axis(model.coef_, features.astype(int), axis=1)
    np.testing.assert_allclose(values / spread[features], expected, rtol=1e-5)
    assert (np.diff(np.abs(values), axis=1) <= 0).all()
    near = unpacked(data["near"]["task"], "u4").reshape(6, -1)
    table = model.coef_ * spread
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosine = unit @ unit.T - 2.0 * np.eye(6)
    np.testing.assert_array_equal(near[:, 0], cosine.argmax(axis=1))
    assert near.shape[1] == 5


def test_map_holds_the_weights(fitted):
    model, _ = fitted
    data = embedded(page(model))
    plan = data["map"]
    cells = unpacked(plan["entries"], "i2").reshape(6, 3) / 32767 * plan["most"]
    rows, columns = (unpacked(plan[side]["order"], "u4") for side in ("rows", "columns"))
    expected = (model.coef_ * unpacked(data["spread"], "f4"))[rows][:, columns]
    np.testing.assert_allclose(cells, expected, atol=1e-4 * plan["most"])
    assert (np.diff(model.task_clusters_[rows]) >= 0).all()


def test_members_of_a_stack_are_shown():
    X, y, task = problem(T=3)
    model = MultitaskRegressor(cv=3).fit(X, y, task=task)
    text = page(model)
    assert "Members of the stack" in text
    for name, share in model.weights_.items():
        assert name in text and f"{share:.3f}" in text


@pytest.mark.parametrize("where", ["task", "feature", "note", "title", "class"])
def test_names_are_harmless(where):
    X, y, task = problem(T=3)
    frame = pd.DataFrame(X, columns=[EVIL if where == "feature" else "a", "b", "c"])
    if where == "task":
        task = np.where(task == "t0", EVIL, task)
    model = PooledRegressor()
    if where == "class":
        model, y = BiFactorClassifier(2), np.where(y > 1, EVIL, np.where(y > 0, "b", "c"))
    found = compare(model.fit(frame, y, task=task), frame, y, task, folds=2)
    notes, title = ([EVIL] if where == "note" else []), (EVIL if where == "title" else None)
    text = page(model, found, notes, title)
    assert "<script>alert" not in text and text.count("<script") == text.count("</script>") == 2
    data = embedded(text)
    for name, key in {"task": "tasks", "feature": "features", "class": "classes"}.items():
        assert (EVIL in data[key]) == (where == name)


@pytest.mark.parametrize("tasks", [["{{css}}", "{{none}}"], ["école", "Żółw 🐢"]])
def test_names_in_unicode_and_like_places_to_fill_are_kept(tasks):
    X, y, task = problem(T=2)
    names = ["größe", "年齢", "a\u2028b"]
    frame = pd.DataFrame(X, columns=names)
    model = PooledRegressor().fit(frame, y, task=np.where(task == "t0", *tasks))
    data = embedded(page(model, title="{{data}} Größe"))
    assert data["features"] == names and data["tasks"] == sorted(tasks)


def test_json_has_no_nan():
    text = as_json({"a": [np.float64("nan"), 1.0], "b": np.array([np.inf])})
    assert json.loads(text) == {"a": [None, 1.0], "b": [None]}


def test_several_and_two_classes():
    X, y, task = problem()
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [-1.0, 1.0])]
    labels[task == "t0"] = np.where(labels[task == "t0"] == "mid", "low", labels[task == "t0"])
    model = BiFactorClassifier(2, random_state=0).fit(X, labels, task=task)
    text = page(model, compare(model, X, labels, task, folds=2))
    data = embedded(text)
    assert data["classes"] == ["low", "mid", "top"]
    pairs = (unpacked(data[key], "u4").tolist() for key in ("lineTask", "lineClass"))
    lines = {(data["tasks"][i], data["classes"][j]) for i, j in zip(*pairs, strict=True)}
    assert lines == set(zip(task.tolist(), labels.tolist(), strict=True))
    assert ("t0", "mid") not in lines
    assert data["map"]["lines"] == len(lines) and "Accuracy" in text and "Brier score" in text
    data = embedded(page(BiFactorClassifier(2, random_state=0).fit(X, y > 0, task=task)))
    assert data["classes"] == [] and data["map"]["lines"] == 6


def test_two_dimensional_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = pd.DataFrame(X @ rng.normal(size=(3, 4)), columns=["w", "x", "y", "z"])
    Y.iloc[0, 1] = np.nan
    model = BiFactorRegressor(2).fit(X, Y)
    data = embedded(page(model, compare(model, X, Y, folds=2)))
    assert data["tasks"] == ["w", "x", "y", "z"] and data["scores"]["rows"] == [40, 39, 40, 40]


def test_one_task_one_feature_and_constant_weights():
    X = np.arange(12.0)[:, None]
    model = IndependentRegressor().fit(X, X[:, 0])
    data = embedded(page(model, compare(model, X, X[:, 0])))
    assert data["near"]["count"] == 0 and data["top"]["count"] == 1
    flat = PooledRegressor().fit(X, np.ones(12), task=np.repeat([0, 1], 6))
    data = embedded(page(flat, compare(flat, X, np.ones(12), np.repeat([0, 1], 6))))
    assert data["map"]["most"] == 0.0 and data["tasks"] == ["0", "1"]


def test_tasks_without_held_out_rows_have_no_error(fitted):
    model, found = fitted
    errors = {name: values.copy() for name, values in found.errors.items()}
    gains = {name: values.copy() for name, values in found.loss_reduction.items()}
    for values in (*errors.values(), *gains.values()):
        values[2] = np.nan
    broken = replace(found, errors=errors, loss_reduction=gains, loss_reduction_se=gains)
    data = embedded(page(model, broken))
    assert data["scores"]["errors"]["model"][2] is None
    assert data["scores"]["signs"]["separate"][2] == 0


def test_comparison_of_other_tasks(fitted):
    model, found = fitted
    some = np.array([3, 1])
    fields = ("tasks", "train_rows", "test_rows", "test_weights")
    tables = ("errors", "loss_reduction", "loss_reduction_se")
    fewer = replace(
        found,
        **{name: getattr(found, name)[some] for name in fields},
        **{key: {one: v[some] for one, v in getattr(found, key).items()} for key in tables},
    )
    shown = embedded(page(model, fewer))["scores"]["errors"]["model"]
    assert shown[0] is None and shown[3] == pytest.approx(found.errors["model"][3], rel=1e-6)
    with pytest.raises(ValueError, match="none of the model's tasks"):
        page(model, replace(fewer, tasks=np.array(["p", "q"])))


def test_method_compares_where_it_has_data(tmp_path):
    X, y, task = problem(T=3)
    model = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    path = model.report(tmp_path / "page.html", X, y, task=task, title="Mine")
    text = path.read_text(encoding="utf-8")
    assert "Mine" in text and embedded(text)["scores"]["rows"] == [20.0] * 3
    assert "Not compared yet" in model.report(str(path)).read_text(encoding="utf-8")


def test_errors_name_the_argument(tmp_path, fitted):
    model, _ = fitted
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        write_report(tmp_path, model)
    with pytest.raises(TypeError, match="notes must be a sequence"):
        write_report(tmp_path / "a.html", model, notes="one")
    with pytest.raises(ValueError, match="y is missing"):
        model.report(tmp_path / "a.html", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="without X and y"):
        model.report(tmp_path / "a.html", task=["a"])
    for rows in ((), problem()):
        with pytest.raises(NotFittedError):
            HierarchicalRegressor().report(tmp_path / "a.html", *rows)
    assert not list(tmp_path.iterdir())
