"""Models in files: arrays and JSON, no pickle, no code."""

import json
import os
from pathlib import Path
from typing import Any

from .registry import ModelFileError

__all__ = ["ModelFileError", "load", "save"]


def save(model: Any, path: str | os.PathLike[str], **facts: str) -> None:
    """Write a fitted model to a file; after a crash the old file or the new one is there.

    Parameters
    ----------
    model : estimator
        A fitted model of comtl.
    path : path-like
        The file; missing folders are created.
    **facts : str
        Further facts for the header, such as versions.
    """
    from .codec import Packer
    from .container import write_container

    packer = Packer()
    text = json.dumps(packer.pack(model), allow_nan=False)
    write_container(Path(path), text, packer.arrays, facts)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` wrote, also on another machine and without the training data.

    Nothing in the file is executed: it holds numbers and names of comtl's own classes. A file that
    is incomplete, damaged, edited or not a model of comtl raises :class:`ModelFileError`.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Examples
    --------
    >>> import tempfile
    >>> import comtl
    >>> from comtl.baselines import PooledRegressor
    >>> model = PooledRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.comtl")
    ...     comtl.load(f"{folder}/model.comtl").get_params()["alpha"]
    1.0
    """
    model = read(path)
    if not hasattr(model, "predict"):
        raise ModelFileError(f"{path} holds no model, but a part of one or of a fit.")
    return model


def read(path: str | os.PathLike[str]) -> Any:
    """Read whatever ``save`` wrote; in memory at most four times the file and 64 MiB."""
    from .codec import Unpacker
    from .container import read_container

    path = Path(path)
    try:
        text, arrays = read_container(path)
        return Unpacker(arrays).unpack(json.loads(text))
    except OSError:
        raise
    # Whatever else is wrong with a file is one kind of error.
    except Exception as error:
        said = str(error) if isinstance(error, ModelFileError) else "it is damaged or was edited."
        raise ModelFileError(
            said if str(path) in said else f"{path} holds no model that can be read: {said}"
        ) from None
