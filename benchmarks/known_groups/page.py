"""The page of the benchmark, docs/benchmark.md, and its two plots, from fits.csv alone."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from drawn import FAMILIES, least
from methods import BEFORE, CPU_LIMIT, FAMILY, METHODS, OURS
from scipy.stats import friedmanchisquare, studentized_range
from tables import TABLES

from comtl.saving.writing import write_atomically
from comtl_reproduction.cells import Row

DOCS = Path(__file__).resolve().parents[2] / "docs"
REPEATS = ("0", "1", "2")
KINDS = {kind: kind == "classes" for kind in ("values", "classes")}


def table_of(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows)


class Comparison:
    """Means over repeats on some tables, of the methods that have run on all of them.

    ``error``, ``log_loss`` and ``seconds`` have a row for each table and a column for each method,
    nan where a repeat has failed; ``best`` is the lowest error of a method's rivals.
    """

    def __init__(self, fits: pd.DataFrame, names: Sequence[str], repeats=REPEATS) -> None:
        self.fits = fits[fits["data"].isin(names) & fits["repeat"].isin(repeats)]
        counts = self.fits.groupby("method")["data"].count()
        whole = len(names) * len(repeats)
        self.methods = [one for one in METHODS if counts.get(one, 0) == whole]
        self.names = list(names)
        self.error, self.log_loss, self.seconds = map(self._means, ("error", "log_loss", "seconds"))
        self.rivals = [one for one in self.methods if one not in FAMILY]

    def _means(self, column: str) -> pd.DataFrame:
        means = self.fits.groupby(["data", "method"])[column].agg(
            lambda one: one.mean(skipna=False)
        )
        return means.unstack().reindex(index=self.names, columns=self.methods)

    def best(self, method: str) -> pd.Series:
        """Best rival of a method on each table."""
        return self.error[[one for one in self.rivals if one != method]].idxmin(axis=1)

    def ratio(self, method: str, column: str = "error") -> pd.Series:
        """Of a method on each table, over the best rival."""
        values, best = getattr(self, column), self.best(method)
        return values[method] / [values.loc[data, best[data]] for data in self.names]

    def gap(self, data: str, other: str) -> tuple[float, float]:
        """Paired difference of comtl and another method: mean and standard error."""
        own = self.fits[self.fits["data"] == data].pivot(
            index="repeat", columns="method", values="error"
        )
        gaps = own[OURS] - own[other]
        return gaps.mean(), gaps.std() / np.sqrt(len(gaps))


def geometric(values: pd.Series) -> float:
    return float(np.exp(np.log(values[values > 0]).mean()))


def digits(value: float) -> str:
    """Two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(one) + " |" for one in [heads, ["---"] * len(heads), *lines])


def standings(found: Comparison) -> str:
    """All methods on some tables, and what the ranks can tell apart."""
    field = [name for name in found.methods if name not in FAMILY or name == OURS]
    ranks = found.error[field].rank(axis=1, na_option="bottom")
    losses = bool(found.log_loss.notna().any(axis=None))
    failed = found.fits[found.fits["failure"] != ""].groupby("method")["data"].count()
    lines = []
    for name in found.methods:
        own, place = found.ratio(name), ["", ""]
        if name in field:
            first = (ranks[name] == ranks.min(axis=1)).sum()
            place = [str(first), f"{ranks[name].mean():.2f}"]
        loss = [f"{geometric(found.ratio(name, 'log_loss')):.3f}"] if losses else []
        size = [f"{geometric(own):.3f}", *loss, f"{own.max():.2f}"]
        spent = digits(geometric(found.seconds[name]))
        lines.append([name, *place, *size, spent, str(failed.get(name, ""))])
    heads = ["method", "lowest error", "mean rank", "error, ratio to the best rival"]
    heads += ["log loss, likewise"] * losses + ["largest ratio", "CPU s a fit", "failed"]
    text = markdown(heads, lines)
    if len(field) > 2 and len(found.names) > 1:
        count, chance = len(field), friedmanchisquare(*ranks.to_numpy().T).pvalue
        critical = studentized_range.ppf(0.95, count, np.inf) / np.sqrt(2)
        critical *= np.sqrt(count * (count + 1) / (6 * len(found.names)))
        text += (
            f"\n\n{len(found.names)} tables. Mean ranks differ significantly if they are "
            f"{critical:.2f} apart (Nemenyi, 5 %, {count} methods; Friedman's test of all of them: "
            f"p = {chance:.1g})."
        )
    return text


def table_by_table(found: Comparison) -> str:
    """comtl beside the best rival of each table, the worst table first."""
    if OURS not in found.methods:
        return f"`{OURS}` has not run on all of these tables."
    best, ratio = found.best(OURS), found.ratio(OURS).sort_values(ascending=False)
    gaps = {data: found.gap(data, best[data]) for data in ratio.index}
    behind = sum(less > error for less, error in gaps.values())
    lines = []
    for data, value in ratio.items():
        other, row = best[data], found.fits[found.fits["data"] == data].iloc[0]
        mark = " †" if TABLES[data].development else ""
        size = ", ".join(f"{row[one]:.0f}" for one in ("rows", "features", "tasks"))
        errors = [
            f"{found.error.loc[data, OURS]:.4f}",
            other,
            f"{found.error.loc[data, other]:.4f}",
        ]
        spent = ", ".join(digits(found.seconds.loc[data, one]) for one in (OURS, other))
        difference = "{:+.4f} ({:.4f})".format(*gaps[data])
        lines.append([data + mark, size, *errors, f"{value:.3f}", difference, spent])
    heads = ["table", "rows, columns, groups", "comtl", "best rival", "its error", "ratio"]
    return (
        f"`comtl` has a lower error than the best rival on {(ratio < 1).sum()} of {len(ratio)} "
        f"tables, and a higher one by more than one standard error of the paired difference on "
        f"{behind}. {_by_use(ratio)}\n\n"
        + markdown([*heads, "difference", "CPU s: comtl, rival"], lines)
    )


def _by_use(ratio: pd.Series) -> str:
    """The ratio on tables that were used while comtl was developed, and on the others."""
    used = ratio.index.map(lambda name: TABLES[name].development).to_numpy(bool)
    parts = {"used in development": ratio[used], "not used": ratio[~used]}
    texts = [f"{geometric(o):.3f} on the {len(o)} tables {k}" for k, o in parts.items() if len(o)]
    return f"Its ratio is {' and '.join(texts)}."


def drawn_table(fits: pd.DataFrame) -> str:
    """Errors on the drawn families, beside that of the truth."""
    found = Comparison(fits, [name for name in FAMILIES if name in set(fits["data"])])
    lines = [["*the truth*", *(f"{least(name):.3f}" for name in found.names)]]
    for name in found.methods:
        lines.append([name, *(f"{value:.3f}" for value in found.error[name])])
    return markdown(["method", *found.names], lines)


def first_split(fits: pd.DataFrame, method: str) -> str:
    """A method that has run on the first split only, and the others on the same tables."""
    ran = set(fits[(fits["method"] == method) & (fits["repeat"] == "0")]["data"]) & TABLES.keys()
    if not ran:
        return f"`{method}` has not run."
    parts = [
        f"`{method}` has run on the first split of {len(ran)} of the {len(TABLES)} real tables; "
        "here all methods are compared on that split of these tables."
    ]
    for kind, classes in KINDS.items():
        names = [data for data in TABLES if data in ran and TABLES[data].classes is classes]
        if names:
            parts += [f"{kind.capitalize()}:", standings(Comparison(fits, names, ("0",)))]
    return "\n\n".join(parts)


def failures(fits: pd.DataFrame) -> str:
    """Fits without a result, and why."""
    lost = fits[fits["failure"] != ""].groupby(["method", "failure"])["data"]
    lines = [f"- {one}, on {', '.join(data.unique())}: {why}" for (one, why), data in lost]
    return "\n".join(lines) or "None."


def measured(fits: pd.DataFrame, classes: bool) -> Comparison:
    """The comparison on the real tables of one kind."""
    ran = set(fits["data"])
    return Comparison(
        fits, [one for one in TABLES if TABLES[one].classes is classes and one in ran]
    )


def page(fits: pd.DataFrame) -> str:
    """The text of the page."""
    methods = []
    for name, method in METHODS.items():
        releases = fits.loc[fits["method"] == name, "version"].unique()
        if len(releases):
            what = (inspect.getdoc(method.fit) or "").splitlines()[0].rstrip(".")
            methods.append([name, what, ", ".join(releases)])
    kinds = {}
    for kind, classes in KINDS.items():
        found = measured(fits, classes)
        kinds[kind] = f"{standings(found)}\n\n{table_by_table(found)}" if found.names else "None."
    return (Path(__file__).with_suffix(".md").read_text(encoding="utf-8")).format(
        real=len(TABLES),
        families=len(FAMILIES),
        development=sum(one.development for one in TABLES.values()),
        number_values=sum(not one.classes for one in TABLES.values()),
        number_classes=sum(one.classes for one in TABLES.values()),
        limit=CPU_LIMIT,
        methods=markdown(["method", "what it is", "version"], methods),
        drawn=drawn_table(fits),
        autogluon=first_split(fits, "AutoGluon"),
        before=first_split(fits, BEFORE),
        failures=failures(fits),
        **kinds,
    )


def plots(fits: pd.DataFrame, folder: Path) -> None:
    """Error against CPU time, and the ratio to the best rival table by table."""
    from matplotlib.figure import Figure

    found = {kind: measured(fits, classes) for kind, classes in KINDS.items()}
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    for ax, (kind, one) in zip(figure.subplots(1, 2), found.items(), strict=True):
        for name in one.methods:
            place = geometric(one.seconds[name]), geometric(one.ratio(name))
            ax.plot(*place, "o", color="C3" if name in FAMILY else "C0")
            ax.annotate(name, place, textcoords="offset points", xytext=(5, 4), fontsize=8)
        ax.set(xscale="log", title=kind, xlabel="CPU seconds a fit (geometric mean)")
        ax.set_ylabel("error, ratio to the best rival (geometric mean)")
        ax.margins(0.2)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    figure.savefig(folder / "benchmark_time.png", dpi=110)
    points = []
    for color, one in zip(("C0", "C1"), found.values(), strict=True):
        for data, ratio in one.ratio(OURS).items() if OURS in one.methods else ():
            other = one.best(OURS)[data]
            points.append(
                (ratio, one.gap(data, other)[1] / one.error.loc[data, other], data, color)
            )
    points.sort()
    figure = Figure(figsize=(6.4, 1.6 + 0.16 * len(points)), layout="constrained")
    ax = figure.subplots()
    for height, (ratio, error, _, color) in enumerate(points):
        ax.errorbar(ratio, height, xerr=error, fmt="o", ms=3, lw=1, color=color)
    ax.axvline(1.0, color="0.6", lw=1)
    ax.set_yticks(range(len(points)), [one[2] for one in points], fontsize=7)
    ax.set(xscale="log", xlabel="error of comtl over that of the best rival (orange: classes)")
    ax.margins(y=0.01)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("{x:g}")
    figure.savefig(folder / "benchmark_tables.png", dpi=110)


def write(rows: Sequence[Row], docs: Path = DOCS) -> None:
    """Write the page and its plots."""
    fits = table_of(rows)
    (docs / "images").mkdir(exist_ok=True)
    plots(fits, docs / "images")
    write_atomically(docs / "benchmark.md", page(fits).encode())
