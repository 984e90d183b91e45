"""Files that commands write, checked before any work so that no file of the user is lost."""

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..saving.writing import is_special

force_option = click.option("--force", is_flag=True, help="Overwrite a file of another kind.")


def file_option(name: str, **settings: Any) -> Any:
    """Option that names a file to write; see ``check_outputs``."""
    return click.option(name, type=click.Path(path_type=Path), **settings)


def is_model(path: Path) -> bool:
    """Whether a file begins as models do."""
    return b'"format": "comtl"' in _head(path)


def is_page(path: Path) -> bool:
    """Whether a file begins as reports do."""
    return b'<meta name="generator" content="comtl">' in _head(path)


def are_predictions(path: Path) -> bool:
    """Whether a table has the columns of predictions, and the user's own in front alone."""
    if path.suffix.lower() == ".parquet":
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import read_schema

        try:
            names = read_schema(path).names
        except ArrowInvalid:
            return False
    else:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        line = _head(path).partition(b"\n")[0].decode(errors="replace")
        names = [name.strip('"') for name in line.split(delimiter)]
    if "prediction" not in names:
        return False
    others = names[names.index("prediction") + 1 :]
    return all(name in ("lower", "upper") or name.startswith("probability ") for name in others)


KINDS: dict[Callable[[Path], bool], str] = {
    is_model: "a model of comtl",
    is_page: "a report of comtl",
    are_predictions: "a file of predictions",
}


def check_outputs(
    outputs: Mapping[str, tuple[Path | None, Callable[[Path], bool]]],
    inputs: Mapping[str, str | None],
    force: bool,
) -> None:
    """Refuse outputs, each a file and the test of its kind, that cannot or must not be written."""
    seen = {name: Path(file) for name, file in inputs.items() if file is not None and file != "-"}
    for option, (path, of_kind) in outputs.items():
        if path is None:
            continue
        for name, file in seen.items():
            if same_file(path, file):
                raise click.ClickException(
                    f"{option} and {name} are the same file, {path}; name another one."
                )
        seen[option] = path
        # Names that are too long: from Python 3.14 on exists() takes them for missing ones.
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()
        if is_special(path):
            continue
        _check_writable(option, path)
        if not force and path.exists() and path.stat().st_size and not of_kind(path):
            raise click.ClickException(
                f"{option} {path} is there and is not {KINDS[of_kind]}: name another file, or "
                "overwrite it with --force."
            )


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file: also through links, and by case where that counts."""
    if one.exists() and other.exists() and one.samefile(other):
        return True
    return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def _check_writable(option: str, path: Path) -> None:
    folder = (Path(os.path.realpath(path)) if path.is_symlink() else path).parent
    if path.is_dir():
        problem = "is a folder; name a file in it"
    elif not folder.is_dir():
        problem = f"cannot be written: there is no folder {folder}; create it"
    elif not os.access(folder, os.W_OK):
        problem = f"cannot be written: you may not write to the folder {folder}; name another one"
    elif path.exists() and not stat.S_IMODE(path.stat().st_mode) & 0o222:
        problem = "is read-only; allow writing, or name another file"
    else:
        return
    raise click.ClickException(f"{option} {path} {problem}.")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)
