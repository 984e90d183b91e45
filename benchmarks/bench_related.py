"""Members for wide tables: estimates of the covariance between tasks and of the noise.

``python benchmarks/bench_related.py`` gives the logistic loss a row of the stack on rows that its
members did not see: training rows of repeat 0 alone. Needs COMTL_DATA.
"""

import time
import warnings
from contextlib import ExitStack
from unittest import mock

import numpy as np

from comtl import MultitaskClassifier
from comtl.hierarchical import coregionalised as task_covariance
from comtl.stacking import default_members as library
from comtl.stacking import multitask
from comtl_reproduction.loaders import load_newsgroups, load_sentiment

CHOICES = {
    "as built": {},
    "relation by ridge at the estimated noise": {"SMOOTH": 1.0},
    "relation by ridge at ten times the noise": {"SMOOTH": 10.0},
    "relation by 32 probes": {"PROBES": 32},
    "noises 1, 3, 10": {"NOISES": (1.0, 3.0, 10.0)},
    "noises 3, 10, 30": {"NOISES": (3.0, 10.0, 30.0)},
    "noises 3, 10, 30, 100": {"NOISES": (3.0, 10.0, 30.0, 100.0)},
    "one to four directions": {"RELATED": (1, 2, 4)},
    "no relation": {"RELATED": ()},
}


def held_out(X, y, task) -> float:
    """Loss of the stack a row."""
    losses, fit_stack = [], multitask.fit_stack

    def watched(*args: object) -> object:
        stack = fit_stack(*args)
        losses.append(np.average(stack.losses, weights=stack.held.weights))
        return stack

    with mock.patch.object(multitask, "fit_stack", watched):
        MultitaskClassifier().fit(X, y, task=task)
    return losses[0]


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Members for wide tables\n\nWritten by `python benchmarks/bench_related.py`.\n")
    sets = {f"sentiment {name}": load_sentiment(name, random_state=0) for name in ("II", "V")}
    sets["newsgroups 4"] = load_newsgroups(4, random_state=0)
    print("| | " + " | ".join(sets) + " | CPU s |\n|" + " --- |" * (len(sets) + 2))
    for name, choice in CHOICES.items():
        start, line = time.process_time(), []
        for data in sets.values():
            with ExitStack() as patches:
                for key, value in choice.items():
                    home = library if hasattr(library, key) else task_covariance
                    patches.enter_context(mock.patch.object(home, key, value))
                line.append(f"{held_out(data.X, data.y, data.task):.4f}")
        seconds = time.process_time() - start
        print(f"| {name} | " + " | ".join(line) + f" | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
