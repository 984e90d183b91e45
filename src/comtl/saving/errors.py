"""What goes wrong with files."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that cannot be read as a model, or a model that cannot be written.

    Examples
    --------
    >>> from comtl.saving.errors import ModelFileError
    >>> issubclass(ModelFileError, ValueError)
    True
    """
