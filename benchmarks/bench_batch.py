"""The paper's grid in batches against the grid fitted one by one, on the synthetic sets.

`make bench` writes the result beside this file. `python benchmarks/bench_batch.py --library torch
--device cuda` runs the batch on a GPU; `--sets syn1` picks sets.
"""

import argparse
import time
import warnings
from unittest import mock

import numpy as np

from comtl import TriFactorRegressor, TriFactorRegressorCV
from comtl.batches.batch_run import HeldOutGrams, batched_losses
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datasets import SYNTHETIC, make_syn1
from comtl.models import grid
from comtl.rows.fit_input import FitInput

RANKS = [2, 3, 5, 7, 9, 10, 15]
ALPHAS = [10.0**power for power in range(-3, 4)]
SETTINGS = [(alpha, K1, K2) for K1 in RANKS for K2 in RANKS for alpha in ALPHAS]


def library(name, device):
    """What makes an array of the library on the device, and what waits until all work is done."""
    if name == "numpy":
        return None, lambda: None
    if name == "cupy":
        import cupy

        return cupy.asarray, cupy.cuda.Device().synchronize
    import torch

    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    return lambda values: torch.asarray(values, device=device), wait


def held_out_folds(data, models):
    """Folds of a set as the search makes them, on the CPU."""
    found = []
    schema = TriFactorRegressor()
    rows = FitInput(data.X, data.y, data.task, None)
    for split in rows.splits(schema, 3):
        train, test = (rows.take(part).read(models[0], partial=True) for part in split)
        found.append(grid.Fold.of(models, train, test, 1.0).held_out)
    return found


def moved(fold, asarray):
    """Fold with its Grams in another library."""

    def grams(fit):
        return GramDatafit(asarray(fit.gram), asarray(fit.moment), asarray(fit.energy))

    return HeldOutGrams(grams(fold.train), grams(fold.test), fold.codes, fold.scale)


def batch(folds, models, asarray, wait):
    """Winner of all settings in batches: Grams to the device, fits, held-out losses back."""
    together = asarray is not None
    first = grid.unique_recipes(models, (20, 30))
    places = sorted(set(first))
    chosen = [models[place] for place in places]
    if together:
        folds = [moved(fold, asarray) for fold in folds]
    recipes = [[model._algorithm.recipe(20, 30) for model in chosen] for _ in folds]
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    schedule = chosen[0]._algorithm.schedule()
    found = batched_losses(folds, recipes, schedule, together=together, seed=seed)
    wait()
    losses = np.full((len(folds), len(models)), np.inf)
    losses[:, places] = found
    weights = [fold.test.n_weighted for fold in folds]
    mean = np.average(losses[:, first], axis=0, weights=weights)
    return SETTINGS[int(mean.argmin())], float(mean.min())


def seconds(work, clock=time.perf_counter):
    begun = clock()
    result = work()
    return clock() - begun, result


def search(data, *, limit, warm):
    with mock.patch.object(grid, "BATCHED", limit):
        model = TriFactorRegressorCV(
            RANKS, RANKS, alphas=ALPHAS, cv=3, warm_path=warm, random_state=0
        )
        model.fit(data.X, data.y, task=data.task)
    names = "alpha_task", "n_feature_clusters", "n_task_clusters"
    return tuple(model.best_params_[name] for name in names), -model.best_score_


def shown(found):
    setting, loss = found
    return ", ".join(f"{value:g}" for value in setting) + f" | {loss:.8f}"


def on_device(names, name, device, repeats):
    """Seconds of the batch on a device, and whether its winner is that of the CPU."""
    asarray, wait = library(name, device)
    print(f"# The paper's grid in one batch: {name} on {device}\n")
    print("| set | seconds | λ2, K1, K2 | loss | CPU search, screened | loss |")
    print("| --- | --- | --- | --- | --- | --- |")
    models = [TriFactorRegressor(K1, K2, alpha_task=a, random_state=0) for a, K1, K2 in SETTINGS]
    for place, which in enumerate(names):
        data = SYNTHETIC[which](random_state=0)
        folds = held_out_folds(data, models)
        if not place:
            batch(folds, models, asarray, wait)  # warm-up
        runs = [seconds(lambda f=folds: batch(f, models, asarray, wait)) for _ in range(repeats)]
        spent, found = min(runs)
        cpu = search(data, limit=0, warm=True)
        print(f"| {which} | {spent:.2f} | {shown(found)} | {shown(cpu)} |", flush=True)


def on_cpu(names):
    """CPU seconds of whole searches, in one process."""
    print(
        "# Grid search in batches\n\nWritten by `python benchmarks/bench_batch.py`: λ2 × K1 × K2 ="
    )
    print("343 settings, 3 folds, one process and thread, CPU seconds; refit included. Ratios are")
    print("within one run.\n")
    print("| set | search | CPU s | ratio | λ2, K1, K2 | held-out loss |")
    print("| --- | --- | --- | --- | --- | --- |")
    ways = {
        "batches": {"limit": 10**12, "warm": True},
        "screened": {"limit": 0, "warm": True},
        "separate fits": {"limit": 0, "warm": False},
    }
    for which in names:
        data = SYNTHETIC[which](random_state=0)
        found = {
            label: seconds(lambda d=data, w=way: search(d, **w), time.process_time)
            for label, way in ways.items()
        }
        slowest = max(spent for spent, _ in found.values())
        for label, (spent, best) in found.items():
            ratio = slowest / spent
            print(f"| {which} | {label} | {spent:.1f} | {ratio:.1f} | {shown(best)} |", flush=True)


def sizes():
    """How large the Grams of a fold may be for batches to pay on a CPU."""
    print("\n## Sizes\n\nThe same on normal rows of rank six, K ∈ {2, 5, 10, 15}.\n")
    print("| features | tasks | numbers in Grams | batches, CPU s | screened, CPU s | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for P, T, n in ((8, 10, 20), (20, 30, 25), (30, 30, 40), (20, 80, 25), (27, 139, 60)):
        rng = np.random.default_rng(0)
        task = np.repeat(np.arange(T), n)
        coef = rng.normal(size=(T, 6)) @ rng.normal(size=(6, P)) / 3.0
        X = rng.normal(size=(T * n, P))
        y = (X * coef[task]).sum(axis=1) + 3.0 * rng.normal(size=T * n)
        spent = []
        for limit in (10**12, 0):
            ranks = [2, 5, 10, 15]
            model = TriFactorRegressorCV(ranks, ranks, alphas=ALPHAS, cv=3, random_state=0)
            with mock.patch.object(grid, "BATCHED", limit):
                fit = seconds(lambda m=model, a=(X, y, task): m.fit(*a), time.process_time)
            spent.append(fit[0])
        one, other = spent
        numbers = T * (P + 1) ** 2
        print(
            f"| {P} | {T} | {numbers} | {one:.1f} | {other:.1f} | {other / one:.1f} |", flush=True
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=("numpy", "torch", "cupy"), default="numpy")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sets", nargs="+", default=[f"syn{number}" for number in range(1, 6)])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    small = make_syn1(n_tasks=4, random_state=1)
    TriFactorRegressorCV(2, 2, cv=2).fit(small.X, small.y, task=small.task)
    if options.library == "numpy":
        on_cpu(options.sets)
        sizes()
    else:
        on_device(options.sets, options.library, options.device, options.repeats)
