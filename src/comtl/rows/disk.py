"""Rows larger than memory: written to disk block by block, sorted by task, mapped for `fit`."""

import importlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .reading import check_indices, one_kind, read_tasks, read_values, refuse_masked

FilePath: TypeAlias = str | os.PathLike[str]
Chunk: TypeAlias = tuple[Any, ...]

_FORMAT = 1
_PIECE = 2**19  # numbers copied at a time: 4 MiB
_LARGEST_INT32 = np.iinfo(np.int32).max
_NUMBERS = ("int", "uint", "float", "halffloat", "double", "bool")  # as pyarrow names them


def spool_rows(blocks: Iterable[Chunk], folder: FilePath, *, overwrite: bool = False) -> Chunk:
    """Write blocks of rows to disk, sorted by task, and map them as what `fit` takes.

    Parameters
    ----------
    blocks : iterable of tuples ``(X, y, task)`` or ``(X, y, task, sample_weight)``
        Read once and one at a time; counted from 0. Each X is dense, or each is sparse.
    folder : path
        Where the files go; made if absent. Sorting needs disk space for all rows twice.
    overwrite : bool, default=False
        Whether to begin by removing the rows that an earlier call left in `folder`.

    Returns
    -------
    X : memmap or csr_array over memmaps, of shape (n_rows, n_features)
        Features, read only; float32 if the first block is, else float64.
    y, task, sample_weight : memmap of shape (n_rows,)
        The rest as it was given; tasks are sorted, and the rows of a task keep their order.

    Examples
    --------
    >>> import tempfile
    >>> from comtl import spool_rows
    >>> blocks = (([[i, 2.0], [i, 3.0]], [i, i + 0.5], ["b", "a"]) for i in range(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X, y, task = spool_rows(blocks, folder)
    ...     X.shape, y.tolist(), task.tolist()
    ((4, 2), [0.5, 1.5, 0.0, 1.0], ['a', 'a', 'b', 'b'])
    """
    folder = Path(folder)
    if _file(folder, "json").exists() and not overwrite:
        raise FileExistsError(f"{folder} already holds rows: open_rows them or set overwrite=True.")
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder, "rows", "arrival")
    try:
        _spool(blocks, folder)
    except BaseException:
        _clear(folder, "rows", "arrival")  # what is half written may be large
        raise
    return open_rows(folder)


def open_rows(folder: FilePath) -> Chunk:
    """Map the rows that `spool_rows` wrote into this folder; return what it returned.

    Examples
    --------
    >>> import tempfile
    >>> from comtl import open_rows, spool_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = spool_rows([([[1.0], [2.0]], [3.0, 4.0], [7, 5])], folder)
    ...     [part.tolist() for part in open_rows(folder)]
    [[[2.0], [1.0]], [4.0, 3.0], [5, 7]]
    """
    folder = Path(folder)
    summary = _file(folder, "json")
    if not summary.is_file():
        state = f"is incomplete: it has no {summary.name}" if folder.is_dir() else "does not exist"
        raise FileNotFoundError(f"The folder {folder} {state}. Write the rows with spool_rows.")
    index = json.loads(summary.read_text(encoding="utf-8"))
    if index.get("format") != _FORMAT:
        raise ValueError(f"{summary} is not of format {_FORMAT}; write the rows again.")
    maps = {name: _map(_file(folder, name), *entry) for name, entry in index["files"].items()}
    rest = [maps[name] for name in ("y", "task", "sample_weight") if name in maps]
    if "X" in maps:
        return maps["X"], *rest
    parts = maps["data"], maps["indices"], maps["indptr"]
    return sparse.csr_array(parts, shape=tuple(index["shape"])), *rest


def parquet_blocks(
    path: FilePath | Sequence[FilePath],
    *,
    target: str,
    task: str,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    rows: int = 65_536,
) -> Iterator[Chunk]:
    """Read parquet files in blocks ``(X, y, task[, sample_weight])``; needs pyarrow.

    Parameters
    ----------
    path : path or sequence of paths
        Files, or a folder whose ``*.parquet`` files are read in sorted order.
    target, task, sample_weight : str
        Columns with the targets, the task labels and, if given, the weights.
    features : sequence of str, optional
        Numeric columns; by default all others but the unnamed index of pandas. All float32 stays.
    rows : int, default=65_536
        Most rows in a block.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from comtl import parquet_blocks
    >>> frame = pd.DataFrame({"age": [7, 8], "school": ["b", "a"], "score": [1.0, 2.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(f"{folder}/pupils.parquet")
    ...     list(parquet_blocks(folder, target="score", task="school"))
    [(array([[7.], [8.]]), array([1., 2.]), array(['b', 'a'], dtype='<U1'))]
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("parquet_blocks needs pyarrow: pip install pyarrow") from error
    if isinstance(path, str | os.PathLike):
        path = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [path]
    if not path or rows < 1:
        raise ValueError(f"Need a *.parquet file in path and rows >= 1, got {path} and {rows}.")
    others = [target, task] if sample_weight is None else [target, task, sample_weight]
    names, types = list(features or ()), set[str]()
    for file in path:
        fields = {field.name: str(field.type) for field in parquet.read_schema(file)}
        if features is None:
            spare = [n for n in fields if n not in others and not n.startswith("__index_level_")]
            names = names or spare
            _refuse(set(spare) - set(names), f"of {file} are not in the first file; set features")
        _refuse({*others, *names} - set(fields), f"are not in {file}, which has {list(fields)}")
        texts = [name for name in names if not fields[name].startswith(_NUMBERS)]
        _refuse(texts, f"of {file} are not numbers; encode them or leave them out of features")
        types.update(fields[name] for name in names)
    columns = list(dict.fromkeys([*names, *others]))
    dtype = np.dtype(np.float32 if types == {"float"} else np.float64)

    def read() -> Iterator[Chunk]:
        for file in path:
            with parquet.ParquetFile(file) as source:
                for batch in source.iter_batches(batch_size=rows, columns=columns):
                    gaps = [name for name in columns if batch.column(name).null_count]
                    _refuse(gaps, f"of {file} have nulls; fill them or drop those rows")
                    parts = {n: batch.column(n).to_numpy(zero_copy_only=False) for n in columns}
                    table = np.array([parts[name] for name in names], dtype=dtype)
                    yield table.T, *(one_kind(parts[name], name) for name in others)

    return read()


def _refuse(columns: Collection[str], reason: str) -> None:
    if columns:
        raise ValueError(f"Columns {sorted(columns)} {reason}.")


def _spool(blocks: Iterable[Chunk], folder: Path) -> None:
    first: dict[str, Any] = {}
    seen: dict[Any, int] = {}
    found: list[list[np.ndarray]] = []
    number = -1  # enumerate would hold on to a block while the next one is made
    for block in blocks:
        number += 1
        parts, indptr, task, vectors, layout = _read_block(block, number, first)
        if len(task):
            first = first or layout
            labels, codes = np.unique(task, return_inverse=True)
            known = [seen.setdefault(label, len(seen)) for label in labels.tolist()]
            # Sorted within each block, the second pass reads runs rather than single rows.
            order = np.argsort(codes, kind="stable")
            types = _types(parts, first["type of X"], first["width of X"])
            lengths = _append(parts, indptr, order, folder, "arrival", types)
            short = np.array(known, dtype=np.int32)[codes[order]]
            found.append([short, lengths, *(vector[order] for vector in vectors)])
        del block, parts, indptr, task, vectors
    if not first:
        raise ValueError("blocks holds no rows. Note that a generator can be read only once.")
    codes, lengths, *rest = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    found.clear()
    tasks = np.array(list(seen))
    codes = np.argsort(np.argsort(tasks))[codes]
    order = np.argsort(codes, kind="stable")
    arrays = dict(zip(("y", "sample_weight"), (vector[order] for vector in rest), strict=False))
    arrays["task"] = np.repeat(np.sort(tasks), np.bincount(codes))
    shape: tuple[int, ...] = (len(order), first["width of X"])
    final, size, indptr = types, shape, None
    if first["kind of X"] == "sparse":
        indptr, size = np.append(0, np.cumsum(lengths)), (int(lengths.sum()),)
        # SciPy copies the indices if their type is too short for the shape.
        final = _types(types, first["type of X"], max(*shape, *size))
        arrays["indptr"] = np.append(0, np.cumsum(lengths[order])).astype(final["indices"])
    if final == types and (codes[1:] >= codes[:-1]).all():
        for name in final:
            os.replace(_file(folder, name, "arrival"), _file(folder, name))
    else:
        parts = {name: _map(_file(folder, name, "arrival"), types[name], size) for name in types}
        _append(parts, indptr, order, folder, "rows", final)
        del parts
        _clear(folder, "arrival")
    files = {name: (dtype.str, size) for name, dtype in final.items()}
    for name, array in arrays.items():
        array.tofile(_file(folder, name))
        files[name] = (array.dtype.str, array.shape)
    index = {"format": _FORMAT, "kind": first["kind of X"], "shape": shape, "files": files}
    _file(folder, "json", "arrival").write_text(json.dumps(index), encoding="utf-8")
    os.replace(_file(folder, "json", "arrival"), _file(folder, "json"))


def _read_block(block: Any, number: int, first: dict[str, Any]) -> Chunk:
    """Return the parts of X by their files, indptr or None, task, [y, weights], the layout."""
    if not isinstance(block, tuple) or len(block) not in (3, 4):
        hint = "a tuple (X, y, task) or (X, y, task, sample_weight); put a single one in a list"
        raise TypeError(f"Block {number} of blocks is {type(block).__name__}, but must be {hint}.")
    for values, name in zip(block, ("X", "y", "task", "sample_weight"), strict=False):
        refuse_masked(values, f"{name} of block {number}")
        check_indices(values, f"{name} of block {number}")
    X: Any = block[0] if sparse.issparse(block[0]) else np.asarray(block[0])
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        found = f"is {X.ndim}-D and {X.dtype}"
        raise ValueError(f"X of block {number} {found}; give a 2-D table of numbers.")
    task = read_tasks(block[2], f"task of block {number}")
    names = ("task", "y", "sample_weight")[: len(block) - 1]
    vectors = [task, *(read_values(values, "y")[0] for values in (block[1], *block[3:]))]
    for place, name in enumerate(names):
        if vectors[place].shape != (X.shape[0],):
            found = f"has shape {vectors[place].shape}, but X has {X.shape[0]} rows"
            raise ValueError(f"{name} of block {number} {found}; give one value for each row.")
        vectors[place] = one_kind(vectors[place], f"{name} of block {number}")
    narrow = first.get("type of X", "float32")  # float32 fits in float64, not the other way
    layout = {
        "kind of X": "sparse" if sparse.issparse(X) else "dense",
        "type of X": narrow if X.dtype == np.float32 else "float64",
        "width of X": X.shape[1],
        "kind of task": {"U": "text", "b": "booleans"}.get(task.dtype.kind, "integers"),
        "kind of y": "text" if vectors[1].dtype.kind == "U" else "numbers",
        "length of the tuple": len(block),
    }
    for name, value in first.items() if len(task) else ():
        if layout[name] != value:
            found = f"the {name} is {layout[name]}, in those before {value}"
            raise ValueError(f"In block {number} {found}. Convert it: all blocks must be alike.")
    if not sparse.issparse(X):
        return {"X": X}, None, task, vectors[1:], layout
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.astype(layout["type of X"], copy=True)  # the caller's own stays as it is
        X.sum_duplicates()
    return {"data": X.data, "indices": X.indices}, X.indptr, task, vectors[1:], layout


def _append(parts: Any, indptr: Any, order: Any, folder: Path, stage: str, types: Any) -> Any:
    """Append rows in this order to their files, piece by piece; return the length of each."""
    dense = parts.get("X")
    lengths = np.diff(indptr)[order] if dense is None else np.full(len(order), dense.shape[1])
    ends, start = np.cumsum(lengths, dtype=np.int64), 0
    while start < len(order):
        before = ends[start] - lengths[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + _PIECE, side="right")))
        places = order[start:stop]
        if dense is None:
            shifts = indptr[places] - ends[start:stop] + lengths[start:stop]
            places = np.arange(before, ends[stop - 1])
            places += np.repeat(shifts, lengths[start:stop])
        for name, part in parts.items():
            with _file(folder, name, stage).open("ab") as file:
                part[places].astype(types[name], order="C", copy=False).tofile(file)
        start = stop
    return lengths


def _types(names: Iterable[str], dtype: str, largest: int) -> dict[str, np.dtype]:
    index = "int32" if largest <= _LARGEST_INT32 else "int64"
    return {name: np.dtype(index if name == "indices" else dtype) for name in names}


def _file(folder: Path, name: str, stage: str = "rows") -> Path:
    return folder / f"{stage}.{name}"


def _map(path: Path, dtype: Any, shape: Sequence[int]) -> np.ndarray:
    wanted = np.dtype(dtype).itemsize * int(np.prod(shape))
    size = path.stat().st_size if path.is_file() else 0
    if size != wanted:
        raise ValueError(f"{path} has {size} bytes instead of {wanted}; write the rows again.")
    # An empty file cannot be mapped.
    return np.memmap(path, dtype, "r", shape=tuple(shape)) if size else np.zeros(shape, dtype)


def _clear(folder: Path, *stages: str) -> None:
    for stage in stages:
        for name in ("json", "X", "data", "indices", "indptr", "y", "task", "sample_weight"):
            _file(folder, name, stage).unlink(missing_ok=True)
