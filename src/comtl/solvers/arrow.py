r"""One block of unknowns for each task and one for all: an arrow of small dense blocks.

With :math:`a_t = z_t + c` the weights of a task, the unknowns ``z_t`` (own) and ``c`` (common) of

.. math:: \sum_t \tfrac12 a_t^\top H_t a_t + \tfrac12 z_t^\top R z_t + \tfrac12 c^\top R_0 c

meet in ``c`` only, so eliminating the ``z_t`` leaves one system of the size of a block.
"""

from __future__ import annotations

from ..arrays import Array, namespace
from .dense import solve_symmetric
from .solution import Solution
from .woodbury import regular


def solve_arrow(
    blocks: Array, ridge: Array, common_ridge: Array, right: Array, common_right: Array
) -> Solution:
    """Solve for own and common unknowns; the last row of the value holds the common ones.

    ``blocks`` are ``H_t`` (T, c, c), ``ridge`` (n,) and ``common_ridge`` (c,) the diagonals of
    ``R`` and ``R0``; ``right`` (T, n) and ``common_right`` (c,) the right-hand sides. The own
    unknowns are the first ``n`` of the ``c`` (or all); rows of the value are padded to ``c``.
    """
    xp = namespace(blocks)
    tasks, common, _ = blocks.shape
    own = ridge.shape[0]
    both = xp.concat([right[:, :, None], blocks[:, :own, :]], axis=2)
    solved = xp.linalg.solve(regular(blocks[:, :own, :own], ridge), both)
    base, through = solved[:, :, 0], solved[:, :, 1:]
    # H - H (H + R)⁻¹ H = R (H + R)⁻¹ H: no product of whole blocks, and nothing cancels.
    lower = blocks[:, own:, :own]
    left = blocks[:, own:, :] - lower @ through
    schur = xp.concat([ridge[:, None] * xp.sum(through, axis=0), xp.sum(left, axis=0)], axis=0)
    schur = schur + common_ridge[:, None] * xp.eye(common, dtype=blocks.dtype)
    met = xp.sum(right, axis=0) - ridge * xp.sum(base, axis=0)
    rest = common_right - xp.concat([met, xp.sum((lower @ base[:, :, None])[:, :, 0], axis=0)])
    shared = solve_symmetric(0.5 * (schur + schur.T), rest).value
    each = base - (through @ shared[:, None])[:, :, 0]
    each = xp.concat([each, xp.zeros((tasks, common - own), dtype=each.dtype)], axis=1)
    return Solution(xp.concat([each, shared[None, :]], axis=0), "arrow")
