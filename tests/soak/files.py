"""Model files damaged at random, also with checksums made right again."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import tracemalloc
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import comtl
from comtl import baselines
from comtl.saving import ModelFileError
from comtl.saving.container import ZEROS
from comtl.tables import fit_table, load_model
from small_tables import problem, pupils

from .attack import Figures

WATCHED = {
    "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class",
    "marshal.loads", "socket.connect", "ctypes.dlopen", "os.remove", "shutil.rmtree",
}  # fmt: skip
_seen: list[str] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event in WATCHED or writes:
        _seen.append(event)


sys.addaudithook(_audit)


@cache
def models() -> list[bytes]:
    """Files of models of every family."""
    import tempfile

    kinds = [
        comtl.BiFactorRegressor(2),
        comtl.TriFactorClassifier(2, 2, feature_penalty="clusters", task_penalty="clusters"),
        comtl.HierarchicalRegressor(),
        comtl.MultitaskRegressor(cv=2, form="hinges"),
        comtl.MultitaskClassifier(cv=2, threshold="balanced_accuracy"),
        comtl.BiFactorRegressorCV(2, alphas=(0.1, 1.0), cv=2),
        baselines.GroupOverlapRegressor(2),
    ]
    contents = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.comtl"
        for kind in kinds:
            X, y, task = problem(type(kind))
            kind.fit(X, y, task=task).save(path)
            contents.append(path.read_bytes())
        fit_table(pupils(), task="school", target="score", model="hierarchical").save(path)
        contents.append(path.read_bytes())
    return contents


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    global _seen
    old = models()[rng.integers(len(models()))]
    forge = rng.random() < 0.7
    new = forged(old, rng) if forge else damaged(old, rng)
    path = folder / "bad.comtl"
    path.write_bytes(new)
    bounded = rng.random() < 0.2
    if bounded:
        tracemalloc.start()
    begun, _seen = time.perf_counter(), []
    try:
        (load_model if rng.random() < 0.2 else comtl.load)(path)
        outcome = "loaded"
    except ModelFileError as error:
        assert "\n" not in str(error), error
        assert str(path) in str(error), error
        outcome = "refused"
    # A table's model that is a plain model, and the reverse.
    except ValueError as error:
        assert "fit_table" in str(error) or "comtl fit" in str(error), error
        outcome = "refused"
    finally:
        events, _seen = _seen, None
        peak = tracemalloc.get_traced_memory()[1] if bounded else 0
        tracemalloc.stop()
    assert not events, events
    assert peak <= 4 * len(new) + 2**26, (peak, len(new))
    assert time.perf_counter() - begun < 30
    assert outcome == "refused" or forge or new == old
    return outcome


def damaged(old: bytes, rng: np.random.Generator) -> bytes:
    """Bits turned over, parts cut out, moved, repeated, or others put in."""
    content = bytearray(old)
    for _ in range(rng.integers(1, 4)):
        first, second = sorted(rng.integers(len(content) + 1, size=2).tolist())
        kind = rng.integers(5)
        if kind == 0 and first < len(content):
            content[first] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del content[first:second]
        elif kind == 2:
            content[first:first] = content[first:second]
        elif kind == 3:
            content[first:second] = rng.bytes(second - first)
        else:
            del content[first:]
    return bytes(content)


def forged(old: bytes, rng: np.random.Generator) -> bytes:
    """Header, description or arrays changed, and the checksum made right again."""
    length = int.from_bytes(old[:8], "little")
    header, body = json.loads(old[8 : 8 + length]), bytearray(old[8 + length :])
    metadata = header["__metadata__"]
    tree = json.loads(metadata["model"])
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(4)
        if kind == 0 and body:
            place = int(rng.integers(len(body)))
            body[place : place + 8] = rng.bytes(min(8, len(body) - place))
        elif kind == 1:
            change({"": header}, rng, tree)
        else:
            change({"": tree}, rng, tree)
    # What a change made of these would not be a file of ours.
    header["__metadata__"] = metadata
    metadata |= {"model": json.dumps(tree), "sha256": ZEROS, "format": "comtl"}
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text + body).hexdigest()
    text = text.replace(ZEROS.encode(), digest.encode())
    return len(text).to_bytes(8, "little") + text + bytes(body)


HOSTILE: list[Any] = [
    None, True, -1, 0, 2**31, 2**70, 10**400, 1e308, 0.5, "", "x" * 1000, "nan", "\ud800", [], {},
    [[]] * 1000, {"#": "array", "value": 0}, {"#": "array", "value": 1, "turned": True},
    {"#": "object", "class": "Popen", "value": {"args": ["true"]}},
    {"#": "object", "class": "Scaling", "value": {}}, {"#": "float", "value": "nan"},
    {"#": "text", "dtype": "U99999", "shape": [50], "value": [""] * 50},
    {"#": "letters", "dtype": "U9", "shape": [4], "value": {"#": "array", "value": 0}},
    {"#": "dict", "value": [[k * (2**61 - 1), 1] for k in range(500)]},
    {"#": "csr", "shape": [2**40, 2**40], "value": [{"#": "array", "value": 0}] * 3},
]  # fmt: skip


def change(root: dict[str, Any], rng: np.random.Generator, other: Any) -> None:
    """Replace, remove, repeat or rename a node of a tree."""
    nodes = list(_nodes(root))
    parent, key = nodes[rng.integers(len(nodes))]
    kind = rng.integers(5)
    if kind == 0:
        # A copy, which later changes may change.
        parent[key] = deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
    elif kind == 1:
        others = list(_nodes({"": other}))
        container, name = others[rng.integers(len(others))]
        parent[key] = json.loads(json.dumps(container[name]))
    elif kind == 2 and key != "":
        del parent[key]
    elif kind == 3 and isinstance(parent, dict) and key != "":
        parent[str(HOSTILE[rng.integers(len(HOSTILE))])[:40]] = parent.pop(key)
    elif isinstance(parent, list):
        parent[:] = parent * int(rng.integers(0, 4))
    elif isinstance(parent[key], int | float):
        parent[key] *= int(rng.choice([-1, 2, 1000]))


def _nodes(tree: Any) -> Any:
    """Container and key of every node."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _nodes(value)
