"""Prediction as an ONNX graph."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..evaluation.reference_models import choose_hinges
from ..models.outputs import ClassifierOutputs
from ..models.task_model import TaskModel
from ..stacking.fitted_stack import FittedStack
from ..stacking.hinges import Hinges
from .onnx_trees import tree_scores

OPSET = 18
FOR_LINEAR, FOR_TREES = (3, 9), (5, 10)
"""Opset of ai.onnx.ml and version of the format: linear models ask less of a runtime."""


@dataclass(eq=False)
class Graph:
    """Nodes and constants of a graph in the making."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def apply(
        self, kind: str, *inputs: str | np.ndarray, name: str | None = None, **settings: Any
    ) -> str:
        """Name of the result of an operation on other results and on constants."""
        from onnx import helper

        name = name or f"{kind.lower()}_{len(self.nodes)}"
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        self.nodes.append(helper.make_node(kind, names, [name], **settings))
        return name

    def _constant(self, value: np.ndarray) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name


def to_onnx(model: TaskModel) -> Any:
    """Return a fitted model as an ONNX model.

    Inputs are ``X`` (rows without the task column, in the type of the weights) and ``task`` (its
    labels; none where there is one task without a label, or a column of ``y`` for each). A label
    that fit never saw gets the mean of all tasks, whatever ``unseen_task`` says. Outputs are
    ``prediction`` and, of a classifier, ``scores`` as in ``decision_function`` (beyond two classes
    minus infinity for classes that the task never saw) and for two classes by logistic loss
    ``probability``, that of the second as in ``predict_proba``. Trees need a runtime that knows
    opset 5 of ``ai.onnx.ml``, such as onnxruntime from 1.20 on.
    """
    try:
        from onnx import TensorProto, helper
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_onnx needs onnx: pip install onnx", name="onnx") from None

    graph, weights = Graph(), model._linear.weights
    dtype = helper.np_dtype_to_tensor_dtype(weights.shared.dtype)
    hinges = choose_hinges(model)
    width = len(weights.shared) - len(hinges.columns)
    inputs = [helper.make_tensor_value_info("X", dtype, ["rows", width])]
    rows, codes = _with_hinges(graph, hinges, weights.shared.dtype), None
    trees = vars(model).get("_nonlinear")
    if model._multi_output:
        scores = graph.apply("Add", graph.apply("MatMul", rows, weights.coef.T), weights.intercepts)
        if trees is not None:
            size = graph.apply("Shape", scores)
            columns = graph.apply("Expand", np.arange(weights.n_columns), size)
            added = tree_scores(graph.apply, trees, model._linear, columns)
            scores = graph.apply("Add", scores, added)
    else:
        if len(model.tasks_) > 1 or model.task_column is not None:
            text = model.tasks_.dtype.kind == "U"
            labels = TensorProto.STRING if text else TensorProto.INT64
            inputs.append(helper.make_tensor_value_info("task", labels, ["rows"]))
            codes = _codes(graph, model.tasks_)
        else:
            # One task: the first line of every table, as often as there are rows.
            size = graph.apply("Shape", rows, start=0, end=1)
            codes = graph.apply("Expand", np.zeros(1, np.int64), size)
        scores = _scores(graph, model, rows, codes, trees)
    outputs = _outputs(graph, model, scores, codes, dtype)
    made = helper.make_graph(graph.nodes, type(model).__name__, inputs, outputs, graph.constants)
    ml_opset, ir_version = FOR_LINEAR if trees is None else FOR_TREES
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ml_opset)]
    return helper.make_model(
        made, opset_imports=opsets, producer_name="comtl", ir_version=ir_version
    )


def _with_hinges(graph: Graph, hinges: Hinges, dtype: Any) -> str:
    if not len(hinges.columns):
        return "X"
    chosen = graph.apply("Gather", "X", hinges.columns.astype(np.int64), axis=1)
    above = graph.apply("Sub", chosen, hinges.knots.astype(dtype))
    return graph.apply("Concat", "X", graph.apply("Relu", above), axis=1)


def _codes(graph: Graph, tasks: np.ndarray) -> str:
    """Number of each row's task; that of the means for a label never seen."""
    settings: dict[str, Any] = {"values_int64s": range(len(tasks)), "default_int64": len(tasks)}
    if tasks.dtype.kind == "U":
        settings["keys_strings"] = tasks.tolist()
    else:
        settings["keys_int64s"] = tasks.astype(int).tolist()
    return graph.apply("LabelEncoder", "task", domain="ai.onnx.ml", **settings)


def _scores(
    graph: Graph, model: TaskModel, rows: str, codes: str, trees: FittedStack | None
) -> str:
    """Scores of each row for its task, beyond two classes a column for each class."""
    everyone, columns = model._linear.extended, model._linear.columns
    several, zero, one = columns.index is not None, np.zeros(1, np.int64), np.ones(1, np.int64)
    each = rows
    if several:
        own = graph.apply("Gather", columns.places.astype(np.int64), codes, axis=0)
        codes = graph.apply("Max", own, zero)
        each = graph.apply("Unsqueeze", rows, one)
    product = graph.apply("Mul", graph.apply("Gather", everyone.coef, codes, axis=0), each)
    total = graph.apply("ReduceSum", product, np.array([-1], np.int64), keepdims=0)
    offsets = graph.apply("Gather", everyone.intercepts, codes, axis=0)
    scores = graph.apply("Add", total, offsets)
    if trees is not None:
        wanted = codes if several else graph.apply("Unsqueeze", codes, one)
        added = tree_scores(graph.apply, trees, model._linear, wanted)
        scores = graph.apply(
            "Add", scores, added if several else graph.apply("Squeeze", added, one)
        )
    if not several:
        return scores
    never = graph.apply("Less", own, zero)
    return graph.apply("Where", never, np.full(1, -np.inf, dtype=everyone.shared.dtype), scores)


def _odds(graph: Graph, model: ClassifierOutputs, scores: str, codes: str | None) -> str:
    """Scores without the thresholds, of which probabilities are made."""
    thresholds = model._thresholds_of(None if codes is None else np.arange(len(model.tasks_) + 1))
    if thresholds is None or not thresholds.any():
        return scores
    thresholds = thresholds.astype(model._linear.weights.shared.dtype)
    offsets = thresholds if codes is None else graph.apply("Gather", thresholds, codes, axis=0)
    return graph.apply("Add", scores, offsets)


def _outputs(
    graph: Graph, model: TaskModel, scores: str, codes: str | None, dtype: int
) -> list[Any]:
    from onnx import TensorProto, helper

    across, operator = ["tasks"] if model._multi_output else [], model._link.onnx_operator
    if not isinstance(model, ClassifierOutputs):
        assert operator is not None
        graph.apply(operator, scores, name="prediction")
        return [helper.make_tensor_value_info("prediction", dtype, ["rows", *across])]
    several = model._linear.columns.index is not None
    if several:
        chosen = graph.apply("ArgMax", scores, axis=1, keepdims=0)
    else:
        zero = np.zeros((), dtype=model._linear.weights.shared.dtype)
        positive = graph.apply("Greater", scores, zero)
        chosen = graph.apply("Cast", positive, to=int(TensorProto.INT64))
    classes = model.classes_
    if classes.dtype.kind == "U":
        classes = classes.astype(object)
    graph.apply("Gather", classes, chosen, axis=0, name="prediction")
    graph.apply("Identity", scores, name="scores")
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    wide = ["classes"] if several else across
    outputs = [
        helper.make_tensor_value_info("prediction", kind, ["rows", *across]),
        helper.make_tensor_value_info("scores", dtype, ["rows", *wide]),
    ]
    if operator is not None and not several:
        graph.apply(operator, _odds(graph, model, scores, codes), name="probability")
        outputs.append(helper.make_tensor_value_info("probability", dtype, ["rows", *across]))
    return outputs
