"""A BERT encoder as an ONNX graph, built from the weights of a published model.

It maps token ids to the mean of the last layer's states over all tokens but padding, scaled to
length one. It supports only what all-MiniLM-L6-v2 needs.
"""

from collections.abc import Mapping
from typing import Any

import numpy
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Weights = Mapping[str, "numpy.ndarray[Any, Any]"]

# How many numbers of a state each head of a layer reads.
_HEAD_WIDTH = 32
_EPSILON = 1e-12
# Subtracted before the softmax for a padding token, so that its weight becomes zero.
_NEVER = 1e9
_OPSET = 17
_IR_VERSION = 9


def encoder_graph(weights: Weights) -> ModelProto:
    """Inputs `ids` and `is_token` (batch × tokens; 0 for padding), output `vectors`."""
    graph = _Graph(weights)
    graph.encode()
    integers, numbers = TensorProto.INT64, TensorProto.FLOAT
    width = weights["embeddings.LayerNorm.weight"].shape[0]
    tensor = helper.make_tensor_value_info
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "encoder",
            [
                tensor("ids", integers, ["batch", "tokens"]),
                tensor("is_token", numbers, ["batch", "tokens"]),
            ],
            [tensor("vectors", numbers, ["batch", width])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


class _Graph:
    """Collects nodes and constants. Each method returns the name of its result."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        names = (name.split(".") for name in weights if name.startswith("encoder.layer."))
        self._layers = 1 + max(int(name[2]) for name in names)
        self._width = weights["embeddings.LayerNorm.weight"].shape[0]

    def encode(self) -> None:
        padding = self._op(
            "Mul", self._op("Sub", "is_token", self._number(1)), self._number(_NEVER)
        )
        mask = self._op("Unsqueeze", padding, self._integers(1, 2))
        state = self._embeddings()
        for number in range(self._layers):
            state = self._layer(f"encoder.layer.{number}.", state, mask)
        is_token = self._op("Unsqueeze", "is_token", self._integers(2))
        total = self._op(
            "ReduceSum", self._op("Mul", state, is_token), self._integers(1), keepdims=0
        )
        length = self._op("ReduceL2", total, axes=[1], keepdims=1)
        self.nodes.append(helper.make_node("Div", [total, length], ["vectors"]))

    def _embeddings(self) -> str:
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        tokens = self._op("Gather", self._op("Shape", "ids"), self._integers(1), axis=0)
        places = self._op("Slice", self._weight("embeddings.position_embeddings.weight"),
                          self._integers(0), tokens, self._integers(0))  # fmt: skip
        kind = self._constant(self._weights["embeddings.token_type_embeddings.weight"][0])
        state = self._op("Add", self._op("Add", words, places), kind)
        return self._normed("embeddings.LayerNorm", state)

    def _layer(self, name: str, state: str, mask: str) -> str:
        attended = self._linear(f"{name}attention.output.dense", self._attention(name, state, mask))
        state = self._normed(f"{name}attention.output.LayerNorm", self._op("Add", state, attended))
        inner = self._gelu(self._linear(f"{name}intermediate.dense", state))
        outer = self._linear(f"{name}output.dense", inner)
        return self._normed(f"{name}output.LayerNorm", self._op("Add", state, outer))

    def _attention(self, name: str, state: str, mask: str) -> str:
        heads = self._integers(0, 0, self._width // _HEAD_WIDTH, _HEAD_WIDTH)

        def part(kind: str, order: list[int]) -> str:
            whole = self._linear(f"{name}attention.self.{kind}", state)
            return self._op("Transpose", self._op("Reshape", whole, heads), perm=order)

        queries, keys = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1])
        near = self._op("Mul", self._op("MatMul", queries, keys), self._number(_HEAD_WIDTH**-0.5))
        shares = self._op("Softmax", self._op("Add", near, mask), axis=-1)
        read = self._op("MatMul", shares, part("value", [0, 2, 1, 3]))
        joined = self._op("Transpose", read, perm=[0, 2, 1, 3])
        return self._op("Reshape", joined, self._integers(0, 0, self._width))

    def _gelu(self, value: str) -> str:
        error = self._op("Erf", self._op("Mul", value, self._number(2**-0.5)))
        share = self._op("Mul", self._op("Add", error, self._number(1)), self._number(0.5))
        return self._op("Mul", value, share)

    def _linear(self, name: str, value: str) -> str:
        turned = self._constant(self._weights[f"{name}.weight"].T)
        return self._op("Add", self._op("MatMul", value, turned), self._weight(f"{name}.bias"))

    def _normed(self, name: str, value: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._op("LayerNormalization", value, scale, shift, axis=-1, epsilon=_EPSILON)

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name])

    def _number(self, value: float) -> str:
        return self._constant(numpy.array(value, numpy.float32))

    def _integers(self, *values: int) -> str:
        return self._constant(numpy.array(values, numpy.int64))

    def _constant(self, value: "numpy.ndarray[Any, Any]") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name
