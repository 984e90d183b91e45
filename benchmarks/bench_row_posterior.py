"""The posterior of all tasks by their Grams and by their rows: where is the break-even?

``python benchmarks/bench_row_posterior.py`` prints CPU times of one EM iteration.
"""

import time

import numpy as np

from comtl.datafits.gram_datafit import GramDatafit
from comtl.hierarchical.covariances import EffectCovariance
from comtl.hierarchical.likelihoods import Bernoulli, Gaussian, Likelihood
from comtl.hierarchical.logistic_bound import ClassRows
from comtl.hierarchical.posterior import Prior
from comtl.hierarchical.task_data import TaskGrams, TaskRows
from comtl.rows.design import Design

TASKS = 12


def seconds(work, *args, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work(*args)
        best = min(best, time.process_time() - start)
    return best


def step(likelihood: Likelihood, prior: Prior) -> None:
    """One step: a posterior, and the noise or the bound that suits it."""
    likelihood.updated(prior, likelihood.infer(prior), 0.0)


def ways(P: int, n: int) -> list[tuple[Likelihood, Likelihood]]:
    """Values and classes of random rows, by Grams and by rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(TASKS * n, P)), rng.normal(size=TASKS * n)
    offsets, weights = n * np.arange(TASKS + 1), np.ones(TASKS * n)
    rows = np.column_stack([X, weights])
    classes = ClassRows(rows, np.sign(y), weights, offsets)
    design = Design(X, np.zeros(P), np.ones(P))
    sums = TaskGrams(GramDatafit.of_rows(design, y, weights, offsets))
    return [
        (Gaussian(False, sums), Gaussian(False, TaskRows.of(rows, y, weights, offsets))),
        (Bernoulli.of(classes.bound_by_grams), Bernoulli.of(classes.bound_by_rows)),
    ]


def main() -> None:
    print("# Posterior by Grams and by rows\n")
    print(f"{TASKS} tasks; milliseconds of CPU for one EM iteration, the best of five.\n")
    print("| features | rows a task | features / rows | values: Grams | rows | ratio ", end="")
    print("| classes: Grams | rows | ratio |")
    print("| --- " * 9 + "|")
    for P in (60, 120, 240, 480):
        prior = Prior(EffectCovariance(0.5 * np.eye(P + 1)), np.ones(TASKS), 1.0, 1.0)
        for share in (0.75, 1.0, 1.5, 2.0, 4.0, 8.0):
            n = max(int(P / share), 2)
            cells = [str(P), str(n), f"{share:g}"]
            for pair in ways(P, n):
                for likelihood in pair:
                    step(likelihood, prior)  # What is made once is not counted.
                one, other = (1e3 * seconds(step, way, prior) for way in pair)
                cells += [f"{one:.1f}", f"{other:.1f}", f"{one / other:.1f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
