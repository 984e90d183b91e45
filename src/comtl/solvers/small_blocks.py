r"""Direct solvers of small blocks that are coupled, by a low rank or by common unknowns.

A task step has one small block ``E_t`` for each task and couples tasks only through the relation's
low-rank part ``N`` (T × k), acting alike on the first ``K`` unknowns of every task (``J`` is the
identity there and zero beyond): :math:`\mathrm{diag}(E_t) - (NN^\top) ⊗ J`, solved exactly in
:math:`O(T K^4 + K^6)`. Leading axes hold systems of one shape, solved in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..arrays import Array, namespace
from ..arrays.algebra import solve_symmetric
from . import Solution

_SLICE = 2**19
"""Numbers worked on at a time, so that nothing but the blocks grows with their number."""


def solve_arrow(
    blocks: Array, ridge: Array, common_ridge: Array, right: Array, common_right: Array
) -> Solution:
    r"""Minimise over blocks that meet in common unknowns only, :math:`a_t = z_t + c`:

    .. math:: \sum_t \tfrac12 a_t^\top H_t a_t + \tfrac12 z_t^\top R z_t + \tfrac12 c^\top R_0 c

    ``blocks`` are ``H_t`` (T, c, c), ``ridge`` (n,) and ``common_ridge`` (c,) the diagonals of
    ``R`` and ``R0``. The ``z_t`` are the first ``n`` of the ``c`` unknowns, padded in the value,
    whose last row holds ``c``; eliminating them leaves one system of the size of a block.
    """
    xp = namespace(blocks)
    tasks, common, _ = blocks.shape
    free = ridge.shape[0]
    both = xp.concat([right[:, :, None], blocks[:, :free, :]], axis=2)
    solved = xp.linalg.solve(regular(blocks[:, :free, :free], ridge), both)
    base, through = solved[:, :, 0], solved[:, :, 1:]
    # H - H (H + R)⁻¹ H = R (H + R)⁻¹ H: no product of whole blocks, and nothing cancels.
    lower = blocks[:, free:, :free]
    left = blocks[:, free:, :] - lower @ through
    schur = xp.concat([ridge[:, None] * xp.sum(through, axis=0), xp.sum(left, axis=0)], axis=0)
    schur = schur + common_ridge[:, None] * xp.eye(common, dtype=blocks.dtype)
    reduced = xp.sum(right, axis=0) - ridge * xp.sum(base, axis=0)
    rest = common_right - xp.concat([reduced, xp.sum((lower @ base[:, :, None])[:, :, 0], axis=0)])
    shared = solve_symmetric(0.5 * (schur + schur.T), rest)
    each = base - (through @ shared[:, None])[:, :, 0]
    each = xp.concat([each, xp.zeros((tasks, common - free), dtype=each.dtype)], axis=1)
    return Solution(xp.concat([each, shared[None, :]], axis=0), "arrow")


def coupled_blocks(
    blocks: Array, low: Array, ridge: Array, width: int | None = None
) -> Callable[[Array], Array]:
    """Operator ``(T, n) -> (T, n)``; the first ``width`` unknowns of a task are coupled."""
    width = low.shape[-1] if width is None else width

    def operator(values: Array) -> Array:
        result = (blocks @ values[..., None])[..., 0] + ridge[..., None, :] * values
        if low.shape[-1]:
            result[..., :width] -= low @ (low.mT @ values[..., :width])
        return result

    return operator


def regular(blocks: Array, ridge: Array) -> Array:
    """Blocks plus ridge; what is added to that is lost in rounding unless a block is singular."""
    xp = namespace(blocks)
    size = xp.linalg.trace(blocks) + xp.sum(ridge, axis=-1, keepdims=True)
    speck = 8.0 * xp.finfo(blocks.dtype).eps * size
    eye = xp.eye(blocks.shape[-1], dtype=blocks.dtype)
    return blocks + (ridge[..., None, :] + speck[..., None])[..., None] * eye


def solve_coupled_blocks(blocks: Array, low: Array, ridge: Array, right: Array) -> Solution:
    """Solve the coupled blocks for ``right`` (T, n) by the Woodbury identity."""
    if not low.shape[-1]:
        return Solution(_uncoupled(blocks, ridge, right), "blocks")
    xp = namespace(blocks)
    parts = _slices(blocks)
    width, matrix, reduced = low.shape[-1], 0.0, 0.0
    for part in parts:
        inverse = xp.linalg.inv(regular(blocks[..., part, :, :], ridge))
        more = _capacitance(inverse, low[..., part, :], right[..., part, :])
        matrix, reduced = matrix + more[0], reduced + more[1]
    coupled = right[..., :width] + low @ _solve_capacitance(matrix, reduced)
    right = xp.concat([coupled, right[..., width:]], axis=-1)
    if len(parts) > 1:  # Blocks are inverted a second time rather than kept.
        return Solution(_uncoupled(blocks, ridge, right), "woodbury")
    return Solution((inverse @ right[..., None])[..., 0], "woodbury")


def _slices(blocks: Array) -> list[slice]:
    *many, tasks, size, _ = blocks.shape
    step = max(1, _SLICE // (2 * size * size * math.prod(many)))
    return [slice(first, min(first + step, tasks)) for first in range(0, tasks, step)]


def _uncoupled(blocks: Array, ridge: Array, right: Array) -> Array:
    result = namespace(blocks).empty(right.shape, dtype=blocks.dtype)
    for part in _slices(blocks):
        each = regular(blocks[..., part, :, :], ridge)
        solved = namespace(blocks).linalg.solve(each, right[..., part, :, None])
        result[..., part, :] = solved[..., 0]
    return result


def _capacitance(inverse: Array, low: Array, right: Array) -> tuple[Array, Array]:
    """Capacitance over pairs (column of N, unknown), I - Σ_t n_t n_tᵀ ⊗ J E_t⁻¹ J, but for I."""
    xp, width = namespace(low), low.shape[-1]
    shape = (*low.shape[:-1], width * width)
    pairs = xp.reshape(low[..., :, None] * low[..., None, :], shape)
    inner = xp.reshape(inverse[..., :width, :width], shape)
    base = (inverse @ right[..., None])[..., :width, 0]
    return pairs.mT @ inner, low.mT @ base


def _solve_capacitance(matrix: Array, right: Array) -> Array:
    """Solve the system that couples all tasks."""
    xp = namespace(matrix)
    width = right.shape[-1]
    count = width * width
    matrix = paired(matrix, width, width)
    capacitance = xp.eye(count, dtype=matrix.dtype) - 0.5 * (matrix + matrix.mT)
    solution = xp.linalg.solve(capacitance, xp.reshape(right, (*right.shape[:-2], count, 1)))
    return xp.reshape(solution, right.shape)


def paired(sums: Array, rows: int, columns: int) -> Array:
    """Matrix over pairs ``(a, b)`` from sums over ``(a, a')`` by ``(b, b')``."""
    xp = namespace(sums)
    many, count = sums.shape[:-2], rows * columns
    order = tuple(range(len(many)))
    sums = xp.reshape(sums, (*many, rows, rows, columns, columns))
    sums = xp.permute_dims(sums, order + tuple(len(many) + axis for axis in (0, 2, 1, 3)))
    return xp.reshape(sums, (*many, count, count))
