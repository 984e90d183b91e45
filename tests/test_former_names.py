"""Public names of before: they serve for a release, with a FutureWarning."""

import numpy as np
import pandas as pd
import pytest

import comtl
from command_line import run
from comtl import evaluation
from comtl.saving.codec import Packer, Unpacker
from comtl.tables import fit_table

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


def test_evidence():
    with pytest.warns(FutureWarning, match="nonlinearity_evidence"):
        assert evaluation.evidence_for_bends is evaluation.nonlinearity_evidence


def test_models():
    frame = pd.DataFrame(X, columns=["x", "z"]).assign(task=TASK, y=Y)
    with pytest.warns(FutureWarning, match="hinges"):
        model = fit_table(frame, task="task", target="y", model="bends", score=False)
    assert model.model == "hinges"


def test_models_of_the_command(tmp_path):
    frame = pd.DataFrame(X, columns=["x", "z"]).assign(task=TASK, y=Y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", "rows.csv", "--task", "task", "--target", "y", "--no-score", "--model")
    assert "--model bends is hinges now" in run(tmp_path, *fit, "bends").stderr
    assert "old name" not in run(tmp_path, *fit, "hinges").stderr


@pytest.mark.parametrize("name", ["load_school", "load_sentiment", "load_newsgroups"])
def test_loaders_of_real_data(name):
    with pytest.raises(AttributeError, match=f"{name}.*; it is in comtl_reproduction.loaders now"):
        getattr(comtl.datasets, name)
