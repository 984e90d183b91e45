"""Smoothing of the relations on text: held-out loss and macro-F of training rows alone.

Sentiment Experiments II and V, squared loss, three folds of the training rows of repeat 0. No test
row has a part in it. Needs COMTL_DATA.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from comtl import BiFactorClassifier
from comtl.rows.fit_input import FitInput
from comtl_reproduction.loaders import load_sentiment
from comtl_reproduction.metrics import choose_cut
from comtl_reproduction.text import held_out_scores

SMOOTHINGS = (0.01, 0.1, 1.0, 10.0)
RANKS = (2, 5, 10)
ALPHAS = (1e-3, 1e-2, 1e-1)


def measure(rows, **setting):
    model = BiFactorClassifier(loss="squared", standardize=False, random_state=0, **setting)
    scores = held_out_scores(model, rows)
    reached, _ = choose_cut(rows.y > 0, scores, rows.task)
    return np.mean((scores - rows.y) ** 2), reached


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("# Smoothing on text\n")
    print(__doc__.split("\n\n", 1)[1].strip() + "\n")
    print("For each smoothing the setting with the lowest held-out loss among K in")
    print(f"{RANKS} and λ2 in {ALPHAS}.\n")
    print("| experiment | smoothing | K | λ2 | held-out loss | macro-F at the best threshold |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in ("II", "V"):
        data = load_sentiment(name, random_state=0)
        rows = FitInput(data.X, data.y, data.task)
        for smoothing in SMOOTHINGS:
            found = {
                (K, alpha): measure(rows, n_components=K, alpha_task=alpha, smoothing=smoothing)
                for K in RANKS
                for alpha in ALPHAS
            }
            K, alpha = min(found, key=lambda key: found[key][0])
            loss, reached = found[K, alpha]
            print(f"| {name} | {smoothing:g} | {K} | {alpha:g} | {loss:.4f} | {reached:.3f} |")


if __name__ == "__main__":
    main()
