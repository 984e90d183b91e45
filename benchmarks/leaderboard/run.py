"""The leaderboard: every method on every development set, tuned on training rows alone.

``python benchmarks/leaderboard/run.py [--repeats 5] [--methods A,B] [--sets A,B] [--jobs 2]``
writes docs/leaderboard/leaderboard.csv, one row per finished fit, and the page
docs/leaderboard.md; after an interruption the same command resumes.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from methods import NAMES, OURS, OWN, cells, scores
from problems import PROBLEMS

from comtl.saving.writing import write_atomically
from comtl_reproduction.cells import Cell, Store, run_cells
from comtl_reproduction.statistics import mean_and_error, winners

ROOT = Path(__file__).resolve().parents[2] / "docs"
KEYS, VALUES = ("data", "method", "repeat"), ("value",)


def work(data: str, method: str, seed: int) -> dict[str, float]:
    """Measure of one cell."""
    problem = PROBLEMS[data]
    split = problem.split(seed)
    return {"value": problem.metric(split, scores(problem, split, method))}


def known() -> dict[tuple[str, str, str], float]:
    """Values that ``comtl reproduce`` has measured already: same splits, same tuning."""
    found = {}
    for file, prefix, value in (
        ("synthetic", "", "rmse"),
        ("school", "school ", "rmse"),
        ("sentiment", "sentiment ", "f_cut"),
    ):
        with open(ROOT / "reproduction" / f"{file}.csv", newline="") as lines:
            for row in csv.DictReader(lines):
                place = f"{prefix}{row['data']}", row["method"], row["repeat"]
                found[place] = float(row[value])
    with open(ROOT / "reproduction" / "newsgroups.csv", newline="") as lines:
        for row in csv.DictReader(lines):
            data = row["data"].replace("Task", "newsgroups")
            method = "ITL" if row["method"] == "ridge" else row["method"]
            value = row["f_cut"] if method == "ITL" else row["f_cut_residual"]
            found[data, method, row["repeat"]] = float(value)
    return found


def wanted(repeats: int, methods: list[str], sets: list[str]) -> list[Cell]:
    """Cells that are not known from the reproduction of the paper."""
    measured = known()
    everything = cells(work, methods, [PROBLEMS[data] for data in sets], repeats)
    return [cell for cell in everything if tuple(map(str, cell.keys.values())) not in measured]


def page(rows) -> str:
    """Means, ranks and wins, from the rows of the file alone."""
    samples = defaultdict(lambda: defaultdict(dict))
    values = {(row["data"], row["method"], str(row["repeat"])): row["value"] for row in rows}
    measured = {place: value for place, value in known().items() if place[0] in PROBLEMS}
    for (data, method, repeat), value in {**measured, **values}.items():
        samples[_group(data)][method][f"{data} {repeat}"] = value
    sets = [name for name in dict.fromkeys(map(_group, PROBLEMS)) if name in samples]
    names = [name for name in NAMES if any(name in samples[data] for data in sets)]
    lower = {_group(problem.name): problem.lower for problem in PROBLEMS.values()}
    wanted = {data: 5 * sum(_group(name) == data for name in PROBLEMS) for data in sets}
    # A mean over some of the repeats is neither a winner nor a rival.
    field = {
        data: {name: one for name, one in samples[data].items() if len(one) >= wanted[data]}
        for data in sets
    }
    best = {data: winners(field[data], lower_is_better=lower[data]) for data in sets}
    parts = [HEAD, "| | " + " | ".join(sets) + " |", "|" + " --- |" * (len(sets) + 1)]
    for name in names:
        line = []
        for data in sets:
            found = list(samples[data].get(name, {}).values())
            if not found:
                line.append("")
                continue
            mean, error = mean_and_error(found)
            text = f"{mean:.4g}" if error is None else f"{mean:.4g} ({error:.2g})"
            text += "" if len(found) >= wanted[data] else f" [{len(found)}]"
            bold = name in best[data] and len(field[data]) > 1
            line.append(f"**{text}**" if bold else text)
        parts.append(f"| {name} | " + " | ".join(line) + " |")
    parts += ["", "## Ranks and wins", "", "| | sets | mean rank | best or tied |"]
    parts.append("| --- | --- | --- | --- |")
    for name in names:
        # A set on which nothing else has run yet is no contest.
        own = [data for data in sets if name in field[data] and len(field[data]) > 1]
        if not own:
            continue
        ranks = [_rank(field[data], name, lower[data]) for data in own]
        wins = sum(name in best[data] for data in own)
        parts.append(f"| {name} | {len(own)} | {np.mean(ranks):.1f} | {wins} |")
    parts += ["", _against_others(field, lower)]
    return "\n".join(parts) + "\n"


def _against_others(field, lower) -> str:
    """Compare the default with methods that are not comtl's own."""
    left = {
        data: {name: one for name, one in sample.items() if name == OURS or name not in OWN}
        for data, sample in field.items()
    }
    sets = [data for data, sample in left.items() if OURS in sample and len(sample) > 1]
    if not sets:
        return f"`{OURS}` has not run yet."
    wins = sum(OURS in winners(left[data], lower_is_better=lower[data]) for data in sets)
    rank = np.mean([_rank(left[data], OURS, lower[data]) for data in sets])
    return (
        f"With `{'`, `'.join(OWN[1:])}` left out, `{OURS}` is best or tied on {wins} of "
        f"{len(sets)} sets, at a mean rank of {rank:.1f}. Worse than the best of the others by "
        f"more than one standard error of the paired difference: {_behind(left, sets, lower)}."
    )


def _behind(field, sets, lower) -> str:
    """Sets on which the default is behind the best other method, and by how much."""
    found = []
    for data in sets:
        others = [name for name in field[data] if name != OURS]
        best = min(others, key=lambda name: _rank(field[data], name, lower[data]))
        own, rival = field[data][OURS], field[data][best]
        sign = 1.0 if lower[data] else -1.0
        gap, error = mean_and_error([sign * (own[cell] - rival[cell]) for cell in own])
        if error is not None and gap > error:
            found.append(f"{data} ({gap:.2g} at {error:.2g}, {best})")
    return ", ".join(found) or "nowhere"


def _rank(sample, name: str, lower: bool) -> int:
    """Place of a method by its mean, one for the best."""
    sign = 1.0 if lower else -1.0
    means = {method: sign * np.mean(list(values.values())) for method, values in sample.items()}
    return 1 + sum(mean < means[name] for mean in means.values())


def _group(data: str) -> str:
    return "newsgroups 1-6" if data.startswith("newsgroups") else data


HEAD = f"""# Leaderboard

Every method on every development set, seeds 0-4; all parameters are chosen on training rows. RMSE
is the mean over tasks for syn and school, pooled elsewhere (sarcos: relative to the standard
deviation of each torque); mnist_mtl is the error of the largest of ten scores; sentiment and
newsgroups are macro-F, higher is better, with thresholds chosen on training rows. In brackets the
standard error; bold the best and those not significantly different from it (paired t-test at 5 %).
`{OURS}` is `MultitaskRegressor()` or the classifier.
Methods with fewer than five repeats are marked by their
number and left out of ranks and wins. Written by `make leaderboard` from
`leaderboard/leaderboard.csv`, and for the paper's methods on syn, school, sentiment and newsgroups
from `reproduction/*.csv`: same splits, same tuning. On newsgroups factor models are fitted to nine
tasks and adapted to the new one, with a residual; ITL uses the rows of the new task only; all
others fit ten tasks jointly. Empty entries: methods that are not applicable, or have not been run.
"""


def _report(done: int, total: int) -> None:
    print(f"{done} of {total} fits done", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", default=",".join(NAMES))
    parser.add_argument("--sets", default=",".join(PROBLEMS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder = ROOT / "leaderboard"
    folder.mkdir(exist_ok=True)
    store = Store(folder / "leaderboard.csv", KEYS, VALUES)
    times = Store(folder / "leaderboard_times.csv", KEYS, ["seconds"])
    asked = wanted(options.repeats, options.methods.split(","), options.sets.split(","))
    run_cells(asked, store, times, jobs=options.jobs, report=_report)
    everything = cells(work, list(NAMES), list(PROBLEMS.values()), options.repeats)
    for kept in (store, times):
        kept.finish(everything)  # One order, whatever part of it has run.
    write_atomically(ROOT / "leaderboard.md", page(store.rows()).encode())


if __name__ == "__main__":
    main()
