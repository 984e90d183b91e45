"""Hinges of the columns of a table: the command, the model it makes, what it shows of it."""

import json

import numpy as np
import pandas as pd
import pytest

from command_line import run
from comtl.tables import TableError, fit_table, load_model
from comtl.tables.fitting import MODELS, choose_model, compare_table

NAMED = {"task": "school", "target": "score"}


def frame(linear=False):
    """Scores that fall up to an age of 40 and rise beyond, unless they are linear."""
    rng = np.random.default_rng(0)
    school, age = np.repeat(["Ash", "Elm", "Fir"], 50), rng.uniform(20, 60, 150).round(1)
    made = pd.DataFrame({"school": school, "age": age, "sex": rng.choice(["f", "m"], 150)})
    effect = age - 40 if linear else np.abs(age - 40)
    return made.assign(score=effect + 2 * rng.normal(size=150) + 3 * (school == "Elm"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hinges")
    frame().to_csv(path / "train.csv", index=False)
    shown = run(
        *(path, "fit", "train.csv", "--task", "school", "--target", "score"),
        *("--form", "hinges", "--report", "page.html"),
    )
    (path / "shown.txt").write_text(shown.stdout)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return load_model(folder / "model.comtl")


def test_fit_tells_of_hinges_and_compares_with_models_that_have_them(folder, model):
    shown = " ".join((folder / "shown.txt").read_text().split())
    assert "3 features and 4 hinges of them. It kept hinges: lines whose slope" in shown
    assert model.estimator.form_ == "hinges" and model.model == "auto"
    scores = model.comparison.overall
    assert scores["model"] < 3.0 and scores["separate"] < 3.0 < 5.0 < scores["mean"]
    assert "age above" in (folder / "page.html").read_text()


def test_inspect_names_the_hinges(folder, model):
    names = [f"age above {knot:.4g}" for knot in model.estimator._hinges.knots]
    assert model.features == ("age", "sex=f", "sex=m", *names)
    assert "age above" in run(folder, "inspect", "model.comtl").stdout
    found = json.loads(run(folder, "inspect", "model.comtl", "--json").stdout)
    assert found["hinges"] == names and found["features"] == 3 and found["form"] == "hinges"
    effects = {one["feature"]: one["mean_effect"] for one in found["strongest"]}
    assert effects["age"] < 0.0 < max(effects[name] for name in names)
    one = json.loads(run(folder, "inspect", "model.comtl", "--task", "Elm", "--json").stdout)
    assert {effect["feature"] for effect in one["effects"]} == set(model.features)
    # For one standard deviation of the hinge among the rows.
    beyond = np.maximum(frame().age.to_numpy()[:, None] - model.estimator._hinges.knots, 0.0)
    np.testing.assert_allclose(model.spreads[3:], beyond.std(axis=0), rtol=1e-6)


def test_predictions_are_not_linear(model):
    ages = pd.DataFrame({"school": "Ash", "age": [22.0, 40.0, 58.0], "sex": "f"})
    young, middle, old = model.predict(ages)
    assert min(young, old) > middle + 8.0
    low, high = model.predict_interval(ages)
    assert np.all(low < high)
    assert compare_table(model, frame()).overall["model"] < 3.0
    new = frame().assign(school="New")
    assert "New" in model.adapt(new).estimator.tasks_


def test_where_all_is_linear_a_note_says_so():
    for form in ("hinges", "trees"):
        model = fit_table(frame(linear=True), **NAMED, form=form, score=False)
        assert model.estimator.form_ == "linear"
        assert any(note.startswith(f"No {form} were kept") for note in model.notes)
        assert model.features == model.encoder.names
    few = frame().assign(age=lambda made: made.age // 10)
    assert fit_table(few, **NAMED, form="hinges", score=False).estimator.form_ == "linear"


def test_a_fit_tries_forms_by_itself_and_says_what_it_kept(tmp_path):
    made = frame()
    made["score"] += 20 * np.sign(made.age - 40) * (made.sex == "f")
    made.to_csv(tmp_path / "train.csv", index=False)
    options = ("--task", "school", "--target", "score", "--no-score", "--force")
    for form, words in (("auto", "It kept "), ("linear", "Its members are linear"), ("trees", "t")):
        shown = run(tmp_path, "fit", "train.csv", *options, "--form", form).stdout
        assert words in shown
        estimator = load_model(tmp_path / "model.comtl").estimator
        assert estimator.form == form and (estimator.form_ == "linear") == (form == "linear")
        found = run(tmp_path, "inspect", "model.comtl")
        assert words in found.stdout
        assert ("linear part of the prediction" in found.stdout) == ("trees" in estimator.form_)
        found = json.loads(run(tmp_path, "inspect", "model.comtl", "--json").stdout)
        assert found["form"] == estimator.form_
    wrong = (*options, "--model", "pooled", "--form", "trees")
    said = run(tmp_path, "fit", "train.csv", *wrong, code=1).stderr
    assert "--form trees is for --model auto" in said


def test_names_of_models_and_of_forms():
    assert "hinges" not in MODELS
    for kind in ("regression", "classification"):
        assert choose_model("auto", kind, None, form="hinges").get_params()["form"] == "hinges"
        assert choose_model("auto", kind, None, jobs=2).get_params()["form"] == "auto"
    with pytest.raises(ValueError, match="'auto', 'hierarchical', 'bifactor'"):
        fit_table(frame(), **NAMED, model="splines")
    with pytest.raises(ValueError, match="form must be one of 'auto', 'linear', 'hinges'"):
        fit_table(frame(), **NAMED, form="splines")
    with pytest.raises(TableError, match="model is one of auto, hierarchical, "):
        choose_model("splines", "regression", None)
