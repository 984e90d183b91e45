"""What the page says of a comparison."""

import numpy as np

from comtl.evaluation import Comparison
from comtl.show.page_text import headline, sentences


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
        "loss_reduction": dict(zip(("separate", "pooled"), map(np.asarray, gains), strict=True)),
        "loss_reduction_se": dict(
            zip(("separate", "pooled"), map(np.asarray, errors), strict=True)
        ),
        "nominal": None,
        "coverage": None,
    }
    return Comparison(**(told | changes))


def test_headlines_follow_the_verdict():
    sure, vague = np.full(4, 0.1), np.full(4, 10.0)
    helps = comparison(([1.0] * 4, [1.0] * 4), (sure, sure))
    assert helps.verdict.kind == "helps" and headline(helps).startswith("Yes")
    assert any("4 of 4 tasks are significantly better" in text for text in sentences(helps))
    unclear = comparison(([1.0] * 4, [1.0] * 4), (sure, vague))
    assert "no significant difference from one model for all tasks" in headline(unclear)
    assert any("0 of 4 tasks are significantly better" in text for text in sentences(unclear))
    harms = comparison(([-1.0] * 4, [1.0] * 4), (sure, sure))
    assert headline(harms).startswith("No: a separate model for each task predicts")


def test_sentences_name_percentages_and_the_mean():
    found = comparison(([1.0], [1.0]), ([0.1], [0.1]))
    text = " ".join(sentences(found))
    assert "33.3 % lower than with a separate model" in text and "67 % below" in text
    overall = {"model": 3.1, "separate": 3.0, "pooled": 0.0, "mean": 3.0}
    text = " ".join(sentences(comparison(([1.0], [1.0]), ([0.1], [0.1]), overall=overall)))
    assert "no better than the mean" in text and "one model for all tasks (" not in text
