"""Objects as a tree of plain JSON and a list of arrays, and back, without running any code."""

import math
import sys
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from .container import NAMES
from .registry import FORMER_FIELDS, ModelFileError, belongs, field_types, is_saved, reader_of

KIND = "#"
TEXTS: dict[str, type] = {"tuple": tuple, "frozenset": frozenset}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MOST_LISTED = 256
"""Texts that stand in the description; more are arrays of letters."""
OBJECT_COST, LEAST_WIDTH = 80, 10
"""Bytes of a text as an object of Python, and letters in the file that pay for it; see _charge."""
JSONTree = Any


class Packer:
    """Turn objects into a tree; arrays go to ``arrays``, each once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        # By id, numbers of arrays and the arrays themselves: alive, so that no other gets the id.
        self._known: dict[int, tuple[int, np.ndarray]] = {}

    def pack(self, value: Any, place: str = "the model") -> JSONTree:
        """Tree of a value; ``place`` names it in errors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        if isinstance(value, np.generic):
            return {KIND: "scalar", "value": self._array(np.asarray(value), place)}
        if type(value) is list:
            return [self.pack(item, place) for item in value]
        if type(value) in (tuple, frozenset):
            items = sorted(value) if type(value) is frozenset else value
            if len(items) > MOST_LISTED and all(type(item) is str for item in items):
                texts = self._array(np.array(items, dtype=object), place)
                return {KIND: "texts", "of": type(value).__name__, "value": texts}
            packed = [self.pack(item, place) for item in items]
            return {KIND: type(value).__name__, "value": packed}
        if isinstance(value, dict):
            pairs = [
                [self.pack(k, place), self.pack(v, f"{place}[{k!r}]")] for k, v in value.items()
            ]
            return {KIND: "dict", "value": pairs}
        if sparse.issparse(value):
            rows = sparse.csr_array(value)
            parts = [self._array(part, place) for part in (rows.data, rows.indices, rows.indptr)]
            return {KIND: "csr", "shape": list(rows.shape), "value": parts}
        return self._object(value, place)

    def _array(self, array: np.ndarray, place: str) -> JSONTree:
        if array.dtype.kind in "UO":
            return self._text(array, place)
        if array.dtype.newbyteorder("<") not in NAMES:
            raise ModelFileError(
                f"{place} has values of type {array.dtype}, which cannot be saved."
            )
        # The order in memory is kept, so that sums are the same to the last digit.
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        if id(array) not in self._known:
            self._known[id(array)] = len(self.arrays), array
            self.arrays.append(array.T if turned else array)
        node = {KIND: "array", "value": self._known[id(array)][0]}
        return {**node, "turned": True} if turned else node

    def _text(self, array: np.ndarray, place: str) -> JSONTree:
        items = array.ravel().tolist()
        if not all(type(item) is str for item in items):
            raise ModelFileError(
                f"{place} is an array of objects, which cannot be saved; use numbers or text."
            )
        dtype = "object" if array.dtype.kind == "O" else array.dtype.str[1:]
        node = {KIND: "text", "dtype": dtype, "shape": list(array.shape)}
        # NumPy takes zeros at the end of a text for padding.
        if array.size <= MOST_LISTED or any(item.endswith("\0") for item in items):
            return {**node, "value": items}
        least = LEAST_WIDTH if dtype == "object" else array.dtype.itemsize // 4
        width = max(1, least, *map(len, items))
        letters = np.array(items, dtype=f"<U{width}").view("<u4").reshape(-1, width)
        return {**node, KIND: "letters", "value": self._array(letters, place)}

    def _object(self, value: Any, place: str) -> JSONTree:
        kind = type(value)
        if not is_saved(kind):
            raise ModelFileError(
                f"{place} is a {kind.__name__}, which cannot be saved. Set it to a number, a text "
                "or None before saving, e.g. model.set_params(cv=5)."
            )
        if isinstance(value, BaseEstimator):
            content = value._saved_state()
        elif is_dataclass(value):
            content = {field.name: getattr(value, field.name) for field in fields(value)}
        else:
            content = vars(value)
        packed = {name: self.pack(item, f"{place}.{name}") for name, item in content.items()}
        return {KIND: "object", "class": kind.__name__, "value": packed}


class Unpacker:
    """Turn a tree back into objects; whatever is not expected is refused."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays
        self._left = 3 * sum(array.nbytes for array in arrays) + 2**24

    def unpack(self, tree: JSONTree) -> Any:
        if tree is None or type(tree) in (bool, int, float, str):
            return tree
        if type(tree) is list:
            return [self.unpack(item) for item in tree]
        makers = {
            "float": lambda node: NOT_FINITE[node["value"]],
            "scalar": lambda node: self._numbers(node["value"])[()],
            "tuple": lambda node: tuple(self.unpack(item) for item in _listed(node)),
            "frozenset": lambda node: frozenset(self._key(item) for item in _listed(node)),
            "dict": lambda node: {self._key(k): self.unpack(v) for k, v in _listed(node)},
            "csr": self._csr,
            "text": self._text,
            "texts": lambda node: TEXTS[node["of"]](self.unpack(node["value"]).tolist()),
            "letters": self._letters,
            "array": self._numbers,
            "object": self._object,
        }
        try:
            return makers[tree[KIND]](tree)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError("a part of the model is not of the right form.") from None

    def _numbers(self, node: JSONTree) -> np.ndarray:
        number = node["value"]
        if node[KIND] != "array" or type(number) is not int or number < 0:
            raise ValueError
        array = self._arrays[number]
        return array.T if node.get("turned") is True else array

    def _key(self, tree: JSONTree) -> Any:
        """Key of a dict or a set: a text or a small number, of which few can have one hash."""
        key = self.unpack(tree)
        if isinstance(key, str) or (isinstance(key, int | np.integer) and abs(int(key)) < 2**31):
            return key
        raise ValueError

    def _charge(self, size: int) -> None:
        """Count bytes that are made of arrays, which a small file could make many times."""
        self._left -= size
        if self._left < 0:
            raise ValueError

    def _text(self, node: JSONTree) -> np.ndarray:
        items, dtype = _listed(node), _text_type(node)
        if not all(type(item) is str for item in items):
            raise ValueError
        if len(items) * dtype.itemsize > self._left:
            dtype = np.dtype(object)
        self._charge(len(items) * dtype.itemsize)
        array = np.empty(len(items), dtype=dtype)
        array[:] = items
        return array.reshape(node["shape"])

    def _letters(self, node: JSONTree) -> np.ndarray:
        letters, dtype = self._numbers(node["value"]), _text_type(node)
        items, width = letters.shape
        self._charge(items * (dtype.itemsize if dtype.kind == "U" else OBJECT_COST + 4 * width))
        if letters.dtype != "<u4" or letters.max(initial=0) > sys.maxunicode:
            raise ValueError
        texts = np.ascontiguousarray(letters).view(f"<U{width}").ravel()
        return texts.astype(dtype).reshape(node["shape"])

    def _csr(self, node: JSONTree) -> sparse.csr_array:
        parts = data, indices, indptr = [self._numbers(part) for part in _listed(node)]
        self._charge(sum(part.nbytes for part in parts))
        rows = sparse.csr_array((data, indices, indptr), shape=tuple(node["shape"]))
        rows.check_format(full_check=True)
        return rows

    def _object(self, node: JSONTree) -> Any:
        kind, convert = reader_of(node["class"])
        if kind is None:
            raise ModelFileError(
                f"the file holds a {str(node['class'])[:50]!r}, which this comtl does not know; "
                "install the version that wrote it, or a newer one."
            )
        content = convert({name: self.unpack(item) for name, item in node["value"].items()})
        if issubclass(kind, BaseEstimator):
            made: Any = object.__new__(kind)
            made._restore(content)
            return made
        return _made(kind, content) if is_dataclass(kind) else kind(**content)


def _listed(node: JSONTree) -> list[Any]:
    value = node["value"]
    if type(value) is not list:
        raise ValueError
    return value


def _text_type(node: JSONTree) -> np.dtype[Any]:
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in "UO" or dtype.names is not None:
        raise ValueError
    return dtype


def _made(kind: Any, content: dict[str, Any]) -> Any:
    """Dataclass of checked fields, by present or former names; missing ones take defaults."""
    types, former = field_types(kind), FORMER_FIELDS.get(kind.__name__, {})
    values = {name if name in types else former.get(name, name): v for name, v in content.items()}
    required = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    if len(values) < len(content) or not required <= values.keys() <= types.keys():
        raise ModelFileError(f"the fields of a {kind.__name__} are not those it should have.")
    for name, value in values.items():
        if not belongs(value, types[name]):
            raise ModelFileError(f"{name} of a {kind.__name__} is not of the right type.")
    return kind(**values)
