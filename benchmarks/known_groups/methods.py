"""Methods of the benchmark: each is fitted to training rows and guesses test rows.

A method gets the training and the test rows and whether the targets are classes; it returns values,
or probabilities of the second class. It chooses everything on the training rows, uses one thread
and fixed seeds. Its package is imported before its time is taken.
"""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import qr
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from tables import Rows

from comtl import TaskStratifiedKFold
from comtl_reproduction.loaders.splits import share_of_each

HELD_OUT, PATIENCE, ROUNDS = 0.2, 50, 1000
"""Share of the training rows on which boosting stops, after so many rounds without gain; most
rounds. It is then fitted to all training rows with the number of rounds found."""
CPU_LIMIT = 300
"""Most CPU seconds of a fit."""


def comtl(train: Rows, test: Rows, classes: bool, **parameters: Any) -> np.ndarray:
    """The default, without any parameter."""
    from comtl import MultitaskClassifier, MultitaskRegressor

    model = (MultitaskClassifier if classes else MultitaskRegressor)(**parameters)
    return _fitted(model, train, test, classes)


def comtl_linear(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """The default held to models that are linear in the columns."""
    from comtl import MultitaskRegressor

    has_form = "form" in inspect.signature(MultitaskRegressor).parameters
    return comtl(train, test, classes, **({"form": "linear"} if has_form else {}))


def comtl_before(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """The default of commit eed5a69, before there was this benchmark."""
    return comtl(train, test, classes)


def hierarchical(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """A mixed model with random slopes."""
    from comtl import HierarchicalClassifier, HierarchicalRegressor

    model = HierarchicalClassifier() if classes else HierarchicalRegressor()
    return _fitted(model, train, test, classes)


def lightgbm(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """Gradient boosting with the group as a category; of two sizes of trees the better one."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    def model(leaves: int, rounds: int) -> Any:
        # By default a category needs a hundred rows, more than any group has here.
        return (LGBMClassifier if classes else LGBMRegressor)(
            **{"num_leaves": leaves, "n_estimators": rounds, "learning_rate": 0.05},
            **{"min_child_samples": 10, "min_data_per_group": 5},
            **{"n_jobs": 1, "random_state": 0, "verbose": -1},
        )

    fit, held = _held_out(train, classes)
    tries = []
    for leaves in (7, 31):
        stop = early_stopping(PATIENCE, verbose=False)
        one = model(leaves, ROUNDS).fit(
            fit.frame, fit.y, eval_set=[(held.frame, held.y)], callbacks=[stop]
        )
        tries.append((next(iter(one.best_score_["valid_0"].values())), leaves, one.best_iteration_))
    _, leaves, rounds = min(tries)
    return _guess(model(leaves, max(rounds, 1)).fit(train.frame, train.y), test.frame, classes)


def catboost(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """Gradient boosting with the group as a category, CatBoost's defaults."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    texts = list(train.frame.select_dtypes("category"))

    def model(**settings: Any) -> Any:
        return (CatBoostClassifier if classes else CatBoostRegressor)(
            **{"cat_features": texts, "thread_count": 1, "random_seed": 0},
            **{"verbose": False, "allow_writing_files": False, **settings},
        )

    fit, held = _held_out(train, classes)
    first = model(iterations=ROUNDS, early_stopping_rounds=PATIENCE)
    first.fit(fit.frame, fit.y, eval_set=(held.frame, held.y))
    rounds, rate = first.get_best_iteration() + 1, first.learning_rate_
    again = model(iterations=rounds, learning_rate=rate).fit(train.frame, train.y)
    return _guess(again, test.frame, classes)


def gpboost(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """Trees and a random intercept of each group; sizes, rates and rounds by three folds."""
    import gpboost as gpb

    middle, unit = (0.0, 1.0) if classes else (train.y.mean(), train.y.std())
    y = (train.y > 0).astype(float) if classes else (train.y - middle) / unit
    folds = list(TaskStratifiedKFold(3).split(train.X, groups=train.task))

    def run(fit: Callable[..., Any], leaves: int, rate: float, **options: Any) -> Any:
        size = {"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": 10}
        kind = "bernoulli_logit" if classes else "gaussian"
        return fit(
            params={**size, "num_threads": 1, "verbose": -1, "seed": 0},
            train_set=gpb.Dataset(train.X, y),
            gp_model=gpb.GPModel(group_data=train.task, likelihood=kind, num_parallel_threads=1),
            **options,
        )

    metric = "test_neg_log_likelihood" if classes else "mse"
    search = {"num_boost_round": ROUNDS // 2, "early_stopping_rounds": PATIENCE, "metric": metric}
    tries = []
    # Rates of values are in units of the noise, so that the best ones lie far apart.
    for leaves, rate in product((4, 16), (0.05, 0.5) if classes else (0.05, 0.5, 5.0)):
        losses = next(iter(run(gpb.cv, leaves, rate, folds=folds, **search).values()))
        tries.append((float(np.min(losses)), leaves, rate, len(losses)))
    _, leaves, rate, rounds = min(tries)
    model = run(gpb.train, leaves, rate, num_boost_round=rounds)
    found = model.predict(test.X, group_data_pred=test.task, pred_latent=False)
    return middle + unit * np.asarray(found["response_mean"])


def boosted_encoded(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """scikit-learn's gradient boosting, with the group as its mean target."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    stop = {"early_stopping": True, "validation_fraction": HELD_OUT, "n_iter_no_change": PATIENCE}
    size = {"learning_rate": 0.05, "min_samples_leaf": 10, "random_state": 0}

    def fitted(**settings: Any) -> Any:
        encoded = _encoder(classes).set_output(transform="pandas")
        return make_pipeline(encoded, kind(**size, **settings)).fit(train.frame, train.y)

    rounds = fitted(max_iter=ROUNDS, **stop)[-1].n_iter_ - PATIENCE
    return _guess(fitted(max_iter=max(rounds, 1), early_stopping=False), test.frame, classes)


def ridge_encoded(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """Ridge or logistic regression, with the group as its mean target."""
    if classes:
        model = LogisticRegressionCV(scoring="neg_log_loss", cv=5, max_iter=1000)
    else:
        model = RidgeCV(np.logspace(-3, 4, 15))
    chain = make_pipeline(_encoder(classes), StandardScaler(), model)
    return _guess(chain.fit(_columns(train), train.y), _columns(test), classes)


def mixed_model(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """statsmodels' mixed models: random intercepts, with slopes where the AIC asks for them."""
    import statsmodels.api as sm
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    scale = StandardScaler().fit(train.X)
    X, X_test = (np.insert(scale.transform(rows.X), 0, 1.0, axis=1) for rows in (train, test))
    _, R, order = qr(X, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    kept = np.sort(order[: np.sum(diagonal > 1e-8 * diagonal[0])])
    X, X_test = X[:, kept], X_test[:, kept]
    labels, codes = np.unique(train.task, return_inverse=True)
    places = np.searchsorted(labels, test.task)
    if classes:
        groups = np.eye(len(labels))[codes]
        model = BinomialBayesMixedGLM(
            (train.y > 0).astype(float), X, groups, np.zeros(len(labels), dtype=int)
        )
        found = model.fit_vb()
        return 1.0 / (1.0 + np.exp(-(X_test @ found.fe_mean + found.vc_mean[places])))
    vary = [j for j in range(1, X.shape[1]) if _varies(X[:, j], codes)]
    found = []
    for slopes in ([0], [0, *vary]) if 0 < len(vary) <= 6 else ([0],):
        try:
            fit = sm.MixedLM(train.y, X, groups=codes, exog_re=X[:, slopes]).fit()
        except np.linalg.LinAlgError:
            continue
        found.append((len(slopes) * (len(slopes) + 1) - 2.0 * fit.llf, slopes, fit))
    _, slopes, fit = min(found, key=lambda one: one[0])
    effects = np.array([np.asarray(fit.random_effects[code]) for code in range(len(labels))])
    return X_test @ fit.fe_params + np.sum(X_test[:, slopes] * effects[places], axis=1)


def scikit_lego(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """Ridge of all rows and of each group, averaged; the best weights on held-out rows.

    Few groups have rows of both classes, so that classes are fitted as numbers.
    """
    from sklego.meta import HierarchicalRegressor

    scale = StandardScaler().fit(train.X)

    def scaled(rows: Rows) -> pd.DataFrame:
        return pd.DataFrame(scale.transform(rows.X)).add_prefix("x").assign(task=rows.task)

    def fitted(rows: Rows, alpha: float, way: str, weight: dict[str, float]) -> Any:
        model = HierarchicalRegressor(
            Ridge(alpha), ["task"], shrinkage=way, shrinkage_kwargs=weight or None
        )
        return model.fit(scaled(rows), rows.y)

    fit, held = _held_out(train, classes)
    ways = [("relative", {}), ("constant", {"alpha": 0.5})]
    options = [(alpha, *way) for alpha in (1.0, 10.0) for way in ways]
    errors = [
        float(np.mean((fitted(fit, *one).predict(scaled(held)) - held.y) ** 2)) for one in options
    ]
    found = fitted(train, *options[int(np.argmin(errors))]).predict(scaled(test))
    return np.clip((1.0 + found) / 2.0, 0.01, 0.99) if classes else found


def merf(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """A random forest and a random intercept of each group."""
    from merf import MERF
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(100, n_jobs=1, random_state=0)
    model = MERF(forest, max_iterations=20, gll_early_stop_threshold=0.01)
    model.fit(train.X, np.ones((len(train.y), 1)), pd.Series(train.task), train.y)
    return model.predict(test.X, np.ones((len(test.y), 1)), pd.Series(test.task))


def autogluon(train: Rows, test: Rows, classes: bool) -> np.ndarray:
    """AutoGluon's "high_quality", 120 seconds on one core, with the group as a category."""
    from autogluon.tabular import TabularPredictor

    metric = "roc_auc" if classes else "root_mean_squared_error"
    kind = "binary" if classes else "regression"
    # Its limit is by the clock, of which other programs may take a share.
    spent, clock = time.process_time(), time.perf_counter()
    while time.process_time() - spent < 0.5:
        pass
    limit = 120.0 * max((time.perf_counter() - clock) / 0.5, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        model = TabularPredictor(
            "y", problem_type=kind, eval_metric=metric, path=folder, verbosity=0
        )
        model.fit(
            train.frame.assign(y=train.y),
            **{"presets": "high_quality", "time_limit": limit, "num_cpus": 1, "num_gpus": 0},
        )
        if classes:
            return model.predict_proba(test.frame)[1].to_numpy()
        return model.predict(test.frame).to_numpy()


@dataclass(frozen=True)
class Method:
    """A method, the package whose version counts, and whether it takes classes."""

    fit: Callable[..., np.ndarray]
    package: str
    module: str
    classes: bool = True


METHODS = {
    "comtl": Method(comtl, "comtl", "comtl"),
    "comtl linear": Method(comtl_linear, "comtl", "comtl"),
    "comtl hierarchical": Method(hierarchical, "comtl", "comtl"),
    # Run it with the comtl of that commit: PYTHONPATH=OTHER/src, in a worktree of it.
    "comtl before": Method(comtl_before, "comtl", "comtl"),
    "encoded ridge": Method(ridge_encoded, "scikit-learn", "sklearn"),
    "LightGBM": Method(lightgbm, "lightgbm", "lightgbm"),
    "encoded boosting": Method(boosted_encoded, "scikit-learn", "sklearn"),
    "CatBoost": Method(catboost, "catboost", "catboost"),
    "scikit-lego": Method(scikit_lego, "scikit-lego", "sklego.meta"),
    "mixed model": Method(mixed_model, "statsmodels", "statsmodels.api"),
    "GPBoost": Method(gpboost, "gpboost", "gpboost"),
    "MERF": Method(merf, "merf", "merf", classes=False),
    "AutoGluon": Method(autogluon, "autogluon.tabular", "autogluon.tabular"),
}
OURS, BEFORE = "comtl", "comtl before"
FAMILY = tuple(name for name in METHODS if name.startswith("comtl"))


def _fitted(model: Any, train: Rows, test: Rows, classes: bool) -> np.ndarray:
    model.fit(train.X, train.y, task=train.task)
    if classes:
        return model.predict_proba(test.X, task=test.task)[:, 1]
    return model.predict(test.X, task=test.task)


def _guess(model: Any, rows: pd.DataFrame, classes: bool) -> np.ndarray:
    return model.predict_proba(rows)[:, 1] if classes else model.predict(rows)


def _held_out(train: Rows, classes: bool) -> tuple[Rows, Rows]:
    """Rows to fit and rows on which to stop, of each class its share."""
    strata = train.y if classes else np.zeros(len(train.y))
    held = share_of_each(strata, HELD_OUT, np.random.default_rng(0))
    return train[~held], train[held]


def _columns(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows.X).add_prefix("x").assign(task=rows.task)


def _encoder(classes: bool) -> ColumnTransformer:
    kind = "binary" if classes else "continuous"
    encoder = TargetEncoder(target_type=kind, random_state=0)
    return ColumnTransformer(
        [("task", encoder, ["task"])], remainder="passthrough", verbose_feature_names_out=False
    )


def _varies(column: np.ndarray, codes: np.ndarray) -> bool:
    """Whether a column has more than one value in some groups."""
    means = np.bincount(codes, column) / np.bincount(codes)
    return bool(np.abs(column - means[codes]).max() > 1e-9)
