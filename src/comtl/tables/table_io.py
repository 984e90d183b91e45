"""Models of tables from files."""

from __future__ import annotations

import os
from pathlib import Path

from ..saving import load
from .table_errors import TableError
from .table_model import TableModel

TABLES = frozenset({".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".gz"})


def load_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model that :meth:`TableModel.save` or ``comtl fit`` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    TableModel
        The model.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from comtl.tables import fit_table, load_model
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.comtl")
    ...     again = load_model(f"{folder}/model.comtl")
    >>> bool((again.predict(frame) == model.predict(frame)).all())
    True
    """
    if Path(path).is_dir():
        raise TableError(f"{path} is a folder; name the model file in it.")
    if Path(path).suffix.lower() in TABLES:
        raise TableError(f"{path} is a table by its name; first comes the model, then the table.")
    try:
        model = load(path)
    except FileNotFoundError as error:
        raise TableError(f"There is no file {path}; make one with comtl fit.") from error
    except PermissionError as error:
        raise TableError(f"{path} may not be read: ask for permission to read it.") from error
    if not isinstance(model, TableModel):
        raise TableError(
            f"{path} holds a {type(model).__name__} without the columns of its table: read it with "
            "comtl.load in Python, or make a model with comtl fit."
        )
    return model
