"""Draw the picture of the README: python docs/images/coclusters.py."""

from pathlib import Path

import matplotlib.pyplot as plt

from comtl import TriFactorRegressorCV, plot
from comtl.datasets import make_coclusters

if __name__ == "__main__":
    data = make_coclusters(random_state=0)
    search = TriFactorRegressorCV(4, 3, alphas=(0.01, 0.1, 1.0, 10.0), cv=3, random_state=0)
    model = search.fit(data.X, data.y, task=data.task)
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    plot.coclusters(model, ax=ax)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
