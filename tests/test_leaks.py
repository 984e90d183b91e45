"""Columns that tell the target by themselves are named."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comtl.tables import Encoder, fit_table
from comtl.tables.leaks import notes_on_leaks
from comtl.tables.values import as_table


def draw(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = x + rng.normal(size=rows)
    return pd.DataFrame({"shop": rng.choice(list("abcd"), rows), "x": x, "y": y})


def leaks(frame, target):
    model = fit_table(frame, task="shop", target=target, model="pooled", score=False)
    return [note for note in model.notes if "alone tells" in note]


def test_values_and_classes():
    frame = draw()
    assert leaks(frame, "y") == []
    (note,) = leaks(frame.assign(**{"y in cents": 100.0 * frame.y + 1.0}), "y")
    assert "'y in cents' alone tells 'y' (rank correlation 1.000)" in note
    assert note.endswith("--drop 'y in cents'.")
    classes = frame.assign(y=np.where(frame.y > 0.5, "yes", "no"))
    assert leaks(classes, "y") == []
    number = classes.assign(number=np.argsort(np.argsort(classes.y == "no", kind="stable")))
    (note,) = leaks(number, "y")
    assert "'number' alone tells 'y' (area under the ROC curve 1.000)" in note
    (note,) = leaks(classes.assign(state=classes.y.map({"yes": "closed", "no": "open"})), "y")
    assert "'state'" in note


def test_few_rows_and_rare_classes_tell_nothing():
    assert leaks(draw(20).assign(z=lambda frame: frame.y), "y") == []
    frame = draw().assign(
        y=lambda frame: np.where(frame.x > np.sort(frame.x)[-5], "rare", "common")
    )
    assert leaks(frame, "y") == []


@pytest.mark.parametrize("packed", [True, False])
def test_sparse_features_are_read_too(packed):
    frame = draw().assign(z=lambda frame: np.round(frame.y, 1))
    encoder, _ = Encoder.of(as_table(frame[["x", "z"]]))
    X = encoder.encode(as_table(frame)).X.to_numpy()
    notes = notes_on_leaks(encoder, sparse.csr_array(X) if packed else X, frame.y.to_numpy(), "y")
    assert len(notes) == 1 and "'z'" in notes[0]
