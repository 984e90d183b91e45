"""Posts of the newsgroups with or without their headers: ridge on the target's training rows.

The paper does not say which it used. Squared loss, penalty by 3 folds, threshold 0, macro-F of
the target's test rows; mean over five seeds. The table stays empty where COMTL_DATA is not set;
`make bench` writes the result beside this file.
"""

import os

import numpy as np
import sklearn
from sklearn.linear_model import RidgeCV
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from comtl_reproduction.loaders import load_newsgroups

TARGETS = range(1, 7)


def macro_f(target, headers, seed):
    data = load_newsgroups(target, headers=headers, random_state=seed)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    cv = list(folds.split(data.X_target, data.y_target))
    model = RidgeCV(np.logspace(-3, 3, 13), cv=cv, scoring="neg_mean_squared_error")
    score = model.fit(data.X_target.toarray(), data.y_target).predict(data.X_test.toarray())
    return f1_score(data.y_test, np.where(score > 0, 1, -1), average="macro")


if __name__ == "__main__":
    print("# Headers of the newsgroups\n\nWritten by `python benchmarks/bench_headers.py`: 500")
    print(f"features, 10 % of the target's rows, 5 seeds; scikit-learn {sklearn.__version__},")
    print(f"{os.cpu_count()} cores. Target: a mean of .888.\n")
    print("| | " + " | ".join(f"target {target}" for target in TARGETS) + " | mean |")
    print("| --- " * (2 + len(TARGETS)) + "|")
    kinds = {"whole posts": True, "bodies": False} if os.environ.get("COMTL_DATA") else {}
    for label, headers in kinds.items():
        means = [np.mean([macro_f(t, headers, seed) for seed in range(5)]) for t in TARGETS]
        print(f"| {label} | " + " | ".join(f"{f:.3f}" for f in [*means, np.mean(means)]) + " |")
