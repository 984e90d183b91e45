"""How rough fits may be: inner solves of GO-MTL, and fits that are only compared.

``python benchmarks/bench_roughness.py`` prints ratios of CPU time within one run, and what the
rougher choice costs.
"""

import time
import warnings
from functools import partial
from unittest import mock

from comtl.baselines import ClusteredRegressor, GroupOverlapRegressor, factored, pools
from comtl.datasets import SYNTHETIC
from comtl.engine.recipe import InnerTolerance
from comtl.rows.fit_input import FitInput
from comtl_reproduction import tuning
from comtl_reproduction.methods import METHODS
from comtl_reproduction.metrics import rmse


def timed(work, *args, **settings):
    start = time.process_time()
    found = work(*args, **settings)
    return found, time.process_time() - start


def test_error(model, data):
    return rmse(data.y_test, model.predict(data.X_test, task=data.task_test), data.task_test)[
        "rmse"
    ]


def inner(factor, tol):
    return InnerTolerance(min(factor * tol, 0.1), 500)


def inner_solves() -> None:
    print("## Inner solves of GO-MTL and CMTL\n")
    print("Tolerance of the solves within a sweep over `tol` of the fit; now 100.\n")
    print("| set | model | tolerance | CPU s | sweeps | objective over the closest |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in ("syn2", "syn5"):
        data = SYNTHETIC[name](random_state=0)
        for kind, home in ((GroupOverlapRegressor, factored), (ClusteredRegressor, pools)):
            reference = None
            for factor in (1.0, 10.0, 100.0, 1000.0):
                with mock.patch.object(home, "close", partial(inner, factor)):
                    fit = kind(5, random_state=0).fit
                    model, seconds = timed(fit, data.X, data.y, task=data.task)
                objective = model.objective_history_[-1]
                reference = reference or objective
                print(
                    f"| {name} | {kind.__name__} | {factor:g} | {seconds:.1f} | {model.n_iter_} "
                    f"| {objective / reference:.6f} |"
                )


def compared_fits() -> None:
    print("\n## Fits that are only compared\n")
    print("Tolerance of the fits in a search (`SEARCH_TOL`, now 1e-4); the winner is fitted to the")
    print("model's own.\n")
    print("| set | method | tolerance | CPU s | setting | test RMSE |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in ("syn2", "syn5"):
        data = SYNTHETIC[name](random_state=0)
        rows = FitInput(data.X, data.y, data.task)
        for method in ("MTFL", "FMTL", "GO-MTL"):
            for tol in (1e-6, 1e-4, 1e-3):
                with mock.patch.object(tuning, "SEARCH_TOL", tol):
                    found, seconds = timed(tuning.tune, METHODS[method], rows)
                text, error = tuning.setting_text(found.setting), test_error(found.model, data)
                print(f"| {name} | {method} | {tol:g} | {seconds:.1f} | {text} | {error:.4f} |")


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Tolerances of inner and intermediate fits\n")
    inner_solves()
    compared_fits()


if __name__ == "__main__":
    main()
