"""The stack: members on folds, their weights, level by level."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
from ..linear import OutputColumns
from ..losses import Loss
from ..phrases import warn_caller
from ..rows.folds import Split
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from ..saving.registry import saved
from .blending import blend, exceeds_noise
from .default_members import reference_member
from .members import Fitted, Member, MemberRows, Predicted, Shape, Shared
from .stack_rows import StackRows


def fit_stack(
    rows: StackRows,
    shape: Shape,
    members: Sequence[Member],
    splits: Sequence[Split],
    loss: Loss,
    run: FoldRun,
) -> Stack:
    """Fit members on folds, level by level.

    A level above the first is kept only if held-out losses fall by more than noise.
    """
    suited = [one for one in members if one.suits(shape)]
    bottom, *above = (
        [one for one in suited if one.level == level]
        for level in sorted({one.level for one in suited})
    )
    names = [one.name for one in bottom]
    job = partial(fit_fold, rows, bottom, splits, bool(above))
    parts = cross_fit(job, splits, rows, names, run, needed=not len(rows.hinges.columns))
    held = HeldOut.joined(parts)
    found = blend(loss, held.scores, held.y, held.weights, reference_member(names))
    stack = Stack(rows, splits, tuple(bottom), parts, (Blend.of(names, *found),), loss)
    for level in above if stack.disjoint else []:
        fresh = unless_interrupted(partial(stack.with_level, level, run), run.watch, "next level")
        if fresh is None or not exceeds_noise(stack.losses - fresh.losses, held.weights):
            break
        stack = fresh
    return stack


@saved
@dataclass(frozen=True, eq=False)
class Blend:
    """Weighted sum of what members predict."""

    weights: dict[str, float]
    shift: float

    @classmethod
    def of(cls, names: Sequence[str], shares: np.ndarray, shift: float) -> Blend:
        """Blend of the members that have a weight."""
        named = zip(names, shares.tolist(), strict=True)
        return cls({name: share for name, share in named if share > 0.0}, shift)

    def __call__(self, said: Mapping[str, Predicted]) -> Predicted:
        """Score, and coefficients of the linear members, of what members predict."""
        chosen = [(share, said[name]) for name, share in self.weights.items()]
        blank = next((0.0 * one.score for one in said.values()), np.zeros(1))
        score = sum((share * one.score for share, one in chosen), blank + self.shift)
        linear = [(share, one) for share, one in chosen if one.table is not None]
        if not linear:
            return Predicted(score)

        def table() -> np.ndarray:
            return np.sum([share * one.table() for share, one in linear if one.table], axis=0)

        return Predicted(score, linear[0][1].column, table)


@dataclass(frozen=True, eq=False)
class Stack:
    """Members, their blend after each level, and what they predict of each fold's held-out rows."""

    rows: StackRows
    splits: Sequence[Split]
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
        return len(self.parts) == len(self.splits)

    @property
    def disjoint(self) -> bool:
        """Whether no row is held out twice, nor all at once, so that a level above may be told."""
        size = _num_samples(self.rows.given.X)
        times = [np.bincount(np.arange(size)[test], minlength=size) for _, test in self.splits]
        return self.complete and len(times) > 1 and int(np.sum(times, axis=0).max()) <= 1

    @cached_property
    def held(self) -> HeldOut:
        """Targets of all folds."""
        return HeldOut.joined(self.parts)

    @cached_property
    def score(self) -> np.ndarray:
        """Score of each held-out target."""
        return np.concatenate([self._predicted(part).score for part in self.parts])

    @cached_property
    def losses(self) -> np.ndarray:
        """Loss of each."""
        return self.loss.value(self.held.y, self.score)

    def _predicted(self, part: HeldOut) -> Predicted:
        return self.blends[-1](part.predicted([one.name for one in self.members]))

    def with_level(self, members: Sequence[Member], run: FoldRun) -> Stack:
        """The stack with members above it, drawn to the stack without them."""
        names = [one.name for one in members]
        job = partial(fit_fold_above, self, members)
        above = cross_fit(job, self.splits, self.rows, names, run, needed=False)
        parts = [one.beside(new.scores) for one, new in zip(self.parts, above, strict=True)]
        scores = np.column_stack([self.score, HeldOut.joined(above).scores])
        (rest, *shares), shift = blend(self.loss, scores, self.held.y, self.held.weights, 0)
        found = Blend.of(names, np.array(shares), shift + rest * self.blends[-1].shift)
        kept = {name: rest * share for name, share in self.weights.items() if rest > 0.0}
        found = Blend(kept | found.weights, found.shift)
        return replace(
            self, members=(*self.members, *members), parts=parts, blends=(*self.blends, found)
        )

    def held_out(self, numbers: Sequence[int]) -> tuple[MemberRows, Predicted]:
        """Targets that some folds held out, and what this stack predicts of them."""
        parts = [self.parts[number] for number in numbers]
        X = [self.rows.read(self.splits[number][1]).X for number in numbers]
        starts = np.cumsum([0, *(one.shape[0] for one in X)])
        held = HeldOut.joined(parts)
        row = np.concatenate([one.row + start for one, start in zip(parts, starts, strict=False)])
        whole = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        tasks = self.rows.units.tasks
        rows = MemberRows(whole, row, held.task, held.label, tasks, held.y, held.weights)
        return rows, joined_predictions([self._predicted(part) for part in parts])

    def fit_members(self, data: Observations) -> FittedStack:
        """Members that have a weight, fitted to all rows."""
        used = {name for one in self.blends for name in one.weights}
        fitted: list[dict[str, Any]] = []
        for level in sorted({one.level for one in self.members}):
            own = [one for one in self.members if one.level == level and one.name in used]
            shared = Shared(lambda: data, own)
            if not fitted:
                found = fit_all(own, shared.rows(), shared, None)
            else:
                below = replace(self, blends=self.blends[: len(fitted)])
                rows, base = below.held_out(range(len(self.parts)))
                found = fit_all(own, rows, shared, base)
            fitted.append({one.name: it for one, it in zip(own, found, strict=True)})
        return FittedStack(tuple(fitted), self.blends)


def fit_fold_above(stack: Stack, members: Sequence[Member], number: int) -> HeldOut:
    """Fit members to what other folds held out, and score what one did."""
    others = [other for other in range(len(stack.splits)) if other != number]
    shared = Shared(partial(stack.rows.read, stack.splits[number][0]), members)
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
class FittedStack:
    """Members of each level, fitted to all rows, and their blend after it."""

    members: tuple[dict[str, Any], ...]
    blends: tuple[Blend, ...]

    def score(self, rows: MemberRows) -> Predicted:
        """Scores of targets."""
        return self.blends[-1](self._predicted(rows))

    def nonlinear_score(self, rows: MemberRows) -> np.ndarray:
        """The part of the scores that members without coefficients have."""
        said = self._predicted(rows).items()
        weights = self.blends[-1].weights
        parts = (weights.get(name, 0.0) * one.score for name, one in said if not one.table)
        return np.zeros(len(rows.task)) + sum(parts)

    def _predicted(self, rows: MemberRows) -> dict[str, Predicted]:
        said: dict[str, Predicted] = {}
        base = None
        for members, found in zip(self.members, self.blends, strict=True):
            said |= {name: one.score(rows, base) for name, one in members.items()}
            base = found(said)
        return said


@saved
@dataclass(frozen=True, eq=False)
class NonlinearPart:
    """What members without coefficients add to the scores of a linear model.

    ``scale`` has the unit of each task's target.
    """

    stack: FittedStack
    scale: np.ndarray

    def scores(
        self, X: Any, codes: np.ndarray | None, tasks: np.ndarray, columns: OutputColumns
    ) -> np.ndarray:
        """Part of the scores of rows for columns of weights, or of every row for all tasks."""
        codes = np.tile(np.arange(len(tasks)), (X.shape[0], 1)) if codes is None else codes
        task, label = np.argwhere(columns.places >= 0).T
        place = np.zeros(len(task), dtype=np.intp)
        place[columns.places[task, label]] = np.arange(len(task))
        own = place[codes.ravel()]
        # Last of the places is a task never seen, which has the mean unit.
        task, label = np.where(task < len(tasks), task, -1)[own], label[own]
        row = np.repeat(np.arange(len(codes)), codes[:1].size)
        none = np.zeros(len(task))
        rows = MemberRows(X, row, task, label, tasks, none, none)
        scale = np.append(self.scale, self.scale.mean())[task]
        return (scale * self.stack.nonlinear_score(rows)).reshape(codes.shape)


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
        tables = [] if self.tables is None else list(self.tables)
        makers = [partial(np.asarray, table) for table in tables]
        scores = dict(zip(names, self.scores.T, strict=True))
        return {
            name: Predicted(score, self.column, make)
            for (name, score), make in zip_longest(scores.items(), makers)
        }

    def beside(self, scores: np.ndarray) -> HeldOut:
        """The same with scores of further members."""
        return replace(self, scores=np.concatenate([self.scores, scores], axis=1))

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
    job: Callable[[int], HeldOut],
    splits: Sequence[Split],
    rows: StackRows,
    names: Sequence[str],
    run: FoldRun,
    *,
    needed: bool,
) -> list[HeldOut]:
    """Run a job for every fold that is not known yet.

    Interrupted, those that are done serve if the outcome is ``needed``.
    """
    kept, told = run.kept, (rows.hinges.columns, rows.hinges.knots, *names)
    # A checkpoint of other folds, hinges or members is none of this fit.
    keys = [joblib.hash((told, split)) for split in splits]
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
                logger.info("%d of %d folds done", len(known), len(splits))
    except KeyboardInterrupt:
        if not known or not run.watch.is_root or not needed:
            raise
        warn_caller(
            f"Interrupted after {len(known)} of {len(splits)} folds, which decide the weights. "
            "The members are now fitted to all rows; interrupt again to give up.",
            ConvergenceWarning,
        )
    return [known[key] for key in keys if key in known]


def fit_fold(
    rows: StackRows, members: Sequence[Member], splits: Sequence[Split], tables: bool, number: int
) -> HeldOut:
    """Fit members to one part of the rows and score the other."""
    train, test = splits[number]
    shared = Shared(partial(rows.read, train), members)
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
        warn_caller(
            f"Interrupted among the folds of the {what}, which are left out. The members are now "
            "fitted to all rows; interrupt again to give up.",
            ConvergenceWarning,
        )
        return None
