r"""Block-diagonal plus low rank: :math:`\mathrm{diag}(E_t) - (NN^\top) ⊗ J`.

The task step has one small block ``E_t`` for each task and couples tasks only through the
relation's low-rank part ``N`` (T × k), acting alike on the first ``K`` unknowns of every task
(``J`` is the identity there and zero beyond). Exact in :math:`O(T K^4 + K^6)`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, namespace
from .base import Solution


def coupled_blocks(blocks: Array, low: Array) -> Callable[[Array], Array]:
    """Return the operator itself, ``(T, n) -> (T, n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import coupled_blocks
    >>> coupled_blocks(2.0 * np.ones((2, 1, 1)), np.ones((2, 1)))(np.ones((2, 1)))
    array([[0.],
           [0.]])
    """
    xp = namespace(blocks)

    def operator(values: Array) -> Array:
        result = (blocks @ values[:, :, None])[:, :, 0]
        if not low.shape[1]:
            return result
        width = values.shape[1] - _uncoupled(blocks, low)
        coupled = low @ (low.T @ values[:, :width])
        rest = xp.zeros((values.shape[0], values.shape[1] - width), dtype=values.dtype)
        return result - xp.concat([coupled, rest], axis=1)

    return operator


def _uncoupled(blocks: Array, low: Array) -> int:
    """Unknowns of a block that the low-rank term does not touch: the intercept, if any."""
    return blocks.shape[1] - low.shape[1]


def regular(blocks: Array) -> Array:
    """Blocks that can be inverted, however far their penalty lies below their data.

    What is added is lost in rounding unless a block is singular to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import regular
    >>> bool(np.linalg.det(regular(np.ones((1, 2, 2))))[0] > 0.0)
    True
    """
    xp = namespace(blocks)
    speck = 8.0 * xp.finfo(blocks.dtype).eps * xp.linalg.trace(blocks)
    return blocks + speck[:, None, None] * xp.eye(blocks.shape[1], dtype=blocks.dtype)


def solve_coupled_blocks(blocks: Array, low: Array, right: Array) -> Solution:
    """Solve the coupled blocks for ``right`` (T, n) by the Woodbury identity.

    ``low`` has as many columns as each block has coupled unknowns, or none.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import solve_coupled_blocks
    >>> blocks = 4.0 * np.ones((2, 1, 1))
    >>> solve_coupled_blocks(blocks, np.ones((2, 1)), np.ones((2, 1))).value
    array([[0.5],
           [0.5]])
    """
    xp = namespace(blocks)
    blocks = regular(blocks)
    if not low.shape[1]:
        return Solution(xp.linalg.solve(blocks, right[:, :, None])[:, :, 0], "blocks")
    tasks, size, _ = blocks.shape
    width = low.shape[1]
    lift = xp.eye(size, dtype=blocks.dtype)[:, :width]
    both = xp.concat([right[:, :, None], xp.broadcast_to(lift, (tasks, size, width))], axis=2)
    solved = xp.linalg.solve(blocks, both)
    base, inverse = solved[:, :, 0], solved[:, :, 1:]
    # Capacitance over pairs (column of N, unknown): I - Σ_t n_t n_tᵀ ⊗ J E_t⁻¹ J.
    pairs = xp.reshape(low[:, :, None] * low[:, None, :], (tasks, width * width))
    inner = xp.reshape(inverse[:, :width, :], (tasks, width * width))
    mixed = xp.reshape(pairs.T @ inner, (width, width, width, width))
    count = width * width
    mixed = xp.reshape(xp.permute_dims(mixed, (0, 2, 1, 3)), (count, count))
    capacitance = xp.eye(count, dtype=blocks.dtype) - 0.5 * (mixed + mixed.T)
    seen = xp.reshape(low.T @ base[:, :width], (count, 1))
    answer = xp.reshape(xp.linalg.solve(capacitance, seen), (width, width))
    back = (inverse @ (low @ answer)[:, :, None])[:, :, 0]
    return Solution(base + back, "woodbury")
