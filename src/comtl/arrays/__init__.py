"""The array namespace of the data, what the array API lacks, and products of rows by blocks."""

from .algebra import (
    TALL,
    dot,
    norm,
    orthonormal,
    positive,
    project_simplex,
    row_dots,
    weighted_mean,
    with_ones,
)
from .backends import (
    Array,
    asarray_like,
    device_name,
    is_device_sparse,
    namespace,
    on_device,
    to_numpy,
)
from .packed import DeviceCSR, take, take_pairs
from .segments import padded_index, segment_codes, segment_forms, segment_gram, segment_sum

# Formed P x P or T x T arrays (pooled covariance, Grams, eigenbases) stay within these bounds.
DENSE_SIDE = 1_500
DENSE_BYTES = 256 * 2**20

__all__ = ["DENSE_BYTES", "DENSE_SIDE", "TALL", "dot", "norm", "orthonormal", "positive"]
__all__ += ["project_simplex", "row_dots", "weighted_mean", "with_ones"]
__all__ += ["DeviceCSR", "take", "take_pairs"]
__all__ += ["padded_index", "segment_codes", "segment_forms", "segment_gram", "segment_sum"]
__all__ += ["Array", "asarray_like", "device_name", "is_device_sparse", "namespace"]
__all__ += ["on_device", "to_numpy"]
