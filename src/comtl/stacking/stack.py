"""The stack: members on folds, their weights, level by level."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from ..arrays import to_numpy
from ..arrays.blocks import single_blas
from ..engine.progress import SILENT, Checkpoint, FitProgress, logger
from ..losses import Loss
from ..phrases import warn_caller
from ..rows.reading import encode_tasks
from ..saving.registry import saved
from .blending import Blend, blend, exceeds_noise
from .default_members import reference_member
from .members import Fitted, Member, MemberRows, Predicted, Shared
from .stack_rows import StackRows


def fit_stack(rows: StackRows, members: Sequence[Member], loss: Loss, run: FoldRun) -> Stack:
    """Fit members on folds, level by level.

    A level above the first is kept only if held-out losses fall by more than noise.
    """
    bottom, *above = by_level(members)
    names = [one.name for one in bottom]
    job = partial(fit_fold, rows, bottom, bool(above))
    parts = cross_fit(job, rows, names, run, needed=not len(rows.hinges.columns))
    held = HeldOut.joined(parts)
    found = blend(loss, held.scores, held.y, held.weights, reference_member(names))
    stack = Stack(rows, tuple(bottom), parts, (Blend.of(names, *found),), loss)
    for level in above if stack.disjoint else []:
        fresh = unless_interrupted(partial(stack.with_level, level, run), run.watch, "next level")
        if fresh is None or not fresh.beats(stack):
            break
        stack = fresh
    return stack


def by_level(members: Sequence[Member]) -> list[list[Member]]:
    """Members of each level, from the lowest."""
    levels = sorted({one.level for one in members})
    return [[one for one in members if one.level == level] for level in levels]


@dataclass(frozen=True, eq=False)
class Stack:
    """Members, their blend after each level, and what they predict of each fold's held-out rows."""

    rows: StackRows
    members: tuple[Member, ...]
    parts: list[HeldOut]
    blends: tuple[Blend, ...]
    loss: Loss

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each member that has one."""
        return self.blends[-1].weights

    @property
    def complete(self) -> bool:
        """Whether all folds were held out, rather than cut short by the user."""
        return len(self.parts) == len(self.rows.splits)

    @property
    def disjoint(self) -> bool:
        """Whether no row is held out twice, nor all at once, so that a level above may be told."""
        size = _num_samples(self.rows.given.X)
        times = [np.bincount(np.arange(size)[test], minlength=size) for _, test in self.rows.splits]
        return self.complete and len(times) > 1 and int(np.sum(times, axis=0).max()) <= 1

    @cached_property
    def held(self) -> HeldOut:
        """Targets of all folds."""
        return HeldOut.joined(self.parts)

    @cached_property
    def score(self) -> np.ndarray:
        """Score of each held-out target."""
        return self._predicted(self.held).score

    @cached_property
    def losses(self) -> np.ndarray:
        """Loss of each."""
        return self.loss.value(self.held.y, self.score)

    def beats(self, other: Stack) -> bool:
        """Whether held-out losses are lower than those of another by more than noise."""
        return exceeds_noise(other.losses - self.losses, self.held.weights)

    def _predicted(self, part: HeldOut) -> Predicted:
        return self.blends[-1](part.predicted([one.name for one in self.members]))

    def with_level(self, members: Sequence[Member], run: FoldRun) -> Stack:
        """The stack with members above it, drawn to the stack without them."""
        names = [one.name for one in members]
        job = partial(fit_fold_above, self, members)
        above = cross_fit(job, self.rows, names, run, needed=False)
        parts = [
            replace(one, scores=np.concatenate([one.scores, new.scores], axis=1))
            for one, new in zip(self.parts, above, strict=True)
        ]
        scores = np.column_stack([self.score, HeldOut.joined(above).scores])
        (rest, *shares), shift = blend(self.loss, scores, self.held.y, self.held.weights, 0)
        found = Blend.of(names, np.array(shares), shift + rest * self.blends[-1].shift)
        kept = {name: rest * share for name, share in self.weights.items() if rest > 0.0}
        blends = (*self.blends, Blend(kept | found.weights, found.shift))
        return replace(self, members=(*self.members, *members), parts=parts, blends=blends)

    def held_out(self, numbers: Sequence[int]) -> tuple[MemberRows, Predicted]:
        """Targets that some folds held out, and what this stack predicts of them."""
        parts = [self.parts[number] for number in numbers]
        X = [self.rows.read(self.rows.splits[number][1]).X for number in numbers]
        starts = np.cumsum([0, *(one.shape[0] for one in X)])
        held = HeldOut.joined(parts)
        row = np.concatenate([one.row + start for one, start in zip(parts, starts, strict=False)])
        whole = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        tasks = self.rows.units.tasks
        rows = MemberRows(whole, row, held.task, held.label, tasks, held.y, held.weights)
        return rows, joined_predictions([self._predicted(part) for part in parts])


def fit_fold_above(stack: Stack, members: Sequence[Member], number: int) -> HeldOut:
    """Fit members to what other folds held out, and score what one did."""
    others = [other for other in range(len(stack.parts)) if other != number]
    shared = Shared(stack.rows.read(stack.rows.splits[number][0]), members)
    rows, base = stack.held_out(others)
    fitted = fit_all(members, rows, shared, base)
    asked = stack.held_out([number])
    return replace(stack.parts[number], scores=scores_of([one.score(*asked) for one in fitted]))


def joined_predictions(parts: Sequence[Predicted]) -> Predicted:
    """Predictions of several folds, each with coefficients of its own."""
    score = np.concatenate([one.score for one in parts])
    tables = [one.table() for one in parts if one.table]
    if len(tables) < len(parts):
        return Predicted(score)
    starts = np.cumsum([0, *map(len, tables)])
    column = np.concatenate([one.column + start for one, start in zip(parts, starts, strict=False)])
    return Predicted(score, column, partial(np.concatenate, tables))


@saved
@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores (n, m) of the targets that a fold held out, by members that did not see them.

    ``row`` numbers the rows of the fold, ``task`` all tasks. For members above there are
    ``tables`` (m, columns, features), the coefficients of the fits, and each target's ``column``.
    """

    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    row: np.ndarray
    task: np.ndarray
    label: np.ndarray
    column: np.ndarray | None = None
    tables: np.ndarray | None = None

    def predicted(self, names: Sequence[str]) -> dict[str, Predicted]:
        """What each member predicts, by name."""
        tables = () if self.tables is None else self.tables
        makers = [partial(np.asarray, table) for table in tables]
        found = zip_longest(names, self.scores.T, makers)
        return {name: Predicted(score, self.column, make) for name, score, make in found}

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """Targets of all folds, without what members above need."""
        names = [one.name for one in fields(cls)[:6]]
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class FoldRun:
    """How folds are fitted: jobs side by side, what was found before, and who looks on."""

    n_jobs: int | None = None
    kept: Checkpoint = field(default_factory=lambda: Checkpoint(None, ""))
    watch: FitProgress = SILENT


def cross_fit(
    job: Callable[[int], HeldOut], rows: StackRows, names: list[str], run: FoldRun, *, needed: bool
) -> list[HeldOut]:
    """Run a job for every fold that is not known yet.

    Interrupted, those that are done serve if the outcome is ``needed``.
    """
    kept, told = run.kept, (rows.hinges.columns, rows.hinges.knots, *names)
    # A checkpoint of other folds, hinges or members is none of this fit.
    keys = [joblib.hash((told, split)) for split in rows.splits]
    known = {key: kept.get(key) for key in keys if kept.get(key) is not None}
    missing = [number for number, key in enumerate(keys) if key not in known]
    jobs = (delayed(job)(number) for number in missing)
    try:
        with rows.given.side_by_side(run.n_jobs) as count:
            found = zip(missing, Parallel(count, return_as="generator")(jobs), strict=True)
            last = missing[-1:]
            for number, part in run.watch.iterate(found, "fold", more=lambda one: [one[0]] != last):
                known[keys[number]] = part
                kept.save(keys[number], part)
                logger.info("%d of %d folds done", len(known), len(keys))
    except KeyboardInterrupt:
        if not known or not run.watch.is_root or not needed:
            raise
        warn_interrupted(f"after {len(known)} of {len(keys)} folds, which decide the weights")
    return [known[key] for key in keys if key in known]


def fit_fold(rows: StackRows, members: Sequence[Member], tables: bool, number: int) -> HeldOut:
    """Fit members to one part of the rows and score the other."""
    train, test = rows.splits[number]
    shared = Shared(rows.read(train), members)
    asked = MemberRows.of(rows.read(test), shared.data.tasks, shared.columns)
    fitted = fit_all(members, shared.rows(), shared, None)
    said = [one.score(asked, None) for one in fitted]
    return HeldOut(
        scores_of(said),
        to_numpy(asked.y),
        to_numpy(asked.weights),
        np.arange(len(asked.task)) if asked.row is None else asked.row,
        encode_tasks(asked.tasks, rows.units.tasks)[asked.task],
        asked.label,
        said[0].column if tables else None,
        np.stack([to_numpy(one.table()) for one in said if one.table]) if tables else None,
    )


def fit_all(
    members: Sequence[Member], rows: MemberRows, shared: Shared, base: Predicted | None
) -> list[Fitted]:
    """Fit members to the same targets."""
    with warnings.catch_warnings(), single_blas():
        # A member need not be at its top to be of use; what it is worth is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [member.fit(rows, shared, base) for member in members]


def scores_of(said: Sequence[Predicted]) -> np.ndarray:
    """Scores of all members, (n, m): one number a member and target, on the host."""
    return np.stack([to_numpy(one.score) for one in said], axis=1)


def unless_interrupted(make: Callable[[], Any], watch: FitProgress, what: str) -> Any:
    """Return what is made, or None with a warning if the user would not wait for it."""
    try:
        return make()
    except KeyboardInterrupt:
        if not watch.is_root:
            raise
        warn_interrupted(f"among the folds of the {what}, which are left out")
        return None


def warn_interrupted(when: str) -> None:
    """Say what becomes of a fit that was interrupted."""
    text = "The members are now fitted to all rows; interrupt again to give up."
    warn_caller(f"Interrupted {when}. {text}", ConvergenceWarning)
