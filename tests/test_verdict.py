"""The verdict on a model: one rule, whoever reads it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from comtl.cli.output import facts, verdict
from comtl.evaluation import Verdict
from comtl.show.page_sections import summary
from comtl.show.page_text import headline, lower, relative, sentences
from comtl.tables import fit_table
from pages import comparison_of

REFERENCES = ("pooled", "separate", "mean")


def drawn(rng, gain=0.0, T=8, n=12, spread=0.3, noise=1.0):
    """Comparison of losses drawn at random; tasks gain ``gain`` in the mean over each reference."""
    losses = {"model": 3.0 + np.zeros((T, n))}
    for name, extra in zip(REFERENCES, (0.0, 0.0, 2.0), strict=True):
        own = gain + extra + spread * rng.normal(size=(T, 1))
        losses[name] = 3.0 + own + noise * rng.normal(size=(T, n))
    gaps = {name: losses[name] - losses["model"] for name in REFERENCES}
    return comparison_of(
        {name: np.sqrt(loss.mean(axis=1)) for name, loss in losses.items()},
        {name: gap.mean(axis=1) for name, gap in gaps.items()},
        {name: gap.std(axis=1, ddof=1) / np.sqrt(n) for name, gap in gaps.items()},
        rows=n,
        overall={name: float(np.sqrt(loss.mean())) for name, loss in losses.items()},
    )


def test_terminal_json_and_page_agree():
    frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    rng, kinds = np.random.default_rng(0), set()
    for _ in range(60):
        found = drawn(rng, rng.choice([-1.0, 0.0, 0.4, 1.0]), T=int(rng.integers(1, 14)))
        whole = replace(model, comparison=found, model="auto")
        data, text, kind = facts(whole), verdict(found), summary(found)["verdict"]
        assert data["verdict"] == text
        assert data["verdict_kind"] == kind == found.verdict.kind
        assert data["verdict_reference"] == found.verdict.reference
        said = {"helps": "helps here", "unclear": "no clear difference", "harms": "does harm"}
        assert [one for one in said if said[one] in text] == [kind]
        starts = {"helps": "Yes", "unclear": "Not clearly", "harms": "No:"}
        assert headline(found).startswith(starts[kind])
        kinds.add(kind)
    assert kinds == {"helps", "unclear", "harms"}


@pytest.mark.parametrize(("T", "n", "spread"), [(3, 60, 0.0), (40, 6, 0.0), (20, 40, 0.5)])
def test_error_rates(T, n, spread):
    """A gain that is none in the mean over tasks and rows is seldom significant."""
    rng = np.random.default_rng(1)
    none = [drawn(rng, 0.0, T, n, spread).verdict.kind for _ in range(400)]
    assert none.count("helps") <= 0.04 * 400  # Both references must be beaten by chance.
    assert none.count("harms") <= 0.06 * 400


def test_a_real_gain_is_found():
    rng = np.random.default_rng(2)
    for gain, kind in ((0.5, "helps"), (-0.6, "harms")):
        found = [drawn(rng, gain, 20, 20).verdict.kind for _ in range(100)]
        assert found.count(kind) >= 90


def test_reference_concerned():
    rng = np.random.default_rng(0)
    found = drawn(rng, 1.0, 20, 20)
    best = min(("pooled", "separate"), key=lambda name: found.overall[name])
    assert found.verdict == Verdict("helps", best)
    gains = found.loss_reduction
    worse = gains | {"pooled": gains["pooled"] - 5.0, "mean": gains["mean"] - 9.0}
    overall = found.overall | {"pooled": 0.5, "mean": 0.7}
    lost = replace(found, loss_reduction=worse, overall=overall)
    assert lost.verdict == Verdict("harms", "pooled")
    level = replace(found, loss_reduction=gains | {"mean": 0.0 * gains["mean"]})
    assert level.verdict == Verdict("unclear", "mean")


def test_the_larger_standard_error_counts():
    rng = np.random.default_rng(0)
    found = drawn(rng, 1.0, 2, 400, spread=0.0)
    steady, noisy = (dict.fromkeys(REFERENCES, np.full(2, size)) for size in (1.0, 2.0))
    assert replace(found, loss_reduction=steady).verdict.kind == "helps"
    assert replace(found, loss_reduction=steady, loss_reduction_se=noisy).verdict.kind == "unclear"
    apart = dict.fromkeys(REFERENCES, np.array([3.0, -1.0]))
    assert replace(found, loss_reduction=apart).verdict.kind == "unclear"
    heavy = np.array([1.0, 0.0])  # A task of no weight has no say.
    assert replace(found, loss_reduction=apart, test_weights=heavy).verdict.kind == "helps"


def test_a_row_without_standard_error_is_no_proof():
    one = drawn(np.random.default_rng(0), 5.0, 1, 2)
    unknown = dict.fromkeys(REFERENCES, np.array([np.nan]))
    one = replace(one, test_rows=np.array([1]), loss_reduction_se=unknown)
    assert one.verdict.kind == "unclear" and one.task_signs("separate").tolist() == [0]
    assert replace(one, loss_reduction=unknown).verdict.kind == "unclear"


def test_comparisons_without_the_mean_are_judged():
    """Files of earlier versions hold gains over two reference models."""
    found = drawn(np.random.default_rng(0), 1.0, 20, 20)
    gains = {name: found.loss_reduction[name] for name in REFERENCES[:2]}
    assert replace(found, loss_reduction=gains).verdict == found.verdict


def test_signs_of_tasks_are_paired_t_tests():
    rng = np.random.default_rng(3)
    gaps = rng.normal(size=(300, 4)) + np.repeat([0.0, 2.0, -2.0], 100)[:, None]
    gains = {"pooled": gaps.mean(axis=1)}
    found = comparison_of(
        {"model": np.ones(300)}, gains, {"pooled": gaps.std(axis=1, ddof=1) / 2.0}, rows=4
    )
    test = ttest_1samp(gaps, 0.0, axis=1)
    expected = np.where(test.pvalue < 0.05, np.sign(test.statistic), 0)
    assert found.task_signs("pooled").tolist() == expected.tolist()
    assert set(expected) == {-1, 0, 1}


def flat(gains, errors, overall=(1.0, 1.5, 2.0, 3.0)):
    """Comparison of tasks alike, with given gains over separate and pooled models."""
    T, names = len(gains[0]), ("model", "separate", "pooled", "mean")
    known = {name: np.full(T, value) for name, value in zip(names, overall, strict=True)}
    pairs = (dict(zip(names[1:3], map(np.asarray, one), strict=True)) for one in (gains, errors))
    return comparison_of(known, *pairs)


@pytest.mark.parametrize(
    ("separate", "vague", "start", "better"),
    [
        (1.0, 0.1, "Yes", 4),
        (1.0, 10.0, "Not clearly: no significant difference from one model for all tasks", 0),
        (-1.0, 0.1, "No: a separate model for each task predicts", 4),
    ],
)
def test_the_page_follows_the_verdict(separate, vague, start, better):
    found = flat(([separate] * 4, [1.0] * 4), ([0.1] * 4, [vague] * 4))
    assert headline(found).startswith(start)
    pooled = next(text for text in sentences(found) if text.startswith("Against one model"))
    assert f"{better} of 4 tasks are significantly better" in pooled


def test_the_page_names_percentages_and_the_mean():
    text = " ".join(sentences(flat(([1.0], [1.0]), ([0.1], [0.1]))))
    assert "33.3 % lower than with a separate model" in text and "67 % below" in text
    text = " ".join(sentences(flat(([1.0], [1.0]), ([0.1], [0.1]), (3.1, 3.0, 0.0, 3.0))))
    assert "no better than the mean" in text and "one model for all tasks (" not in text


def test_shares_of_errors_are_bounded_and_left_out_of_next_to_nothing():
    each = {"model": 1.0, "separate": 0.01, "pooled": 1e-9, "mean": 2.0}
    gains = {name: np.zeros(4) for name in ("separate", "pooled")}
    errors = {name: np.full(4, value) for name, value in each.items()}
    found = comparison_of(errors, gains, {name: np.ones(4) for name in gains})
    assert relative(found, "pooled") is None
    assert lower(relative(found, "separate")) == "more than 900 % higher"
    assert lower(relative(found, "mean")) == "50.0 % lower"
