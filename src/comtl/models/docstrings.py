"""Parameter and attribute texts that the estimators share, written once."""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

from ..losses import LOSSES, loss_names, loss_of
from ..penalties import PENALTIES, core_penalties, factor_penalties

_BLOCKS = {
    "hierarchical": """
        structure : {"intercept", "isotropic", "diagonal", "full", "factor"}, default="full"
            Covariance of what a task has of its own: an intercept only; slopes of one variance;
            of one variance each; any covariance, with a prior about the isotropic one; or some
            directions in common and one variance around them.
        n_components : int, default=2
            Directions of the structure "factor".
        prior_weight : float or None, default=None
            How many tasks the prior of a full covariance counts for; None: as many as features.
        shrink_common : bool, default=False
            Whether the common slopes are drawn to zero, as far as the marginal likelihood asks for.
            False leaves them free, as a mixed model does, where there are ten rows for each or
            more.
        """,
    "stacked": """
        basis : {None, "hinges"}, default=None
            "hinges" also tries columns of ten values or more with hinges at four quantiles, and
            keeps them where they are better on rows that the members did not see, by more than
            chance explains. ``coef_`` and ``feature_clusters_`` then hold the columns of X first
            and the hinges after them; ``coef_frame()`` names them.
        cv : int, splitter or list of splits, default=5
            Folds on which the members are compared. An int cuts every task (and every class in
            it) into that many parts; the folds depend on nothing else.
        task_column : str, int or None, default=None
            Name or number of the column of X that holds the task.
        unseen_task : {"mean", "raise"}, default="mean"
            What predict does with a task that fit never saw: use the mean of all tasks, or raise.
        n_jobs : int or None, default=None
            Members fitted at the same time, in processes of joblib.
        checkpoint : str or None, default=None
            File that is written every half minute and after each fold. The same fit, killed and
            begun again with the same data and parameters, goes on from there to the same result.
            Removed at the end.
        verbose : int, default=0
            Whether to show the progress over the folds, through the logger "comtl".
        """,
    "stacked_attributes": """
        basis_ : str
            "linear" or "hinges".
        members_ : dict
            Members that have a weight, fitted to all rows, by name. After a regression on a
            two-dimensional y they are models of its columns in units of their spread.
        weights_ : dict
            Their weights, by name.
        tasks_ : ndarray of shape (n_tasks,)
            Task labels, in the order of the rows of ``coef_``.
        coef_ : ndarray of shape (n_tasks, n_features){multiclass}
            Weights of every task, the task column left out.
        intercept_ : ndarray of shape (n_tasks,)
            Intercepts.
        shared_coef_ : ndarray of shape (n_features,)
            Mean of the weights of all tasks.
        feature_clusters_, task_clusters_ : ndarrays
            Clusters of features and tasks, as many as are clearest.
        n_features_in_ : int
            Columns of X seen in fit, the task column counted.
        """,
    "hierarchical_common": """
        standardize : bool, default=True
            Whether to scale features to unit variance inside. False: they keep their spread, so
            that wide columns may count for more. Weights are reported in the units given.
        task_column : str, int or None, default=None
            Name or number of the column of X that holds the task.
        unseen_task : {"mean", "raise"}, default="mean"
            What predict does with a task that fit never saw: use the mean of all tasks, or raise.
        max_iter : int, default=500
            Most steps.
        tol : float, default=1e-6
            Stop once the log marginal likelihood can rise by no more than this for each row, by how
            fast its gains fall.
        verbose : int, default=0
            Whether to show the marginal likelihood after each step, through the logger "comtl".
        """,
    "hierarchical_attributes": """
        tasks_ : ndarray of shape (n_tasks,)
            Task labels, in the order of the rows of ``coef_``.
        coef_ : ndarray of shape (n_tasks, n_features){multiclass}
            Weights of every task, the task column left out.
        intercept_ : ndarray of shape (n_tasks,)
            Intercepts.
        shared_coef_ : ndarray of shape (n_features,)
            Mean of the population.
        log_evidence_ : float
            Logarithm of the restricted likelihood, or its bound for classes, in standardised units.
        objective_history_ : ndarray of shape (n_steps + 1,)
            Log marginal likelihood plus log priors at the start and after each step; never falls.
        n_iter_, converged_ : int, bool
            Steps done, and whether they came to an end.
        feature_clusters_, task_clusters_ : ndarrays
            Clusters of features and tasks, as many as are clearest.
        n_features_in_ : int
            Columns of X seen in fit, the task column counted.
        """,
    "bi_ranks": """
        n_components : int, default=5
            Columns ``K`` of both factors; capped at ``min(P, T)``.
        """,
    "tri_ranks": """
        n_feature_clusters : int, default=5
            Columns ``K1`` of the feature factor; capped at the number of features.
        n_task_clusters : int, default=5
            Columns ``K2`` of the task factor; capped at the number of tasks.
        """,
    "bi_search": """
        n_components : int or sequence of int, default=5
            Columns ``K`` of both factors, or several to choose from.
        """,
    "tri_search": """
        n_feature_clusters, n_task_clusters : int or sequence of int, default=5
            Columns ``K1`` and ``K2`` of the factors, or several to choose from.
        """,
    "search": """
        alphas : sequence of float, default=half decades from 1e-3 to 1e3
            Values of ``alpha_task`` to choose from.
        cv : int, splitter or list of splits, default=5
            Folds. An int cuts every task (and every class in it) into that many parts; the folds
            depend on nothing else.
        warm_path : bool, default=True
            Whether to screen the settings first by rough fits, each starting from the one before
            along ``alphas``. The best of each path and the best few of all are then fitted on
            their own, so the winner's score is that of a fit of its own; the scores of the others
            are rough. False: all are fits of their own. So they are in any case where small fits
            go through in batches: regression with relations on both factors, few features and
            tasks, or rows on a device.
        n_jobs : int or None, default=None
            Paths or batches of fits at the same time, in processes of joblib.
        """,
    "alpha_task": """
        alpha_task : float, default=0.5
            λ2, the penalty of the task factor. With learned relations or ridge on every factor only
            the product of the λ matters for the fit.
        """,
    "core": """
        core_penalty : str or None, default="ridge"
            Penalty of the core:
            {core_penalties}
        alpha_core : float, default=1.0
            λ3, the penalty of the core.
        """,
    "alpha": """
        alpha : float, default=1.0
            Penalty of the weights.
        """,
    "mean": """
        alpha_intercept : float or None, default=None
            Penalty of the tasks' deviations from the common intercept; None estimates it from
            the data.
        alpha_shared : float, default=1.0
            Penalty of the common part.
        """,
    "plain_lambdas": """
        alpha_feature : float, default=0.1
            λ1, the penalty of the feature factor.
        alpha_task : float, default=1.0
            λ2, the penalty of the task factor.
        """,
    "clusters": """
        n_clusters : int, default=5
            Models in the pool; capped at the number of tasks.
        alpha : float, default=1.0
            Ridge penalty of the models.
        """,
    "plain": """
        loss : str, default="auto"
            {loss}
        fit_intercept : bool, default=True
            Whether to fit intercepts.
        standardize : bool, default=True
            Whether to scale features{target} to unit variance inside, so that the penalties do
            not depend on units. Weights are reported in the units given. False: the objective in
            the units given.
        task_column : str, int or None, default=None
            Name or number of the column of X that holds the task.
        unseen_task : {"mean", "raise"}, default="mean"
            What predict does with a task that fit never saw: use the mean of all tasks, or raise.
        max_iter : int, default={max_iter}
            Most sweeps.
        tol : float, default={tol}
            Relative decrease of the objective in a sweep at which to stop.
        random_state : int, RandomState or None, default=None
            Seed of starting points and clusters.
        verbose : int, default=0
            Whether to show the objective after each sweep, through the logger "comtl".
        """,
    "plain_attributes": """
        tasks_ : ndarray of shape (n_tasks,)
            Task labels, in the order of the rows of ``coef_``.
        coef_ : ndarray of shape (n_tasks, n_features){multiclass}
            Weights of every task, the task column left out.
        intercept_ : ndarray of shape (n_tasks,)
            Intercepts.
        shared_coef_ : ndarray of shape (n_features,)
            The part that all tasks have in common, zero without it.
        objective_history_ : ndarray of shape (n_sweeps + 1,)
            Objective at the start and after each sweep; never rises.
        n_iter_, converged_ : int, bool
            Sweeps done, and whether the decrease fell below ``tol``.
        n_features_in_ : int
            Columns of X seen in fit, the task column counted.
        """,
    "relation_attributes": """
        feature_relation_, task_relation_ : Relation
            Learned relations of the standardised features and of the tasks.
        """,
    "factor_attributes": """
        feature_factor_, task_factor_ : ndarray of shape (n_features, K), (n_tasks, K)
            The factors, features in the units of the data.
        task_clusters_ : ndarray of shape (n_tasks,)
            Clusters of the tasks.
        """,
    "common": """
        alpha_feature : float, default=0.1
            λ1, the penalty of the feature factor.
        feature_penalty, task_penalty : str, default="relation"
            What bounds each factor:
            {factor_penalties}
            With "clusters" on both sides the weights are constant on blocks of features and tasks,
            the core holds the blocks' weights, and K1 and K2 are true numbers of clusters. The best
            of several runs is kept, from starts of their own: ``init`` has no part in it.
        shared : bool, default=False
            Whether all tasks have a part ``w0`` in common beside the factors. What is left for the
            factors is then smaller, and asks for a larger λ2: choose it by cross-validation.
        alpha_shared : float, default=1.0
            Ridge penalty of the shared part.
        loss : str, default="auto"
            {loss}
        fit_intercept : bool, default=True
            Whether to fit intercepts: a common one, and a deviation for each task whose variance
            is estimated from the data.
        standardize : bool, default=True
            Whether to scale features{target} to unit variance inside, so that the penalties do
            not depend on units. Weights are reported in the units given. False: the objective in
            the units given.
        task_column : str, int or None, default=None
            Name or number of the column of X that holds the task.
        unseen_task : {"mean", "raise"}, default="mean"
            What predict does with a task that fit never saw: use the mean of all tasks, or raise.
        init : {"svd", "random"}, default="svd"
            Start from the leading singular vectors of the tasks' gradients, or from chance.
        smoothing : float, default=0.01
            Floor of the relations' ε, relative to the factor's largest singular value squared.
        max_iter : int, default=200
            Most sweeps of the alternation.
        tol : float, default=1e-4
            Relative decrease of the objective in a sweep at which to stop.
        random_state : int, RandomState or None, default=None
            Seed of the starting point and of the clusters.
        checkpoint : str or None, default=None
            File that is written every half minute and after each fold. The same fit, killed and
            begun again with the same data and parameters, goes on from there to the same result.
            Removed at the end.
        verbose : int, default=0
            Whether to show the objective after each sweep, through the logger "comtl".
        """,
    "attributes": """
        tasks_ : ndarray of shape (n_tasks,)
            Task labels, in the order of the rows of ``coef_``.
        coef_ : ndarray of shape (n_tasks, n_features){multiclass}
            Weights of every task, the task column left out.
        intercept_ : ndarray of shape (n_tasks,)
            Intercepts.
        shared_coef_ : ndarray of shape (n_features,)
            The shared part, zero without it.
        feature_factor_ : ndarray of shape (n_features, K1)
            Feature factor, in the units of the data.
        task_factor_ : ndarray of shape (n_tasks, K2)
            Task factor.
        feature_relation_, task_relation_ : Relation
            Learned relations of the standardised features and of the tasks, low-rank objects
            with ``@`` and ``toarray()``.
        feature_clusters_, task_clusters_ : ndarray
            Clusters of features and tasks, from the singular vectors of the weights; the
            memberships themselves where the penalty of that side is "clusters".
        solver_ : dict
            Where the rows lived and which solver ran for each factor.
        objective_history_ : ndarray of shape (n_sweeps + 1,)
            Objective at the start and after each sweep; never rises.
        n_iter_ : int
            Sweeps done.
        converged_ : bool
            Whether the decrease fell below ``tol``.
        n_features_in_ : int
            Columns of X seen in fit, the task column counted.
        """,
    "bi_attributes": """
        n_components_ : int
            Columns of the factors after capping.
        """,
    "tri_attributes": """
        core_ : ndarray of shape (K1, K2)
            Core.
        n_feature_clusters_, n_task_clusters_ : int
            Columns of the factors after capping.
        """,
    "search_attributes": """
        alpha_task_ : float
            The chosen penalty.
        best_params_ : dict
            The chosen setting.
        best_score_ : float
            Its mean held-out loss per observation, negative: higher is better.
        cv_results_ : dict
            Settings under "params", their scores under "mean_test_score" and "std_test_score".
        """,
    "classes": """
        classes_ : ndarray of shape (n_classes,)
            Union of the classes of all tasks.
        """,
}


def _choices(texts: dict[str | None, str]) -> str:
    """Choices of a parameter and what they mean, as lines of a block."""
    names = {name: "None" if name is None else f'"{name}"' for name in texts}
    text = "; ".join(f"{names[name]}: {meaning}" for name, meaning in texts.items())
    return "\n    ".join(textwrap.wrap(text + ".", 84))


def _losses(*, classification: bool) -> str:
    names = loss_names(classification=classification)
    auto = loss_of("auto", classification=classification)
    texts: dict[str | None, str] = {name: LOSSES[name].text for name in names}
    default = next(name for name in names if LOSSES[name] == auto)
    return _choices({**texts, "auto": f'the same as "{default}"'})


_PENALTIES = {
    "factor_penalties": _choices({n: PENALTIES[n].text for n in factor_penalties(core=True)}),
    "core_penalties": _choices({n: PENALTIES[n].text for n in core_penalties()}),
}
_REGRESSOR = _PENALTIES | {
    "loss": _losses(classification=False),
    "target": " and target",
    "multiclass": "",
}
_CLASSIFIER = _PENALTIES | {
    "loss": _losses(classification=True),
    "target": "",
    "multiclass": " or (n_tasks, n_classes, n_features)",
}

Documented = TypeVar("Documented", bound=type)


def documented(cls: Documented) -> Documented:
    """Fill ``<name>`` lines of a class docstring with the shared texts."""
    kind = dict(_CLASSIFIER if "Classifier" in cls.__name__ else _REGRESSOR)
    parameters = inspect.signature(cls).parameters
    kind |= {
        name: str(parameters[name].default) for name in ("max_iter", "tol") if name in parameters
    }
    lines = []
    for line in (cls.__doc__ or "").splitlines():
        name = line.strip().strip("<>")
        if line.strip() == f"<{name}>" and name in _BLOCKS:
            block = textwrap.dedent(_BLOCKS[name]).strip()
            for key, text in kind.items():
                block = block.replace("{" + key + "}", text)
            lines.append(textwrap.indent(block, "    "))
        else:
            lines.append(line)
    cls.__doc__ = "\n".join(lines)
    return cls
