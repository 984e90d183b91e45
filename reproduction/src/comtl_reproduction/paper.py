"""What ``paper.toml`` holds: the paper's sets and figures, and the methods with their grids."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

PAPER: dict[str, Any] = tomllib.loads(files(__package__).joinpath("paper.toml").read_text("utf-8"))
