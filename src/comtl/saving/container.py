"""The file of a model: named arrays and text with a checksum."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .registry import ModelFileError
from .writing import is_special, write_atomically

FORMAT, VERSION = "comtl", 3
MOST_HEADER, MOST_AXES = 2**23, 32
ZEROS = "0" * 64
TYPES = {"BOOL": np.dtype(bool)} | {
    f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}")
    for kind, sizes in (("u", (1, 2, 4, 8)), ("i", (1, 2, 4, 8)), ("f", (2, 4, 8)))
    for size in sizes
}
"""Types of numbers by their names in safetensors, such as U8, I16 and F64."""
NAMES = {dtype: name for name, dtype in TYPES.items()}


def write_container(
    path: Path, text: str, arrays: Sequence[np.ndarray], facts: Mapping[str, str]
) -> None:
    """Write a description and its arrays atomically."""
    table: dict[str, Any] = {}
    contents, offset = [], 0
    for number, array in enumerate(arrays):
        dtype = array.dtype.newbyteorder("<")
        content = np.ascontiguousarray(array, dtype=dtype).tobytes()
        table[str(number)] = {
            "dtype": NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(content)],
        }
        offset += len(content)
        contents.append(content)
    own = {"format": FORMAT, "version": str(VERSION), "model": text, "sha256": ZEROS}
    header = json.dumps({"__metadata__": {**facts, **own}, **table}).encode("utf-8")
    # The arrays begin at a multiple of eight bytes.
    header += b" " * (-len(header) % 8)
    if not _fits(header):
        raise ModelFileError(
            f"{path} is not written: beside arrays the model holds too much text to be read back."
        )
    body = b"".join(contents)
    header = header.replace(_quoted(ZEROS), _quoted(_digest(header, body)))
    write_atomically(path, len(header).to_bytes(8, "little") + header + body)


def read_container(path: Path) -> tuple[str, list[np.ndarray]]:
    """Description and arrays of a file."""
    if is_special(path):
        raise ModelFileError(f"{path} is a pipe or a device, not a model file of comtl.")
    content = memoryview(path.read_bytes())
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 + length or length < 2:
        raise ModelFileError(f"{path} is not a model file of comtl, or it is empty or incomplete.")
    header, body = bytes(content[8 : 8 + min(length, MOST_HEADER + 1)]), content[8 + length :]
    if not _fits(header):
        raise ModelFileError(f"{path} is not a model file of comtl: its header is too large.")
    try:
        table = json.loads(header.decode("ascii"))
        metadata = table.pop("__metadata__")
        ours = metadata["format"] == FORMAT
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ModelFileError(f"{path} is not a model file of comtl, or it is damaged.") from None
    if not ours:
        raise ModelFileError(f"{path} is a safetensors file without a model of comtl.")
    try:
        text, version = _checked(metadata, header, body)
        arrays = _arrays(table, body)
    except (KeyError, TypeError, ValueError):
        raise ModelFileError(
            f"{path} is damaged or was edited: its checksum does not match. Save the model again."
        ) from None
    if version > VERSION:
        raise ModelFileError(
            f"{path} has format {version}; this comtl reads up to {VERSION}: install a newer comtl."
        )
    return text, arrays


def _fits(header: bytes) -> bool:
    """Whether what a header describes stays small: a tree of JSON costs up to 144 bytes a node."""
    nodes = sum(header.count(mark) for mark in (b",", b":", b"[", b"{"))
    return len(header) <= MOST_HEADER and 144 * nodes <= 2 * len(header) + 2**24


def _checked(metadata: dict[str, str], header: bytes, body: memoryview) -> tuple[str, int]:
    """Description and version, once the checksum is known to be that of the file."""
    claimed, version = metadata["sha256"], metadata["version"]
    blank = header.replace(_quoted(claimed), _quoted(ZEROS))
    right = len(claimed) == 64 and header.count(_quoted(claimed)) == 1
    if not right or _digest(blank, body) != claimed:
        raise ValueError
    if not all(isinstance(value, str) for value in metadata.values()) or len(version) > 6:
        raise ValueError
    return metadata["model"], int(version)


def _arrays(table: dict[str, Any], body: memoryview) -> list[np.ndarray]:
    """The arrays in their order; they must fill the body exactly."""
    arrays, offset = [], 0
    for number in range(len(table)):
        entry = table[str(number)]
        dtype, (start, stop) = TYPES[entry["dtype"]], entry["data_offsets"]
        shape = [_count(side) for side in entry["shape"]]
        if len(shape) > MOST_AXES:
            raise ValueError
        size = prod(shape) * dtype.itemsize
        if _count(start) != offset or _count(stop) != offset + size or stop > len(body):
            raise ValueError
        part = body[start:stop]
        if dtype.kind == "b" and np.any(np.frombuffer(part, dtype=np.uint8) > 1):
            raise ValueError
        # A copy: its memory is aligned and may be written to.
        arrays.append(np.frombuffer(part, dtype=dtype).reshape(shape).copy())
        offset = stop
    if offset != len(body):
        raise ValueError
    return arrays


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _digest(header: bytes, body: bytes | memoryview) -> str:
    digest = hashlib.sha256(header)
    digest.update(body)
    return digest.hexdigest()


def _quoted(text: str) -> bytes:
    return f'"sha256": "{text}"'.encode()
