"""The stack: members on folds, their weights, level by level."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from ..arrays import to_numpy
from ..arrays.blocks import single_blas
from ..engine.progress import SILENT, Checkpoint, FitProgress, logger, steps_hidden
from ..losses import Loss
from ..phrases import warn_caller
from ..rows.reading import encode_tasks
from ..saving.registry import saved
from .blending import MIN_GAIN_SE, Blend, blend, mean_and_se
from .default_members import reference_member
from .members import Fitted, Member, MemberRows, Predicted, Shared
from .stack_rows import StackRows

Part = TypeVar("Part", "HeldOut", np.ndarray)


def fit_stack(rows: StackRows, members: Sequence[Member], loss: Loss, run: FoldRun) -> Stack | None:
    """Fit members on folds, level by level, as long as held-out losses fall by more than noise."""
    bottom, *above = by_level(members)
    names = [one.name for one in bottom]
    job = partial(fit_fold, rows, bottom, bool(above))
    optional = "hinges" if len(rows.hinges.columns) else ""
    parts = cross_fit(job, rows, names, run, optional)
    if optional and len(parts) < len(rows.splits):
        return None  # The user would not wait for hinges.
    held = HeldOut.joined(parts)
    shares, shift = blend(loss, held.scores, held.y, held.weights, reference_member(names))
    sizes = [len(one.y) for one in parts]
    stack = Stack(rows, tuple(bottom), held, sizes, (Blend.of(names, shares, shift),), loss)
    for level in above if stack.disjoint else []:
        fresh = stack.with_level(level, run)
        if not fresh.beats(stack):
            break
        stack = fresh
    return stack


def by_level(members: Sequence[Member]) -> list[list[Member]]:
    """Members of each level, from the lowest."""
    levels = sorted({one.level for one in members})
    return [[one for one in members if one.level == level] for level in levels]


@dataclass(frozen=True, eq=False)
class Stack:
    """Members, what they predict of the held-out targets of folds, and their blends by level."""

    rows: StackRows
    members: tuple[Member, ...]
    held: HeldOut
    sizes: list[int]  # targets of each fold
    blends: tuple[Blend, ...]
    loss: Loss

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each member that has one."""
        return self.blends[-1].weights

    @property
    def complete(self) -> bool:
        """Whether all folds were held out, rather than some, interrupted by the user."""
        return len(self.sizes) == len(self.rows.splits)

    @property
    def disjoint(self) -> bool:
        """Whether no row is held out twice, nor all at once, as a level above needs it."""
        size = _num_samples(self.rows.given.X)
        times = [np.bincount(np.arange(size)[test], minlength=size) for _, test in self.rows.splits]
        return self.complete and len(times) > 1 and int(np.sum(times, axis=0).max()) <= 1

    @property
    def fold(self) -> np.ndarray:
        """Fold of each held-out target."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def predicted(self) -> Predicted:
        """What this stack predicts of the held-out targets."""
        return self.blends[-1](self.held.predicted([one.name for one in self.members]))

    @property
    def score(self) -> np.ndarray:
        """Score of each held-out target."""
        return self.predicted.score

    @cached_property
    def losses(self) -> np.ndarray:
        """Loss of each."""
        return self.loss.value(self.held.y, self.score)

    def beats(self, other: Stack) -> bool:
        """Whether held-out losses are lower than those of another by more than noise."""
        gain, error = mean_and_se(other.losses - self.losses, self.held.weights)
        return gain > MIN_GAIN_SE * error

    def with_level(self, members: Sequence[Member], run: FoldRun) -> Stack:
        """The stack with members above it, drawn to the stack without them."""
        names = [one.name for one in members]
        job = partial(fit_fold_above, self, members)
        parts = cross_fit(job, self.rows, names, run, "next level")
        if len(parts) < len(self.sizes):
            return self
        held, above, below = self.held, np.concatenate(parts), self.blends[-1]
        scores = np.column_stack([self.score, above])
        (rest, *shares), shift = blend(self.loss, scores, held.y, held.weights, 0)
        shares = [*(rest * share for share in below.weights.values()), *shares]
        found = Blend.of([*below.weights, *names], shares, shift + rest * below.shift)
        held = replace(held, scores=np.concatenate([held.scores, above], axis=1))
        blends = (*self.blends, found)
        return replace(self, members=(*self.members, *members), held=held, blends=blends)

    def held_out(self) -> tuple[MemberRows, Predicted]:
        """Targets of all folds with their rows, and what this stack predicts of them."""
        held = self.held
        X = [self.rows.read(test).X for _, test in self.rows.splits]
        starts = np.cumsum([0, *(one.shape[0] for one in X)])
        whole = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        row, tasks = held.row + starts[self.fold], self.rows.units.tasks
        rows = MemberRows(whole, row, held.task, held.label, tasks, held.y, held.weights)
        return rows, self.predicted


@saved
@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores (n, m) of the targets that folds held out, by members that did not see them."""

    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    row: np.ndarray  # of its fold
    task: np.ndarray  # of all tasks
    label: np.ndarray
    column: np.ndarray | None = None  # of the tables
    tables: dict[int, np.ndarray] | None = None  # for levels above: coefficients of linear members

    def predicted(self, names: Sequence[str]) -> dict[str, Predicted]:
        """What each member predicts, by name."""
        tables = self.tables or {}
        parts = [
            Predicted(score, self.column, partial(np.asarray, tables[number]))
            if number in tables
            else Predicted(score)
            for number, score in enumerate(self.scores.T)
        ]
        return dict(zip(names, parts, strict=False))

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """Targets of all folds, and the tables of their fits one after the other."""
        names = [one.name for one in fields(cls)[:6]]
        whole: dict[str, Any] = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
        tables = [one.tables for one in parts if one.tables]
        if not tables:
            return cls(**whole)
        joined = {number: np.concatenate([one[number] for one in tables]) for number in tables[0]}
        starts = np.cumsum([0, *(len(next(iter(one.values()))) for one in tables)])
        columns = [one.column + start for one, start in zip(parts, starts, strict=False)]
        return cls(**whole, column=np.concatenate(columns), tables=joined)


@dataclass(frozen=True, eq=False)
class FoldRun:
    """How folds are fitted: jobs side by side, what was found before, and who looks on."""

    n_jobs: int | None = None
    kept: Checkpoint = field(default_factory=lambda: Checkpoint(None, ""))
    watch: FitProgress = SILENT


def cross_fit(
    job: Callable[[int], Part], rows: StackRows, names: list[str], run: FoldRun, optional: str = ""
) -> list[Part]:
    """Run a job for every fold that is not known yet; interrupted, return those that are done.

    ``optional`` says what is left out then; with none done, what is not optional raises.
    """
    # A checkpoint of other folds, hinges or members is none of this fit.
    content = rows.hinges.columns, rows.hinges.knots, *names
    keys = [joblib.hash((content, split)) for split in rows.splits]
    known = {key: run.kept.get(key) for key in keys if run.kept.get(key) is not None}
    missing = [number for number, key in enumerate(keys) if key not in known]
    jobs = (delayed(job)(number) for number in missing)
    try:
        with rows.given.side_by_side(run.n_jobs) as count:
            parts = zip(missing, Parallel(count, return_as="generator")(jobs), strict=True)
            last = missing[-1:]
            for number, part in run.watch.iterate(parts, "fold", more=lambda one: [one[0]] != last):
                known[keys[number]] = part
                run.kept.save(keys[number], part)
                logger.info("%d of %d folds done", len(known), len(keys))
    except KeyboardInterrupt:
        if not run.watch.is_root or not (known or optional):
            raise
        when = f"after {len(known)} of {len(keys)} folds, which decide the weights"
        if optional:
            when = f"among the folds of the {optional}, which are left out"
        text = "The members are now fitted to all rows; interrupt again to give up."
        warn_caller(f"Interrupted {when}. {text}", ConvergenceWarning)
    return [known[key] for key in keys if key in known]


def fit_fold(rows: StackRows, members: Sequence[Member], above: bool, number: int) -> HeldOut:
    """Fit members to one part of the rows and score the other."""
    train, test = rows.splits[number]
    shared = Shared(rows.read(train), members)
    targets = MemberRows.of(rows.read(test), shared.data.tasks, shared.columns)
    fitted = fit_all(members, shared.rows(), shared, None)
    predicted = [one.score(targets, None) for one in fitted]
    tables = {n: to_numpy(one.table()) for n, one in enumerate(predicted) if above and one.table}
    return HeldOut(
        scores_of(predicted),
        to_numpy(targets.y),
        to_numpy(targets.weights),
        np.arange(len(targets.task)) if targets.row is None else targets.row,
        encode_tasks(targets.tasks, rows.units.tasks)[targets.task],
        targets.label,
        predicted[min(tables)].column if tables else None,
        tables,
    )


def fit_fold_above(stack: Stack, members: Sequence[Member], number: int) -> np.ndarray:
    """Fit members to what other folds held out, and score what one did."""
    shared = Shared(stack.rows.read(stack.rows.splits[number][0]), members)
    (rows, base), held = stack.held_out(), stack.fold == number
    fitted = fit_all(members, rows.take(~held), shared, base.take(~held))
    return scores_of([one.score(rows.take(held), base.take(held)) for one in fitted])


def fit_all(
    members: Sequence[Member], rows: MemberRows, shared: Shared, base: Predicted | None
) -> list[Fitted]:
    """Fit members to the same targets."""
    with warnings.catch_warnings(), single_blas():
        # A member need not be at its top to be of use; what it is worth is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [_fit(member, rows, shared, base) for member in members]


def _fit(member: Member, rows: MemberRows, shared: Shared, base: Predicted | None) -> Fitted:
    with steps_hidden():
        fitted = member.fit(rows, shared, base)
    logger.info("member fitted: %s", member.name)
    return fitted


def scores_of(predicted: Sequence[Predicted]) -> np.ndarray:
    """Scores of all members, (n, m): one number a member and target, on the host."""
    return np.stack([to_numpy(one.score) for one in predicted], axis=1)
