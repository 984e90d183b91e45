"""How much ℓ1 on the relations to take where the user says nothing, and what it costs.

Held-out RMSE of BiFactor with sparse relations over the development problems, λ chosen for each
setting on a third of the training rows, beside the plain relation. `make bench` writes the result
beside this file.
"""

import time
import warnings

import numpy as np
from problems import development_problems
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressorCV
from comtl.demo import task_rmse
from comtl.folds import TaskStratifiedKFold

HEADER = """# Sparse relations

Written by `python benchmarks/bench_sparse_relations.py`: held-out RMSE (mean over tasks, then over
two seeds) of `BiFactorRegressorCV(relation_penalty="l1")` for each `alpha_relation`, K=15 (school:
5), λ chosen for each on a third of the training rows. Mean ratio: to the plain relation (first
row), geometric, with its standard error over problems and seeds; then the largest of these ratios,
the shares of zeros in the learned inverses, and the seconds of all searches on one thread of a
machine with other work.
Taken: alpha_relation=0.1, the lowest mean ratio. From 0.03 to 0.3 the differences are within the
errors (seed 0 alone would have taken 0.3, 0.9926 against 0.9939), and the gain over the plain
relation is one and a half of them: take the option for relations to look at, not for predictions.
"""
PROBLEMS = ("syn1", "syn2", "syn3", "syn4", "syn5", "school 20%")
SEEDS = (0, 1)
SPARSITIES = (None, 0.03, 0.1, 0.3, 1.0)
ALPHAS = (0.05, 0.3, 2.0, 12.0)


def zeros(relation):
    n = len(relation.precision)
    return np.sum(relation.precision == 0.0) / (n * n - n)


def one(data, sparsity, rank):
    split = next(iter(TaskStratifiedKFold(3).split(data.X, None, data.task)))
    extra = {} if sparsity is None else {"relation_penalty": "l1", "alpha_relation": sparsity}
    model = BiFactorRegressorCV(
        rank, alphas=ALPHAS, cv=[split], warm_path=False, tol=1e-3, random_state=0, **extra
    )
    guess = model.fit(data.X, data.y, task=data.task).predict(data.X_test, task=data.task_test)
    found = [0.0, 0.0]
    if sparsity is not None:
        found = [zeros(model.feature_relation_), zeros(model.task_relation_)]
    return task_rmse(data.y_test, guess, data.task_test), found


def main():
    problems = [
        {n: d for n, d in development_problems(seed).items() if n in PROBLEMS} for seed in SEEDS
    ]
    names = list(problems[0])
    print(HEADER)
    print("| alpha_relation | mean ratio | largest | Σ⁻¹ | Ω⁻¹ | s | " + " | ".join(names) + " |")
    print("| --- " * (6 + len(names)) + "|")
    plain = None
    for sparsity in SPARSITIES:
        began = time.perf_counter()
        done = [[one(p[n], sparsity, 5 if "school" in n else 15) for n in names] for p in problems]
        seconds = time.perf_counter() - began
        errors = np.array([[rmse for rmse, _ in row] for row in done])
        plain = errors if plain is None else plain
        ratios = np.log(errors / plain)
        spread = ratios.std(ddof=1) / ratios.size**0.5
        share = np.mean([[found for _, found in row] for row in done], axis=(0, 1))
        cells = [f"{np.exp(ratios.mean()):.4f} ({spread:.4f})", f"{np.exp(ratios.max()):.3f}"]
        cells += [f"{share[0]:.2f}", f"{share[1]:.2f}", f"{seconds:.0f}"]
        cells += [f"{rmse:.3f}" for rmse in errors.mean(axis=0)]
        print(f"| {sparsity} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
