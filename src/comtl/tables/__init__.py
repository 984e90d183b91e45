"""Models of tables as they come: mixed columns, missing values, names for tasks."""

from .columns import Column
from .encoder import Encoder
from .errors import TableError
from .fitting import fit_table
from .model import TableModel
from .reading import read_table
from .storing import load_model

__all__ = ["Column", "Encoder", "TableError", "TableModel", "fit_table", "load_model", "read_table"]
