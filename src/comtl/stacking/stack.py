"""The stack: members on folds and their weights, and trees above them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from ..arrays import to_numpy
from ..arrays.blocks import single_blas
from ..engine.progress import SILENT, Checkpoint, FitProgress, logger, steps_hidden
from ..losses import Loss
from ..phrases import warn_caller
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from ..saving.registry import saved
from .blending import MIN_GAIN_SE, Blend, blend, mean_and_se, row_counts
from .default_members import reference_member
from .members import Fitted, Member, MemberRows, Predicted, Shared
from .stack_rows import StackRows
from .trees import TreeMember

RACE_SE = 2.0
"""Standard errors behind the best on one fold beyond which a member is hopeless."""

Part = TypeVar("Part", "HeldOut", list[np.ndarray])


def fit_stack(
    rows: StackRows,
    data: Observations,
    members: Sequence[Member],
    trees: Sequence[TreeMember],
    loss: Loss,
    run: FoldRun,
) -> Stack:
    """Fit members to folds; take hinges, then trees, if held-out losses fall.

    The first fold is a race: members far behind there are not fitted to the others.
    """
    shared = Shared(data, members, rows.n_hinges)
    whole = fit_all([one for one in members if one.warm], shared, {})
    parts: list[HeldOut] = []
    for folds in ([0], list(range(1, len(rows.splits)))):
        job = partial(fit_fold, rows, members, whole, bool(trees))
        parts += cross_fit(job, rows, folds, [one.name for one in members], run)
        if folds == [0]:
            chosen = near_best(loss, parts[0], reference_member([one.name for one in members]))
            members, parts = [members[place] for place in chosen], [parts[0].narrowed(chosen)]
    sizes = [len(one.y) for one in parts]
    every = Stack(rows, shared, whole, tuple(members), HeldOut.joined(parts), sizes, (), (), loss)
    stack = every.straight.blended()
    if any(one.hinged for one in members):
        fresh = every.blended()
        stack = fresh if fresh.beats(stack) else stack
    if trees and stack.disjoint:
        fresh = stack.with_trees(trees, run)
        stack = fresh if fresh.beats(stack) else stack
    return stack


def near_best(loss: Loss, held: HeldOut, reference: int | None) -> list[int]:
    """Members that one fold does not tell from the best, and those that have a weight there."""
    losses = np.stack([loss.value(held.y, score) for score in held.scores.T])
    best = losses[int(np.argmin(losses @ held.weights))]
    gaps = [mean_and_se(one - best, held.weights) for one in losses]
    shares, _ = blend(loss, held.scores, held.y, held.weights)
    return [
        place
        for place, (gap, error) in enumerate(gaps)
        if gap <= RACE_SE * error or shares[place] > 0.0 or place == reference
    ]


@dataclass(frozen=True, eq=False)
class Stack:
    """Members, what they predict of the held-out targets of folds, and their blends by level."""

    rows: StackRows
    shared: Shared  # what fits to all rows share
    whole: dict[str, Fitted]  # members that are fitted to all rows already, by name
    members: tuple[Member, ...]
    held: HeldOut
    sizes: list[int]  # targets of each fold
    blends: tuple[Blend, ...]
    trees: tuple[TreeMember, ...]
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
        names = [one.name for one in self.members] + [one.name for one in self.trees]
        return self.blends[-1](self.held.predicted(names))

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

    @property
    def straight(self) -> Stack:
        """The members without coefficients of hinges, and rows without these."""
        chosen = [number for number, one in enumerate(self.members) if not one.hinged]
        members = tuple(self.members[number] for number in chosen)
        held = self.held.narrowed(chosen, self.rows.n_hinges)
        return replace(self, rows=self.rows.straight, members=members, held=held)

    def blended(self) -> Stack:
        """The stack of the members."""
        names, held = [one.name for one in self.members], self.held
        base = reference_member(names)
        shares, shift = blend(self.loss, held.scores, held.y, held.weights, base)
        return replace(self, blends=(Blend.of(names, shares, shift),))

    def with_trees(self, trees: Sequence[TreeMember], run: FoldRun) -> Stack:
        """The stack with trees above it, of the number that suits held-out targets best.

        Where no trees have a part in the best blend of the first fold, there are none.
        """
        held, below, parts = self.held, self.blends[-1], []
        for folds in ([0], list(range(1, len(self.sizes)))):
            job, names = partial(fit_trees, self, trees), [one.name for one in trees]
            parts += cross_fit(job, self.rows, folds, names, run, "trees")
            if len(parts) <= folds[-1]:
                return self
            known = self.fold <= folds[-1]
            y, weights = held.y[known], held.weights[known]
            paths = [_joined([part[number] for part in parts]) for number in range(len(trees))]
            best = [
                int(np.argmin([weights @ self.loss.value(y, score) for score in path.T]))
                for path in paths
            ]
            stages = [path[:, number] for path, number in zip(paths, best, strict=True)]
            columns = np.column_stack([self.score[known], *stages])
            base = 0 if known.all() else None
            (rest, *shares), shift = blend(self.loss, columns, y, weights, base)
            if not any(shares):
                return self
        # Trees above a score add to it: what it has of their weight is the stack's below.
        above = [one.above_score for one in trees]
        rest += float(np.dot(shares, above))
        columns -= np.append(False, above) * self.score[:, None]
        shares = [*(rest * share for share in below.weights.values()), *shares]
        names = [*below.weights, *(one.name for one in trees)]
        found = Blend.of(names, shares, shift + rest * below.shift)
        held = replace(held, scores=np.concatenate([held.scores, columns[:, 1:]], axis=1))
        grown = tuple(replace(one, rounds=n) for one, n in zip(trees, best, strict=True))
        return replace(self, trees=grown, held=held, blends=(below, found))

    @cached_property
    def held_out(self) -> tuple[MemberRows, Predicted]:
        """Targets of all folds with their rows, and what this stack predicts of them."""
        held = self.held
        X = [self.rows.read(test).X for _, test in self.rows.splits]
        starts = np.cumsum([0, *(one.shape[0] for one in X)])
        row, tasks = held.row + starts[self.fold], self.rows.units.tasks
        whole = np.concatenate(X)
        weights = row_counts(held.weights)
        rows = MemberRows(whole, row, held.task, held.label, tasks, held.y, weights)
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

    def narrowed(self, members: Sequence[int], n_hinges: int = 0) -> HeldOut:
        """Scores and coefficients of some members, with so many hinges less."""
        tables = None
        if self.tables is not None:
            width = next((one.shape[1] for one in self.tables.values()), 0) - 1
            kept = np.r_[: width - n_hinges, width]
            tables = {
                place: self.tables[number][:, kept]
                for place, number in enumerate(members)
                if number in self.tables
            }
        return replace(self, scores=self.scores[:, list(members)], tables=tables)

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
    job: Callable[[int], Part],
    rows: StackRows,
    folds: Sequence[int],
    names: list[str],
    run: FoldRun,
    optional: str = "",
) -> list[Part]:
    """Run a job for every fold that is not known yet; interrupted, return those that are done.

    ``optional`` says what is left out then; with none done, what is not optional raises.
    """
    # A checkpoint of other folds, hinges, targets or members is none of this fit.
    content = rows.hinges.columns, rows.hinges.knots, rows.units.log, *names
    keys = {number: joblib.hash((content, rows.splits[number])) for number in folds}
    known = {n: run.kept.get(key) for n, key in keys.items() if run.kept.get(key) is not None}
    missing = [number for number in folds if number not in known]
    jobs = (delayed(job)(number) for number in missing)
    try:
        with rows.given.side_by_side(run.n_jobs) as count:
            parts = zip(missing, Parallel(count, return_as="generator")(jobs), strict=True)
            last = missing[-1:]
            for number, part in run.watch.iterate(parts, "fold", more=lambda one: [one[0]] != last):
                known[number] = part
                run.kept.save(keys[number], part)
                of = f" of the {optional}" if optional else ""
                logger.info("fold %d of %d%s done", number + 1, len(rows.splits), of)
    except KeyboardInterrupt:
        done = len(known) + folds[0]
        if not run.watch.is_root or not (done or optional):
            raise
        when = f"after {done} of {len(rows.splits)} folds, which decide the weights"
        if optional:
            when = f"among the folds of the {optional}, which are left out"
        text = "The members are now fitted to all rows; interrupt again to give up."
        warn_caller(f"Interrupted {when}. {text}", ConvergenceWarning)
    return [known[number] for number in folds if number in known]


def fit_fold(
    rows: StackRows, members: Sequence[Member], whole: Mapping[str, Any], tables: bool, number: int
) -> HeldOut:
    """Fit members to one part of the rows and score the other."""
    train, test = rows.splits[number]
    if rows.components:
        members = [one.as_given() for one in members]
    shared = Shared(rows.read(train), members, rows.n_hinges)
    targets = MemberRows.of(rows.read(test), shared.data.tasks, shared.columns)
    predicted = [one.score(targets) for one in fit_all(members, shared, whole).values()]
    kept = {n: one.table() for n, one in enumerate(predicted) if tables and one.table}
    return HeldOut(
        scores_of(predicted),
        to_numpy(targets.y),
        to_numpy(targets.weights),
        np.arange(len(targets.task)) if targets.row is None else targets.row,
        encode_tasks(targets.tasks, rows.units.tasks)[targets.task],
        targets.label,
        predicted[min(kept)].column if kept else None,
        kept,
    )


def _joined(stages: list[np.ndarray]) -> np.ndarray:
    """Scores of several folds, round by round; folds that ended earlier stay as they were."""
    most = max(part.shape[1] for part in stages)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, most - part.shape[1])), "edge") for part in stages]
    )


def fit_trees(stack: Stack, trees: Sequence[TreeMember], number: int) -> list[np.ndarray]:
    """Grow trees on what other folds held out, and score what one did, round by round."""
    (rows, base), held = stack.held_out, stack.fold == number
    train, test = (np.flatnonzero(part) for part in (~held, held))
    parts = rows.take(train), base.take(train), rows.take(test), base.take(test)
    with single_blas():
        return [one.stages(stack.loss, stack.rows.n_hinges, *parts) for one in trees]


def fit_all(
    members: Sequence[Member], shared: Shared, whole: Mapping[str, Any]
) -> dict[str, Fitted]:
    """Fit members to the same rows; ``whole``: those that were fitted to all of which."""
    with warnings.catch_warnings(), single_blas():
        # A member need not be at its top to be of use; what it is worth is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {one.name: _fit(one, whole.get(one.name), shared) for one in members}


def _fit(member: Member, whole: Any, shared: Shared) -> Fitted:
    with steps_hidden():
        fitted = member.fit(shared, whole)
    logger.info("member fitted: %s", member.name)
    return fitted


def scores_of(predicted: Sequence[Predicted]) -> np.ndarray:
    """Scores of all members, (n, m): one number a member and target, on the host."""
    return np.stack([to_numpy(one.score) for one in predicted], axis=1)
