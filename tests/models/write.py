"""Write the files of the present version of the format."""

import json
from pathlib import Path

import numpy as np

import comtl
from comtl.baselines import MeanRegularizedRegressor
from comtl.saving.container import VERSION


def main() -> None:
    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 3)), np.repeat(["a", "b", "c", "d"], 15)
    y = X @ rng.normal(size=3) + np.repeat(rng.normal(size=4), 15) + 0.3 * rng.normal(size=60)
    models = {
        "stacked": comtl.MultitaskRegressor(cv=2).fit(X, y, task=task),
        "hierarchical": comtl.HierarchicalRegressor("factor", n_components=1).fit(X, y, task=task),
        "trifactor": comtl.TriFactorRegressor(2, 2, shared=True).fit(X, y, task=task),
        "clusters": comtl.TriFactorRegressor(2, 2, task_penalty="clusters").fit(X, y, task=task),
        "sparse": comtl.BiFactorRegressor(2, relation_penalty="l1").fit(X, y, task=task),
        "baseline": MeanRegularizedRegressor().fit(X, y, task=task),
        "search": comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=2).fit(X, y, task=task),
        "classes": comtl.BiFactorClassifier(2).fit(X, np.digitize(y, [-1, 1]), task=task),
    }
    models["adapted"] = models["sparse"].adapt(X[:9], y[:9] + 1.0, task=["e"] * 9)
    said = {name: model.predict(X[::7], task=task[::7]).tolist() for name, model in models.items()}
    for name, model in models.items():
        model.save(folder / f"version-{VERSION}-{name}.comtl")
    facts = {"rows": X[::7].tolist(), "task": task[::7].tolist(), "said": said}
    (folder / f"version-{VERSION}.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
