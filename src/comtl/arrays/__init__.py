"""The array namespace of the data, and the few operations the array API lacks.

The engine is written against the array API standard, so that it follows whatever library the
rows came in, on the device where they lie. This is the only room that may name a library.
"""

from .algebra import (
    TALL,
    block_matrix,
    dot,
    is_one,
    norm,
    orthonormal,
    positive,
    project_simplex,
    row_dots,
    weighted_mean,
    with_corner,
    with_ones,
)
from .packed import DeviceCSR, RowSelector, row_parts, take, take_pairs
from .segments import (
    cached_for,
    local_offsets,
    padded_index,
    segment_codes,
    segment_forms,
    segment_gram,
    segment_sum,
    similar_sizes,
)
from .spaces import (
    Array,
    Space,
    asarray_like,
    bits_of,
    device_name,
    is_cupy_sparse,
    is_device_sparse,
    is_torch_sparse,
    namespace,
    on_device,
    to_numpy,
)

# Formed P x P or T x T arrays (pooled covariance, Grams, eigenbases) stay within these bounds.
DENSE_SIDE = 1_500
DENSE_BYTES = 256 * 2**20

__all__ = ["DENSE_BYTES", "DENSE_SIDE"]
__all__ += ["TALL", "block_matrix", "dot", "is_one", "norm", "orthonormal", "positive"]
__all__ += ["project_simplex", "row_dots", "weighted_mean", "with_corner", "with_ones"]
__all__ += ["DeviceCSR", "RowSelector", "row_parts", "take", "take_pairs"]
__all__ += ["cached_for", "local_offsets", "padded_index", "segment_codes", "segment_forms"]
__all__ += ["segment_gram", "segment_sum", "similar_sizes"]
__all__ += ["Array", "Space", "asarray_like", "bits_of", "device_name", "is_cupy_sparse"]
__all__ += ["is_device_sparse", "is_torch_sparse", "namespace", "on_device", "to_numpy"]
