"""What the page says of a comparison."""

import numpy as np

from comtl.evaluation import Comparison
from comtl.report.words import clear_signs, verdict


def comparison(gains, errors, rows=10, overall=None, **changes):
    """Comparison with given gains over separate and pooled models."""
    T = len(gains[0])
    own = overall or {"model": 1.0, "separate": 1.5, "pooled": 2.0, "mean": 3.0}
    told = {
        "tasks": np.array([f"t{i}" for i in range(T)]),
        "train_rows": np.full(T, rows),
        "test_rows": np.full(T, rows),
        "metric": "RMSE",
        "errors": {name: np.full(T, value) for name, value in own.items()},
        "overall": own,
        "accuracy": None,
        "gains": dict(zip(("separate", "pooled"), map(np.asarray, gains), strict=True)),
        "gain_errors": dict(zip(("separate", "pooled"), map(np.asarray, errors), strict=True)),
        "levels": None,
        "covered": None,
    }
    return Comparison(**(told | changes))


def test_verdict_counts_only_clear_differences():
    clear, vague = np.full(4, 0.1), np.full(4, 10.0)
    yes = verdict(comparison(([1.0] * 4, [1.0] * 4), (clear, clear)))
    assert yes.kind == "yes" and any("4 of 4 tasks are clearly better" in s for s in yes.sentences)
    even = verdict(comparison(([1.0] * 4, [1.0] * 4), (clear, vague)))
    assert even.kind == "even" and "level with one model for all tasks" in even.headline
    none = verdict(comparison(([1.0] * 4, [1.0] * 4), (vague, vague)))
    assert none.kind == "even" and "no sure difference" in none.headline
    assert any("for all 4 the rows do not tell" in text for text in none.sentences)
    no = verdict(comparison(([-1.0] * 4, [1.0] * 4), (clear, clear)))
    assert no.kind == "no" and "a model of its own for each task" in no.headline


def test_verdict_names_percentages_and_the_mean():
    found = comparison(([1.0], [1.0]), ([0.1], [0.1]))
    text = " ".join(verdict(found).sentences)
    assert "33.3 % lower than with a model of its own" in text and "67 % below" in text
    overall = {"model": 3.1, "separate": 3.0, "pooled": 0.0, "mean": 3.0}
    text = " ".join(verdict(comparison(([1.0], [1.0]), ([0.1], [0.1]), overall=overall)).sentences)
    assert "no better than the mean" in text and "one model for all tasks (" not in text


def test_a_row_without_standard_error_is_no_proof():
    one = comparison(([5.0], [5.0]), ([np.nan], [np.nan]), rows=1)
    assert verdict(one).kind == "even" and clear_signs(one, "separate").tolist() == [0]
