"""Direct solution of small dense systems: a symmetric one, and blocks with common unknowns."""

from __future__ import annotations

from ..arrays import Array, namespace
from .solution import Solution
from .woodbury import regular


def solve_symmetric(matrix: Array, right: Array, *, floor: float = 0.0) -> Solution:
    """Shortest solution of a positive semidefinite system with eigenvalues of ``floor`` or more."""
    xp = namespace(matrix)
    size, eps = matrix.shape[0], float(xp.finfo(matrix.dtype).eps)
    if floor > eps**0.5 * abs(float(xp.linalg.trace(matrix))):
        return Solution(xp.linalg.solve(matrix, right), "dense", True, {"rank": size})
    values, basis = xp.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = values > max(float(values[-1]) * size * eps, 0.0)
    safe = xp.where(kept, values, xp.ones_like(values))
    inverse = xp.where(kept, 1.0 / safe, xp.zeros_like(values))
    rank = int(xp.sum(xp.astype(kept, xp.int64)))
    return Solution(basis @ (inverse * (basis.T @ right)), "dense", True, {"rank": rank})


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
    shared = solve_symmetric(0.5 * (schur + schur.T), rest).value
    each = base - (through @ shared[:, None])[:, :, 0]
    each = xp.concat([each, xp.zeros((tasks, common - free), dtype=each.dtype)], axis=1)
    return Solution(xp.concat([each, shared[None, :]], axis=0), "arrow")
