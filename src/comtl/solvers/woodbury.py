r"""Block-diagonal plus low rank: :math:`\mathrm{diag}(E_t) - (NN^\top) ⊗ J`.

The task step has one small block ``E_t`` for each task and couples tasks only through the
relation's low-rank part ``N`` (T × k), acting alike on the first ``K`` unknowns of every task
(``J`` is the identity there and zero beyond). Exact in :math:`O(T K^4 + K^6)`. Leading axes hold
systems of one shape, solved in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..arrays import Array, namespace
from .base import Solution

_SLICE = 2**19
"""Numbers worked on at a time, so that nothing but the blocks grows with their number."""


def coupled_blocks(
    blocks: Array, low: Array, ridge: Array, width: int | None = None
) -> Callable[[Array], Array]:
    """Return the operator itself, ``(T, n) -> (T, n)``; ``E_t`` is a block plus the ridge.

    ``width`` counts the coupled unknowns of a block: as many as ``N`` has columns unless told.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import coupled_blocks
    >>> coupled_blocks(np.ones((2, 1, 1)), np.ones((2, 1)), np.ones(1))(np.ones((2, 1)))
    array([[0.],
           [0.]])
    """
    xp = namespace(blocks)
    width = low.shape[-1] if width is None else width

    def operator(values: Array) -> Array:
        result = (blocks @ values[..., None])[..., 0] + ridge[..., None, :] * values
        if not low.shape[-1]:
            return result
        coupled = low @ (low.mT @ values[..., :width])
        rest = xp.zeros((*values.shape[:-1], values.shape[-1] - width), dtype=values.dtype)
        return result - xp.concat([coupled, rest], axis=-1)

    return operator


def regular(blocks: Array, ridge: Array) -> Array:
    """Blocks plus ridge, to be inverted however far the ridge lies below the data.

    What is added is lost in rounding unless a block is singular to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import regular
    >>> bool(np.linalg.det(regular(np.ones((1, 2, 2)), np.zeros(2)))[0] > 0.0)
    True
    """
    xp = namespace(blocks)
    size = xp.linalg.trace(blocks) + xp.sum(ridge, axis=-1, keepdims=True)
    speck = 8.0 * xp.finfo(blocks.dtype).eps * size
    eye = xp.eye(blocks.shape[-1], dtype=blocks.dtype)
    return blocks + (ridge[..., None, :] + speck[..., None])[..., None] * eye


def solve_coupled_blocks(blocks: Array, low: Array, ridge: Array, right: Array) -> Solution:
    """Solve the coupled blocks for ``right`` (T, n) by the Woodbury identity.

    ``low`` has as many columns as each block has coupled unknowns, or none.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import solve_coupled_blocks
    >>> blocks = 3.0 * np.ones((2, 1, 1))
    >>> solve_coupled_blocks(blocks, np.ones((2, 1)), np.ones(1), np.ones((2, 1))).value
    array([[0.5],
           [0.5]])
    """
    xp = namespace(blocks)
    *many, tasks, size, _ = blocks.shape
    width = low.shape[-1]
    step = max(1, _SLICE // (2 * size * size * math.prod(many)))
    slices = [slice(first, min(first + step, tasks)) for first in range(0, tasks, step)]
    result = xp.empty((*many, tasks, size), dtype=blocks.dtype)
    if not width:
        for part in slices:
            each = regular(blocks[..., part, :, :], ridge)
            result[..., part, :] = xp.linalg.solve(each, right[..., part, :, None])[..., 0]
        return Solution(result, "blocks")
    # Capacitance over pairs (column of N, unknown): I - Σ_t n_t n_tᵀ ⊗ J E_t⁻¹ J.
    count = width * width
    mixed = xp.zeros((*many, count, count), dtype=blocks.dtype)
    seen = xp.zeros((*many, width, width), dtype=blocks.dtype)
    inverses = []
    for part in slices:
        inverse = xp.linalg.inv(regular(blocks[..., part, :, :], ridge))
        base = (inverse @ right[..., part, :, None])[..., 0]
        own = low[..., part, :]
        pairs = xp.reshape(own[..., :, None] * own[..., None, :], (*own.shape[:-1], count))
        inner = xp.reshape(inverse[..., :width, :width], (*own.shape[:-1], count))
        mixed = mixed + pairs.mT @ inner
        seen = seen + own.mT @ base[..., :width]
        result[..., part, :] = base
        inverses = [inverse] if len(slices) == 1 else []
    mixed = paired(mixed, width, width)
    capacitance = xp.eye(count, dtype=blocks.dtype) - 0.5 * (mixed + mixed.mT)
    answer = xp.linalg.solve(capacitance, xp.reshape(seen, (*many, count, 1)))
    answer = xp.reshape(answer, (*many, width, width))
    for part in slices:
        # Many blocks are inverted a second time rather than kept.
        again = inverses[0] if inverses else None
        if again is None:
            again = xp.linalg.inv(regular(blocks[..., part, :, :], ridge))
        push = again[..., :width] @ (low[..., part, :] @ answer)[..., None]
        result[..., part, :] = result[..., part, :] + push[..., 0]
    return Solution(result, "woodbury")


def paired(sums: Array, rows: int, columns: int) -> Array:
    """Matrix over pairs ``(a, b)`` from sums over ``(a, a')`` by ``(b, b')``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.woodbury import paired
    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0]])
    >>> paired(a.reshape(4, 1) @ b.reshape(1, 1), 2, 1)
    array([[ 5., 10.],
           [15., 20.]])
    """
    xp = namespace(sums)
    many, count = sums.shape[:-2], rows * columns
    order = tuple(range(len(many)))
    sums = xp.reshape(sums, (*many, rows, rows, columns, columns))
    sums = xp.permute_dims(sums, order + tuple(len(many) + axis for axis in (0, 2, 1, 3)))
    return xp.reshape(sums, (*many, count, count))
