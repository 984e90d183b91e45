"""Models in files: what comes back, what is refused, what a crash leaves."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from functools import partial, reduce
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import comtl
from comtl import baselines
from comtl.saving import ModelFileError, read, save
from comtl.saving.container import VERSION, ZEROS, _quoted

rng = np.random.default_rng(0)
TASK = np.repeat([f"task {i}" for i in range(5)], 16)
X = rng.normal(size=(80, 4))
Y = X @ rng.normal(size=4) + np.repeat(rng.normal(size=5), 16) + 0.3 * rng.normal(size=80)
# The depth at which a Python without limits of C of its own stops too: three calls a level.
DEEP = reduce(lambda inner, _: {"#": "tuple", "value": [inner]}, range(400), [])
NAMES = [
    name
    for name in (*comtl.__all__, *baselines.__all__)
    if name.endswith(("Regressor", "Classifier", "CV"))
]


def made(name):
    kind = getattr(comtl, name, None) or getattr(baselines, name)
    if name.endswith("CV"):
        return kind(2, alphas=(0.1, 1.0), cv=2) if "Bi" in name else kind(2, 2, alphas=(1.0,), cv=2)
    return kind(cv=2) if name.startswith("Multitask") else kind()


def targets(name):
    return np.digitize(Y, [-1.0, 1.0]) if "Classifier" in name else Y


def same_words(one, other, rows=X, task=TASK):
    np.testing.assert_array_equal(one.predict(rows, task=task), other.predict(rows, task=task))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.task_clusters_, other.task_clusters_)
    assert one.get_params() == other.get_params()
    assert vars(one).keys() == vars(other).keys()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_comes_back_the_same(name, tmp_path):
    model = made(name).fit(X, targets(name), task=TASK)
    model.save(tmp_path / "m.comtl")
    back = comtl.load(tmp_path / "m.comtl")
    same_words(model, back)
    new = np.full(10, "a new task")
    if "adapt" in dir(model):
        told = [one.adapt(X[:10], targets(name)[:10], task=new) for one in (model, back)]
        same_words(*told, X[:10], new)
    for method in {"predict_interval", "predict_proba"} & {*dir(model)}:
        one, other = (getattr(each, method)(X, task=TASK) for each in (model, back))
        np.testing.assert_array_equal(one, other)
    clone(back).fit(X, targets(name), task=TASK)


@pytest.mark.parametrize("name", ["MultitaskRegressor", "TriFactorClassifier"])
def test_joblib_and_skops_bring_models_back(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    model = made(name).fit(X, targets(name), task=TASK)
    joblib.dump(model, tmp_path / "m.joblib")
    same_words(model, joblib.load(tmp_path / "m.joblib"))
    skops.dump(model, tmp_path / "m.skops")
    trusted = skops.get_untrusted_types(file=tmp_path / "m.skops")
    assert all(one.startswith("comtl.") or one == "builtins.frozenset" for one in trusted)
    same_words(model, skops.load(tmp_path / "m.skops", trusted=trusted))


def test_odd_parts_come_back(tmp_path):
    frame = pd.DataFrame(X.astype(np.float32), columns=["α", "b", "c", "d"]).assign(school=TASK)
    options = {"shared": True, "task_column": "school"}
    model = comtl.TriFactorRegressor(2, 3, **options).fit(frame, Y.astype(np.float32))
    model.save(tmp_path / "m.comtl")
    back = comtl.load(str(tmp_path / "m.comtl"))
    assert back.feature_names_in_.tolist() == ["α", "b", "c", "d", "school"]
    assert back.coef_.dtype == np.float32
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    rows = sparse.csr_array(X)
    told = comtl.BiFactorRegressor(2).fit(rows, Y, task=TASK).adapt(rows[:9], Y[:9], ["new"] * 9)
    told.save(tmp_path / "m.comtl")
    back = comtl.load(tmp_path / "m.comtl")
    np.testing.assert_array_equal(back.coef_, told.coef_)


def test_clusters_and_hinges_come_back(tmp_path):
    hard = comtl.TriFactorRegressor(2, 2, feature_penalty="clusters", task_penalty="clusters")
    bent = comtl.MultitaskRegressor(cv=2, form="hinges")
    for model in (hard, bent):
        model.fit(X, Y + np.abs(X[:, 0]), task=TASK).save(tmp_path / "m.comtl")
        same_words(model, comtl.load(tmp_path / "m.comtl"))


def test_a_model_needs_neither_its_data_nor_this_process(tmp_path):
    model = comtl.HierarchicalRegressor().fit(X, Y, task=TASK)
    model.save(tmp_path / "m.comtl")
    np.save(tmp_path / "x.npy", X[:3])
    code = """
        import sys, numpy as np, comtl
        model = comtl.load(sys.argv[1] + "/m.comtl")
        rows = np.load(sys.argv[1] + "/x.npy")
        print(model.predict(rows, task=["task 0"] * 3).tolist())
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout) == model.predict(X[:3], task=["task 0"] * 3).tolist()


def test_safetensors_reads_the_file(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    model = comtl.BiFactorRegressor(2).fit(X, Y, task=TASK)
    model.save(tmp_path / "m.comtl")
    arrays, F = safetensors.load_file(tmp_path / "m.comtl").values(), model._state.factors.F
    assert any(np.array_equal(array, turned) for array in arrays for turned in (F, F.T))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (comtl.BiFactorRegressor(2, random_state=np.random.RandomState(0)), "random_state"),
        (comtl.MultitaskRegressor(cv=KFold(3)), "cv"),
    ],
)
def test_what_cannot_be_saved_is_named(model, words, tmp_path):
    model.fit(X, Y, task=TASK)
    with pytest.raises(ModelFileError, match=f"{words} is a .*set_params"):
        model.save(tmp_path / "m.comtl")
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_fit_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        comtl.BiFactorRegressor().save(tmp_path / "m.comtl")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "m.comtl"
    comtl.MultitaskRegressor(cv=2).fit(X[:, :2], Y, task=TASK).save(path)
    return path.read_bytes()


def refused(content, folder, text=""):
    path = folder / "bad.comtl"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"bad\.comtl.*{text}"):
        comtl.load(path)


def test_ten_thousand_corruptions_are_refused(small, tmp_path):
    chance = np.random.default_rng(1)
    path = tmp_path / "bad.comtl"
    for number in range(10_000):
        content = bytearray(small)
        first, second = sorted(chance.integers(len(small), size=2).tolist())
        kind = number % 5
        if kind == 0:
            content[first] ^= 1 << int(chance.integers(8))
        elif kind == 1:
            del content[first:]
        elif kind == 2:
            half = (first + second) // 2
            content[first:second] = small[half:second] + small[first:half]
        elif kind == 3:
            content[first:second] = b""
        else:
            content += chance.bytes(1 + first % 9)
        if bytes(content) == small:
            continue
        path.write_bytes(content)
        with pytest.raises(ModelFileError):
            comtl.load(path)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.comtl"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"12345678",
        b"\x80\x04\x95pickle",
        b"PK\x03\x04" + b"0" * 200,
        b"\xff" * 100,
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{}",
        (30).to_bytes(8, "little") + b'{"__metadata__":{"format":"x"}}'[:30],
        (40_000).to_bytes(8, "little") + b"[" * 40_000,
    ],
    ids=["empty", "length", "pickle", "zip", "huge", "list", "bare", "cut", "deep"],
)
def test_other_files_are_refused(content, tmp_path):
    refused(content, tmp_path)


def forged(small, change):
    """The file with its description changed and every checksum made right again."""
    length = int.from_bytes(small[:8], "little")
    header, body = json.loads(small[8 : 8 + length]), small[8 + length :]
    metadata = header["__metadata__"]
    model = json.loads(metadata["model"])
    body = change(header, model, body) or body
    metadata["model"], metadata["sha256"] = json.dumps(model), ZEROS
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text)
    digest.update(body)
    text = text.replace(_quoted(ZEROS), _quoted(digest.hexdigest()))
    return len(text).to_bytes(8, "little") + text + body


def put(*path, value):
    def change(header, model, body):
        node = {"header": header, "model": model}[path[0]]
        for key in path[1:-1]:
            node = node[key]
        node[path[-1]] = value

    return change


STATE = ("model", "value")


def shared(value):
    return put(*STATE, "_linear", "value", "shared", value=value)


FORGERIES = {
    "unknown class": put("model", "class", value="Popen"),
    "abstract class": put("model", "class", value="TaskModel"),
    "builtin": put("model", "class", value="dict"),
    "a method": put(*STATE, "predict", value="gone"),
    "dunder": put(*STATE, "__class__", value="gone"),
    "no weights": put(*STATE, "_linear", value=None),
    "weights of text": shared("text"),
    "weights of others": shared({"#": "array", "value": 1}),
    "no such array": shared({"#": "array", "value": 9999}),
    "negative array": shared({"#": "array", "value": -1}),
    "unknown node": put(*STATE, "cv", value={"#": "eval", "value": "1"}),
    "unhashable key": put(*STATE, "cv", value={"#": "dict", "value": [[[], 1]]}),
    "missing field": lambda header, model, body: (
        model["value"]["_units"]["value"].popitem() and None
    ),
    "further field": put(*STATE, "_units", "value", "more", value=1),
    "bad shape": put("header", "0", "shape", value=[2**40, 2**40]),
    "negative shape": put("header", "0", "shape", value=[-1]),
    "bad offsets": put("header", "1", "data_offsets", value=[0, 8]),
    "bad type": put("header", "0", "dtype", value="O8"),
    "deep": put(*STATE, "cv", value=DEEP),
    "version": put("header", "__metadata__", "version", value=str(VERSION + 1)),
    "no version": put("header", "__metadata__", "version", value="one"),
    "numbers": put("header", "__metadata__", "more", value=3),
    "tail": lambda header, model, body: body + b"0",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name, small, tmp_path):
    remedy = "install a newer comtl" if name == "version" else ""
    refused(forged(small, FORGERIES[name]), tmp_path, remedy)


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    path = tmp_path_factory.mktemp("cut") / "m.comtl"
    model = comtl.MultitaskClassifier(cv=2, threshold="balanced_accuracy")
    model.fit(X, Y > np.quantile(Y, 0.8), task=TASK).save(path)
    assert np.all(model.thresholds_ != 0.0)
    return model, path.read_bytes()


def test_a_cut_comes_back(cut, tmp_path):
    model, content = cut
    (tmp_path / "m.comtl").write_bytes(content)
    back = comtl.load(tmp_path / "m.comtl")
    same_words(model, back)
    np.testing.assert_array_equal(back.thresholds_, model.thresholds_)
    for name in ("decision_function", "predict_proba"):
        one, other = (getattr(each, name)(X, task=TASK) for each in (model, back))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "value", [None, 0.5, {"#": "text", "dtype": "U1", "shape": [5], "value": list("abcde")}]
)
def test_cuts_of_others_are_refused(value, cut, tmp_path):
    refused(forged(cut[1], put(*STATE, "thresholds_", value=value)), tmp_path)


def test_parameters_that_came_later_take_their_defaults(small, tmp_path):
    path = tmp_path / "m.comtl"
    path.write_bytes(forged(small, lambda header, model, body: model["value"].pop("n_jobs")))
    model = comtl.load(path)
    assert model.n_jobs is None and model.predict(X[:, :2], task=TASK).shape == (80,)


MODELS = sorted((Path(__file__).parent / "models").glob("*/*.comtl"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_models_of_earlier_commits_say_the_same(path):
    facts = json.loads((path.parent / "said.json").read_text())
    model = comtl.load(path)
    if path.stem in facts["tables"]:
        said, rows, task = facts["tables"][path.stem], pd.DataFrame(facts["frame"]), {}
    else:
        said, rows, task = facts["said"][path.stem], np.array(facts["rows"]), {}
        if np.ndim(said["predict"]) == 1:
            task = {"task": np.array(facts["task"])}
    assert said.keys() >= {"predict"}
    for name, values in said.items():
        found = np.asarray(getattr(model, name)(rows, **task))
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-14)
        else:
            assert found.tolist() == values


def test_models_of_earlier_commits_are_there():
    names = {path.stem for path in MODELS if path.parent.name == "bff0bb7"}
    facts = json.loads((MODELS[0].parent / "said.json").read_text())
    assert names == facts["said"].keys() | facts["tables"].keys() and len(names) == 53


def test_a_save_killed_at_any_time_leaves_a_file_that_reads(tmp_path):
    path = tmp_path / "m.comtl"
    wide = np.random.default_rng(0).normal(size=(80, 400))
    comtl.BiFactorRegressor(2, max_iter=1, alpha_task=1.0).fit(wide, Y, task=TASK).save(path)
    code = """
        import sys, warnings, comtl
        warnings.simplefilter("ignore")
        model = comtl.load(sys.argv[1])
        print("ready", flush=True)
        number = 0
        while True:
            number += 1
            model.set_params(alpha_task=float(number)).save(sys.argv[1])
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for wait in (0.0, 0.003, 0.011, 0.03, 0.07):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(path)],
            stdout=subprocess.PIPE,
            env=environment,
        )
        child.stdout.readline()
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert comtl.load(path).alpha_task >= 1.0


def node(kind, **parts):
    return {"#": kind, **parts}


def one_array(header, model, body, value):
    """A megabyte of zeros as the one array of the file, and a description that uses it."""
    header["0"] = {"dtype": "U32", "shape": [2**14, 16], "data_offsets": [0, 2**20]}
    for number in range(1, len(header) - 1):
        del header[str(number)]
    model["value"]["cv"] = value
    return bytes(2**20)


def keys(values):
    return node("dict", value=[[value, 1] for value in values])


ARRAY = node("array", value=0)
GREEDY = {
    "wide text": put(
        *STATE, "cv", value=node("text", dtype="U99999", shape=[2000], value=[""] * 2000)
    ),
    "wide letters": partial(
        one_array, value=node("letters", dtype="U99999", shape=[2**14], value=ARRAY)
    ),
    "letters of one array": partial(
        one_array, value=[node("letters", dtype="U16", shape=[2**14], value=ARRAY)] * 1000
    ),
    "objects of one array": partial(
        one_array, value=[node("letters", dtype="object", shape=[2**14], value=ARRAY)] * 1000
    ),
    "sets of one array": partial(
        one_array,
        value=[
            node("texts", of="tuple", value=node("letters", dtype="O", shape=[2**14], value=ARRAY))
        ]
        * 1000,
    ),
    "matrices of one array": partial(
        one_array, value=[node("csr", shape=[1, 1], value=[ARRAY, ARRAY, ARRAY])] * 1000
    ),
    "no letter": partial(
        one_array, value=node("letters", dtype="U4", shape=[2**16], value=node("array", value=1))
    ),
    "empty lists": put(*STATE, "cv", value=[[]] * 2**21),
    "empty dicts": put(*STATE, "cv", value=[{}] * 2**21),
    "numbers": put(*STATE, "cv", value=[7.5] * 2**20),
    "colliding keys": put(*STATE, "cv", value=keys(k * (2**61 - 1) for k in range(20_000))),
    "large keys": put(*STATE, "cv", value=keys(k << 40 for k in range(20_000))),
    "keys of floats": put(*STATE, "cv", value=keys([0.5])),
    "factors wider than their file": put(*STATE, "_widths", value=node("tuple", value=[1, 2**60])),
    "axes": put("header", "0", "shape", value=[1] * 1000),
    "huge axes": put("header", "0", "shape", value=[0, 2**62, 2**62]),
    "huge number": put(*STATE, "_widths", value=node("tuple", value=[10**400, 1])),
}


@pytest.mark.parametrize("name", GREEDY)
def test_small_files_take_little_memory_and_time(name, small, tmp_path):
    path = tmp_path / "bad.comtl"
    path.write_bytes(forged(small, GREEDY[name]))
    tracemalloc.start()
    begun = time.perf_counter()
    with contextlib.suppress(ModelFileError):
        comtl.load(path)
    spent, (_, peak) = time.perf_counter() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 4 * path.stat().st_size + 2**26
    assert spent < 20


@pytest.mark.parametrize(
    "value",
    [[1, 2], 1.5, None, {"fingerprint": "", "parts": {}}, comtl.linear.OutputColumns.seen],
    ids=["list", "float", "none", "checkpoint", "part"],
)
def test_files_without_a_model_are_refused(value, tmp_path):
    if callable(value):
        value = value(np.ones((2, 3), dtype=bool))
    save(value, tmp_path / "bad.comtl")
    with pytest.raises(ModelFileError, match=r"bad\.comtl holds no model"):
        comtl.load(tmp_path / "bad.comtl")


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="pipe is a pipe or a device"):
        comtl.load(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        comtl.load(tmp_path)


@pytest.mark.parametrize("dtype", [object, "U"])
def test_many_names_of_tasks_come_back(dtype, tmp_path):
    names = np.array([f"task {i} äœ" + "z" * (i % 7) for i in range(20_000)], dtype=dtype)
    model = baselines.IndependentRegressor().fit(
        np.arange(40_000.0)[:, None], np.arange(40_000.0), task=np.repeat(names, 2)
    )
    model.save(tmp_path / "m.comtl")
    tracemalloc.start()
    back = comtl.load(tmp_path / "m.comtl")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert back.tasks_.dtype == model.tasks_.dtype
    assert back.tasks_.tolist() == model.tasks_.tolist()
    assert peak <= 4 * (tmp_path / "m.comtl").stat().st_size + 2**26


def test_odd_texts_come_back(tmp_path):
    for names in (["", "a\0", "b"], [f"{i}\0" for i in range(300)], ["\ud800"] * 300, [""] * 300):
        value = [np.array(names, dtype=object), tuple(names), frozenset(names), np.array(names)]
        save(value, tmp_path / "parts.comtl")
        back = read(tmp_path / "parts.comtl")
        assert [type(one) for one in back] == [type(one) for one in value]
        assert back[0].tolist() == names and back[1:3] == value[1:3]
        np.testing.assert_array_equal(back[3], value[3])


def test_too_much_text_is_refused_before_it_is_written(tmp_path):
    with pytest.raises(ModelFileError, match="too much text"):
        save([[]] * 500_000, tmp_path / "m.comtl")
    assert not list(tmp_path.iterdir())


def test_no_model_is_left_out():
    assert len(NAMES) == 32
