"""Models of tables as they come: mixed columns, missing values, names for tasks."""

from .columns import Column
from .encoder import Encoder
from .fitting import fit_table
from .table_files import read_table
from .table_model import TableModel, load_model
from .values import TableError

__all__ = ["Column", "Encoder", "TableError", "TableModel", "fit_table", "load_model", "read_table"]
