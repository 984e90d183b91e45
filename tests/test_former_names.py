"""Public names of before: they serve for a release, with a FutureWarning."""

import numpy as np
import pandas as pd
import pytest

import comtl
from command_line import run
from comtl import evaluation
from comtl.saving.codec import Packer, Unpacker
from comtl.tables import fit_table, load_model

rng = np.random.default_rng(0)
TASK = np.repeat(["a", "b", "c"], 20)
X = rng.normal(size=(60, 2))
Y = X[:, 0] + 0.3 * rng.normal(size=60)


@pytest.fixture(scope="module")
def found():
    return evaluation.compare(comtl.HierarchicalRegressor(), X, Y, TASK, folds=2)


@pytest.mark.parametrize(
    "old, new",
    [
        ("gains", "loss_reduction"),
        ("gain_errors", "loss_reduction_se"),
        ("levels", "nominal"),
        ("covered", "coverage"),
    ],
)
def test_comparisons(found, old, new):
    with pytest.warns(FutureWarning, match=f"{old} is called {new} now"):
        assert getattr(found, old) is getattr(found, new)


def reread(model, **former):
    """What is read from a file of before, with these names for fields of today."""
    packer = Packer()
    tree = packer.pack(model)
    for old, new in former.items():
        tree["value"][old] = tree["value"].pop(new)
    return Unpacker(packer.arrays).unpack(tree)


def test_fields_of_files_before(found):
    back = reread(found, gains="loss_reduction", covered="coverage")
    np.testing.assert_array_equal(back.coverage, found.coverage)


def test_thresholds_of_files_before():
    model = comtl.MultitaskClassifier(cv=2, threshold="accuracy").fit(X, Y > 0.2, task=TASK)
    back = reread(model, cuts_="thresholds_")
    with pytest.warns(FutureWarning, match="thresholds_"):
        np.testing.assert_array_equal(back.cuts_, model.thresholds_)


def test_forms_that_were_a_basis():
    kinds = comtl.MultitaskRegressor, comtl.MultitaskClassifier
    for kind in kinds:
        for value, form in ((None, "linear"), ("hinges", "hinges")):
            with pytest.warns(FutureWarning, match=f"basis={value!r} is form={form!r} now"):
                model = kind(basis=value)
            assert model.get_params() == kind(form=form).get_params()
            with pytest.warns(FutureWarning, match="basis"):
                assert kind().set_params(basis=value).form == form
        with pytest.raises(TypeError, match="nothing"):
            kind(nothing=1)
    model = comtl.MultitaskRegressor(form="linear", cv=2).fit(X, Y, task=TASK)
    with pytest.warns(FutureWarning, match="form_"):
        assert model.basis_ == model.form_ == "linear"
    back = reread(model, basis="form", basis_="form_")
    assert back.get_params() == model.get_params() and back.form_ == "linear"
    back = reread(clone_with(model, form=None), basis="form", basis_="form_")
    assert back.form == "linear"


def clone_with(model, **params):
    """A fitted model with other parameters."""
    other = object.__new__(type(model))
    vars(other).update(vars(model), **params)
    return other


@pytest.mark.parametrize("name", ["bends", "hinges"])
def test_models(name):
    frame = pd.DataFrame(X, columns=["x", "z"]).assign(task=TASK, y=Y)
    with pytest.warns(FutureWarning, match=f"model='{name}' is form='hinges' now"):
        model = fit_table(frame, task="task", target="y", model=name, score=False)
    assert model.model == "auto" and model.estimator.form == "hinges"


def test_models_of_the_command(tmp_path):
    frame = pd.DataFrame(X, columns=["x", "z"]).assign(task=TASK, y=Y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", "rows.csv", "--task", "task", "--target", "y", "--no-score", "--model")
    for name in ("bends", "hinges"):
        assert f"--model {name} is --form hinges now" in run(tmp_path, *fit, name).stderr
        assert load_model(tmp_path / "model.comtl").estimator.form == "hinges"
    assert "old name" not in run(tmp_path, *fit, "auto", "--form", "hinges").stderr


@pytest.mark.parametrize("name", ["load_school", "load_sentiment", "load_newsgroups"])
def test_loaders_of_real_data(name):
    with pytest.raises(AttributeError, match=f"{name}.*; it is in comtl_reproduction.loaders now"):
        getattr(comtl.datasets, name)
