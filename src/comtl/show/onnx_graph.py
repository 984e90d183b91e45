"""Linear prediction as an ONNX graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..models.outputs import ClassifierOutputs
from ..models.task_model import TaskModel
from ..stacking.hinges import Hinges
from ..stacking.multitask import MultitaskModel

OPSET, ML_OPSET = 18, 3


@dataclass(eq=False)
class Graph:
    """Nodes and constants of a graph in the making."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, value: np.ndarray) -> str:
        """Name of a constant."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def apply(self, kind: str, *inputs: str, name: str | None = None, **settings: Any) -> str:
        """Name of the result of an operation."""
        from onnx import helper

        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **settings))
        return name


def to_onnx(model: TaskModel) -> Any:
    """Return a fitted model as an ONNX model.

    Inputs are ``X`` (rows without the task column, in the type of the weights) and ``task`` (its
    labels; none where there is one task without a label, or a column of ``y`` for each). A label
    that fit never saw gets the mean of all tasks, whatever ``unseen_task`` says. Outputs are
    ``prediction`` and, of a classifier, ``scores`` as in ``decision_function`` (beyond two classes
    minus infinity for classes that the task never saw) and for two classes by logistic loss
    ``probability``, that of the second as in ``predict_proba``.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier.

    Returns
    -------
    onnx.ModelProto
        The graph, which ``onnxruntime`` runs.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import IndependentRegressor
    >>> from comtl.show.onnx_graph import to_onnx
    >>> X, task = np.arange(6.0)[:, None], np.array(["a", "b"] * 3)
    >>> model = IndependentRegressor().fit(X, X[:, 0], task=task)
    >>> [one.name for one in to_onnx(model).graph.input]
    ['X', 'task']
    """
    try:
        from onnx import TensorProto, helper
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_onnx needs onnx: pip install onnx", name="onnx") from None

    graph = Graph()
    shared = model._linear.weights.shared
    dtype = helper.np_dtype_to_tensor_dtype(shared.dtype)
    hinges = model._hinges if isinstance(model, MultitaskModel) else None
    width = len(shared) - (0 if hinges is None else len(hinges.columns))
    inputs = [helper.make_tensor_value_info("X", dtype, ["rows", width])]
    rows = "X" if hinges is None else _with_hinges(graph, hinges, shared.dtype)
    codes = None
    if model._multi_output:
        scores = _table(graph, model, rows)
    else:
        if len(model.tasks_) > 1 or model.task_column is not None:
            text = model.tasks_.dtype.kind == "U"
            labels = TensorProto.STRING if text else TensorProto.INT64
            inputs.append(helper.make_tensor_value_info("task", labels, ["rows"]))
            codes = _codes(graph, model.tasks_)
        scores = _scores(graph, model, rows, codes)
    outputs = _outputs(graph, model, scores, codes, dtype)
    made = helper.make_graph(graph.nodes, type(model).__name__, inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(made, opset_imports=opsets, producer_name="comtl", ir_version=9)


def _with_hinges(graph: Graph, hinges: Hinges, dtype: Any) -> str:
    if not len(hinges.columns):
        return "X"
    chosen = graph.apply("Gather", "X", graph.constant(hinges.columns.astype(np.int64)), axis=1)
    above = graph.apply("Sub", chosen, graph.constant(hinges.knots.astype(dtype)))
    return graph.apply("Concat", "X", graph.apply("Relu", above), axis=1)


def _table(graph: Graph, model: TaskModel, rows: str) -> str:
    """Scores of every row for every task."""
    product = graph.apply("MatMul", rows, graph.constant(model._linear.weights.coef.T))
    return graph.apply("Add", product, graph.constant(model._linear.weights.intercepts))


def _codes(graph: Graph, tasks: np.ndarray) -> str:
    """Number of each row's task; that of the means for a label never seen."""
    text = tasks.dtype.kind == "U"
    keys = {"keys_strings" if text else "keys_int64s": tasks.astype(str if text else int).tolist()}
    return graph.apply(
        "LabelEncoder",
        "task",
        domain="ai.onnx.ml",
        **keys,
        values_int64s=list(range(len(tasks))),
        default_int64=len(tasks),
    )


def _scores(graph: Graph, model: TaskModel, rows: str, codes: str | None) -> str:
    """Scores of each row for its task, beyond two classes a column for each class."""
    everyone, index = model._linear.extended, model._linear.columns.index
    weights = graph.constant(everyone.coef)
    offsets = graph.constant(everyone.intercepts)
    if codes is None:
        # One task: the first line of every table, as often as there are rows.
        shape = graph.apply("Shape", rows, start=0, end=1)
        codes = graph.apply("Expand", graph.constant(np.zeros(1, np.int64)), shape)
    if index is not None:
        places = model._linear.columns.places.astype(np.int64)
        own = graph.apply("Gather", graph.constant(places), codes, axis=0)
        codes = graph.apply("Max", own, graph.constant(np.zeros(1, np.int64)))
        rows = graph.apply("Unsqueeze", rows, graph.constant(np.ones(1, np.int64)))
    product = graph.apply("Mul", graph.apply("Gather", weights, codes, axis=0), rows)
    last = graph.constant(np.array([-1], np.int64))
    total = graph.apply("ReduceSum", product, last, keepdims=0)
    scores = graph.apply("Add", total, graph.apply("Gather", offsets, codes, axis=0))
    if index is None:
        return scores
    never = graph.apply("Less", own, graph.constant(np.zeros(1, np.int64)))
    lowest = graph.constant(np.full(1, -np.inf, dtype=everyone.shared.dtype))
    return graph.apply("Where", never, lowest, scores)


def _odds(graph: Graph, model: ClassifierOutputs, scores: str, codes: str | None) -> str:
    """Scores without the thresholds, of which probabilities are made."""
    everyone = None if model._multi_output else np.arange(len(model.tasks_) + 1)
    thresholds = model._thresholds_of(everyone)
    if thresholds is None or not thresholds.any():
        return scores
    thresholds = thresholds.astype(model._linear.weights.shared.dtype)
    if codes is not None:
        return graph.apply(
            "Add", scores, graph.apply("Gather", graph.constant(thresholds), codes, axis=0)
        )
    return graph.apply(
        "Add", scores, graph.constant(thresholds if model._multi_output else thresholds[:1])
    )


def _outputs(
    graph: Graph, model: TaskModel, scores: str, codes: str | None, dtype: int
) -> list[Any]:
    from onnx import TensorProto, helper

    across = ["tasks"] if model._multi_output else []
    if not isinstance(model, ClassifierOutputs):
        operator = model._link.onnx_operator
        assert operator is not None
        graph.apply(operator, scores, name="prediction")
        return [helper.make_tensor_value_info("prediction", dtype, ["rows", *across])]
    several = model._linear.columns.index is not None
    if several:
        chosen = graph.apply("ArgMax", scores, axis=1, keepdims=0)
    else:
        zero = graph.constant(np.zeros((), dtype=model._linear.weights.shared.dtype))
        positive = graph.apply("Greater", scores, zero)
        chosen = graph.apply("Cast", positive, to=int(TensorProto.INT64))
    classes = model.classes_
    if classes.dtype.kind == "U":
        classes = classes.astype(object)
    graph.apply("Gather", graph.constant(classes), chosen, axis=0, name="prediction")
    graph.apply("Identity", scores, name="scores")
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    wide = ["classes"] if several else across
    outputs = [
        helper.make_tensor_value_info("prediction", kind, ["rows", *across]),
        helper.make_tensor_value_info("scores", dtype, ["rows", *wide]),
    ]
    operator = model._link.onnx_operator
    if operator is not None and not several:
        graph.apply(operator, _odds(graph, model, scores, codes), name="probability")
        outputs.append(helper.make_tensor_value_info("probability", dtype, ["rows", *across]))
    return outputs
