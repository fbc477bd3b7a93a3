"""Layers and losses built or called wrongly."""

from inspect import Parameter, isclass, signature
from typing import Any

import numpy as np
import pytest
from error_support import Case, check, named

from picograd import Tensor, nn
from picograd.errors import (
    AssertedError,
    AxisError,
    DTypeError,
    GradientError,
    ShapeError,
    ValueRangeError,
)
from picograd.nn import functional as F

X = Tensor.ones(2, 10)
IMAGE = Tensor.ones(2, 1, 8, 8)
LABELS = Tensor([0, 1])
STACK = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))


CASES = [
    Case(
        "Linear input", lambda: nn.Linear(784, 10)(Tensor.ones(2, 28, 28)), ShapeError,
        "linear: input (2, 28, 28) does not fit weight (10, 784). Fix: call .flatten(1) first.",
    ),
    Case(
        "Linear inside Sequential", lambda: STACK(Tensor.ones(1, 2)), ShapeError,
        "linear: input (1, 3) does not fit weight (5, 4). Fix: the last sizes must be equal.",
    ),
    Case(
        "Linear array", lambda: nn.Linear(784, 10)(np.ones((2, 784))), DTypeError,
        "Linear: the input must be a Tensor, not ndarray. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "relu of nothing", lambda: F.relu(None), DTypeError,
        "relu: the input must be a Tensor, not NoneType. Fix: return a tensor from the "
        "function or forward() that made it.",
    ),
    Case(
        "layer after LSTM",
        lambda: nn.Linear(3, 2)(nn.LSTM(4, 3)(Tensor.ones(2, 1, 4))),
        DTypeError,
        "Linear: the input must be a Tensor, not tuple. Fix: pass one of the tensors in it, "
        "such as [0].",
    ),
    Case(
        "relu of a layer", lambda: F.relu(nn.Softmax(0)), DTypeError,
        "relu: the input must be a Tensor, not Softmax. Fix: call it on a tensor, and pass "
        "what it returns.",
    ),
    Case(
        "relu of a class", lambda: F.relu(nn.ReLU), DTypeError,
        "relu: the input must be a Tensor, not the class ReLU. Fix: make one and call it: "
        "ReLU()(x).",
    ),
    Case(
        "Sequential of a class", lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU), DTypeError,
        "Sequential: ReLU is a class. Fix: pass modules, such as ReLU(), an instance.",
    ),
    Case(
        "loss made of tensors", lambda: nn.MSELoss(X, X), DTypeError,
        "MSELoss: an option is a tensor. Fix: make the loss, then call it: "
        "MSELoss()(input, target).",
    ),
    Case(
        "loss made of labels", lambda: nn.CrossEntropyLoss(X, LABELS), DTypeError,
        "CrossEntropyLoss: an option is a tensor. Fix: make the loss, then call it: "
        "CrossEntropyLoss()(input, target).",
    ),
    Case(
        "Unflatten number", lambda: nn.Unflatten(1, 4), DTypeError,
        "Unflatten: unflattened_size is one number, 4. Fix: pass the sizes: (2, 3).",
    ),
    Case(
        "Linear negative", lambda: nn.Linear(-1, 2), ValueRangeError,
        "Linear: in_features=-1 is less than 0. Fix: pass 0 or more.",
    ),
    Case(
        "Linear float", lambda: nn.Linear(2.5, 2), DTypeError,
        "Linear: in_features must be an int, not 2.5. Fix: pass a whole number.",
    ),
    Case(
        "Linear dtype", lambda: nn.Linear(2, 3, dtype="int32"), DTypeError,
        "uniform: needs a float dtype, got int32. Fix: use randint for integers.",
    ),
    Case(
        "Conv2d channels", lambda: nn.Conv2d(3, 8, 3)(IMAGE), ShapeError,
        "conv2d: input (2, 1, 8, 8) has 1 channels, the weight takes 3. Fix: channels "
        "are axis 1 of the input.",
    ),
    Case(
        "Conv2d small image", lambda: nn.Conv2d(1, 8, 9)(IMAGE), ShapeError,
        "conv2d: kernel (9, 9) is larger than the padded input (8, 8). Fix: pad more or "
        "use a smaller kernel.",
    ),
    Case(
        "Conv2d rank", lambda: nn.Conv2d(3, 8, 3)(X), ShapeError,
        "conv2d: input (2, 10) does not fit weight (8, 3, 3, 3). Fix: both need batch, "
        "channel and spatial axes.",
    ),
    Case(
        "Conv2d channels last", lambda: nn.Conv2d(3, 8, 3)(Tensor.ones(2, 9, 9, 3)), ShapeError,
        "conv2d: input (2, 9, 9, 3) has 9 channels, the weight takes 3. Fix: channels are "
        "axis 1 of the input: .movedim(-1, 1).",
    ),
    Case(
        "Conv2d kernel sizes", lambda: nn.Conv2d(3, 8, (3, 3, 3)), ShapeError,
        "Conv2d: kernel_size=(3, 3, 3) has 3 sizes, 2 wanted. Fix: pass one int, or one "
        "for every spatial axis.",
    ),
    Case(
        "Conv2d kernel", lambda: nn.Conv2d(3, 8, 0), ValueRangeError,
        "Conv2d: kernel_size=0 is less than 1. Fix: pass 1 or more.",
    ),
    Case(
        "Conv2d stride", lambda: nn.Conv2d(3, 8, 3, stride=0), ValueRangeError,
        "Conv2d: stride=0 is less than 1. Fix: pass 1 or more.",
    ),
    Case(
        "Conv2d groups", lambda: nn.Conv2d(3, 8, 3, groups=2), ShapeError,
        "Conv2d: (3, 8) channels do not divide into 2 groups. Fix: choose a divisor of both.",
    ),
    Case(
        "Conv2d no groups", lambda: nn.Conv2d(3, 8, 3, groups=0), ValueRangeError,
        "Conv2d: groups=0 is less than 1. Fix: pass 1 or more.",
    ),
    Case(
        "Conv2d padding word", lambda: nn.Conv2d(3, 8, 3, padding="sam"), ValueRangeError,
        'Conv2d: padding=\'sam\' is unknown. Fix: use "same", "valid" or numbers.',
    ),
    Case(
        "Conv2d same with stride",
        lambda: nn.Conv2d(3, 8, 3, padding="same", stride=2),
        ValueRangeError,
        "Conv2d: padding='same' needs stride 1. Fix: give the padding in numbers.",
    ),
    Case(
        "BatchNorm2d channels", lambda: nn.BatchNorm2d(3)(IMAGE), ShapeError,
        "BatchNorm2d: input of shape (2, 1, 8, 8) has 1 channels, 3 wanted. Fix: "
        "channels are axis 1.",
    ),
    Case(
        "BatchNorm2d rank", lambda: nn.BatchNorm2d(10)(X), ShapeError,
        "BatchNorm2d: input of shape (2, 10) has 2 axes, 4 wanted. Fix: give batch, "
        "channels, then the rest.",
    ),
    Case(
        "BatchNorm1d one value", lambda: nn.BatchNorm1d(3)(Tensor.ones(1, 3)), ValueRangeError,
        "BatchNorm1d: one value per channel in input of shape (1, 3). Fix: use a larger "
        "batch, or call eval().",
    ),
    Case(
        "Transformer batches",
        lambda: nn.Transformer(4, 2, 1, 1, 8)(Tensor.ones(3, 2, 4), Tensor.ones(3, 1, 4)),
        ShapeError,
        "Transformer: batch sizes differ: (3, 2, 4), (3, 1, 4). Fix: the batch is axis 1, by "
        "batch_first=False.",
    ),
    Case(
        "attention batches",
        lambda: nn.MultiheadAttention(4, 2)(*[Tensor.ones(3, n, 4) for n in (1, 2, 2)]),
        ShapeError,
        "MultiheadAttention: batch sizes differ: (3, 1, 4), (3, 2, 4), (3, 2, 4). Fix: the batch "
        "is axis 1, by batch_first=False.",
    ),
    Case(
        "BatchNorm1d ints", lambda: nn.BatchNorm1d(2)(Tensor([[1, 2], [3, 4]])), DTypeError,
        "batch_norm: takes a float dtype, not int64. Fix: cast the operand first.",
    ),
    Case(
        "BatchNorm2d negative", lambda: nn.BatchNorm2d(-1), ValueRangeError,
        "BatchNorm2d: num_features=-1 is less than 0. Fix: pass 0 or more.",
    ),
    Case(
        "LayerNorm input", lambda: nn.LayerNorm(9)(X), ShapeError,
        "layer_norm: input of shape (2, 10) does not end in (9,). Fix: pass the sizes of "
        "the last axes.",
    ),
    Case(
        "LayerNorm text", lambda: nn.LayerNorm("a"), DTypeError,
        "LayerNorm: normalized_shape must be an int, not 'a'. Fix: pass a whole number.",
    ),
    Case(
        "layer_norm weight", lambda: F.layer_norm(X, (10,), Tensor.ones(2)), ShapeError,
        "layer_norm: weight (2,) for input (2, 10). Fix: match the last axes.",
    ),
    Case(
        "Dropout", lambda: nn.Dropout(1.5), ValueRangeError,
        "Dropout: p=1.5 is not a probability. Fix: use 0 <= p <= 1.",
    ),
    Case(
        "dropout", lambda: F.dropout(X, p=2), ValueRangeError,
        "dropout: p=2 is not a probability. Fix: use 0 <= p <= 1.",
    ),
    Case(
        "Embedding range", lambda: nn.Embedding(10, 4)(Tensor([10])), AxisError,
        "embedding: index 10 is out of range for 10 rows. Fix: use indices from 0 to 9.",
    ),
    Case(
        "Embedding floats", lambda: nn.Embedding(10, 4)(Tensor([0.5])), DTypeError,
        "embedding: the indices are float32. Fix: cast them to picograd.int64.",
    ),
    Case(
        "Embedding list", lambda: nn.Embedding(10, 4)([1, 2]), DTypeError,
        "embedding: the input must be a Tensor, not list. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "Embedding negative", lambda: nn.Embedding(-1, 4), ValueRangeError,
        "Embedding: num_embeddings=-1 is less than 0. Fix: pass 0 or more.",
    ),
    Case(
        "MaxPool2d zero", lambda: nn.MaxPool2d(0), ValueRangeError,
        "MaxPool2d: kernel_size=0 is less than 1. Fix: pass 1 or more.",
    ),
    Case(
        "MaxPool2d small image", lambda: nn.MaxPool2d(9)(IMAGE), ShapeError,
        "max_pool2d: kernel (9, 9) is larger than the padded input (8, 8). Fix: pad more "
        "or use a smaller kernel.",
    ),
    Case(
        "MaxPool2d padding", lambda: nn.MaxPool2d(2, padding=2)(IMAGE), ValueRangeError,
        "max_pool2d: padding (2, 2) is more than half of the kernel (2, 2). Fix: use "
        "less padding.",
    ),
    Case(
        "Softmax axis", lambda: nn.Softmax(dim=3)(X), AxisError,
        "softmax: axis 3 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    Case(
        "Sequential number", lambda: nn.Sequential(3), DTypeError,
        "Sequential: int is no module. Fix: pass modules, such as nn.Linear(2, 3).",
    ),
    Case(
        "Sequential index", lambda: STACK[2], AxisError,
        "Sequential: index 2 is out of range for 2 modules. Fix: use an index from -2 to 1.",
    ),
    Case(
        "ModuleList text", lambda: nn.ModuleList([nn.ReLU()])["a"], DTypeError,
        "ModuleList: cannot index with str. Fix: use ints and slices.",
    ),
    Case(
        "Parameter of an int", lambda: nn.Parameter(Tensor.of(5)), GradientError,
        "Parameter: an int64 tensor cannot have a gradient. Fix: make it of floats, as"
        " Tensor([1.0, 2.0]); n elements are picograd.empty(n).",
    ),
    Case(
        "label too large", lambda: F.cross_entropy(X, Tensor([0, 10])), AxisError,
        "cross_entropy: label 10 is out of range for 10 classes. Fix: use labels from 0 "
        "to 9, or pass ignore_index for others.",
    ),
    Case(
        "label negative", lambda: F.cross_entropy(X, Tensor([0, -7])), AxisError,
        "cross_entropy: label -7 is out of range for 10 classes. Fix: use labels from "
        "0 to 9, or pass ignore_index for others.",
    ),
    Case(
        "label not ignored",
        lambda: F.cross_entropy(X, Tensor([-1, 12]), ignore_index=-1),
        AxisError,
        "cross_entropy: label 12 is out of range for 10 classes. Fix: use labels from 0 "
        "to 9, or -1, which is ignored.",
    ),
    Case(
        "label of ctc_loss",
        lambda: F.ctc_loss(X.reshape(1, 2, 10), Tensor([[3], [10]]), [1, 1], [1, 1]), AxisError,
        "ctc_loss: label 10 is out of range for 10 classes. Fix: use labels from 0 to 9.",
    ),
    Case(
        "nll_loss label", lambda: F.nll_loss(X, Tensor([0, 10])), AxisError,
        "nll_loss: label 10 is out of range for 10 classes. Fix: use labels from 0 to 9, "
        "or pass ignore_index for others.",
    ),
    Case(
        "cross_entropy shape", lambda: F.cross_entropy(X, Tensor([0, 1, 2])), ShapeError,
        "cross_entropy: target of shape (3,) does not fit logits (2, 10). Fix: the "
        "target needs shape (2,).",
    ),
    Case(
        "cross_entropy column", lambda: F.cross_entropy(X, Tensor([[0], [1]])), ShapeError,
        "cross_entropy: target of shape (2, 1) does not fit logits (2, 10). Fix: the "
        "target needs shape (2,).",
    ),
    Case(
        "cross_entropy probabilities", lambda: F.cross_entropy(X, Tensor.ones(2, 9)), ShapeError,
        "cross_entropy: a target of float32 is probabilities of (2, 10), this one has shape "
        "(2, 9). Fix: if it is class numbers, pass target.long().",
    ),
    Case(
        "cross_entropy list", lambda: F.cross_entropy(X, [0, 1]), DTypeError,
        "cross_entropy: the target must be a Tensor, not list. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "cross_entropy bools", lambda: F.cross_entropy(X, Tensor.of([True, False])), DTypeError,
        "cross_entropy: class numbers must be integers, target is bool. Fix: cast the "
        "target to picograd.int64.",
    ),
    Case(
        "cross_entropy ints", lambda: F.cross_entropy(Tensor([1, 2]), Tensor.of(0)), DTypeError,
        "cross_entropy: takes a float dtype, not int64. Fix: cast the operand first.",
    ),
    Case(
        "cross_entropy reduction",
        lambda: F.cross_entropy(X, LABELS, reduction="avg"),
        ValueRangeError,
        'cross_entropy: reduction=\'avg\' is unknown. Fix: use "mean", "sum" or "none".',
    ),
    Case(
        "cross_entropy smoothing",
        lambda: F.cross_entropy(X, LABELS, label_smoothing=2.0),
        ValueRangeError,
        "cross_entropy: label_smoothing=2.0 is not a probability. Fix: use 0 <= "
        "label_smoothing <= 1.",
    ),
    Case(
        "cross_entropy weight",
        lambda: F.cross_entropy(X, LABELS, weight=Tensor.ones(9)),
        ShapeError,
        "cross_entropy: weight of shape (9,) does not fit 10 classes. Fix: give one "
        "weight per class.",
    ),
    Case(
        "nll_loss floats", lambda: F.nll_loss(X, Tensor([0.0, 1.0])), DTypeError,
        "nll_loss: class numbers must be integers, target is float32. Fix: cast the "
        "target to picograd.int64.",
    ),
    Case(
        "nll_loss shape", lambda: F.nll_loss(X, Tensor([0])), ShapeError,
        "nll_loss: target of shape (1,) does not fit (2, 10). Fix: the target needs "
        "shape (2,).",
    ),
    Case(
        "mse_loss shape", lambda: F.mse_loss(Tensor.ones(2, 3), Tensor.ones(4)), ShapeError,
        "mse_loss: shapes (2, 3) and (4,) do not broadcast. Fix: make sizes equal or 1, counted "
        "from the right.",
    ),
    Case(
        "mse_loss number", lambda: F.mse_loss(X, 1.0), DTypeError,
        "mse_loss: the target must be a Tensor, not float. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "l1_loss reduction", lambda: F.l1_loss(X, X, reduction="max"), ValueRangeError,
        'l1_loss: reduction=\'max\' is unknown. Fix: use "mean", "sum" or "none".',
    ),
    Case(
        "bce shape", lambda: F.binary_cross_entropy_with_logits(X, Tensor.ones(3)), ShapeError,
        "binary_cross_entropy_with_logits: shapes differ: (2, 10) and (3,). Fix: reshape "
        "one, or expand it with .expand(...).",
    ),
    Case(
        "loss option", lambda: nn.CrossEntropyLoss(foo=1), DTypeError,
        "CrossEntropyLoss: no option 'foo'. Fix: use weight, ignore_index, reduction, "
        "label_smoothing.",
    ),
    Case(
        "TensorDataset sizes", lambda: nn.TensorDataset(X, Tensor.ones(3)), AssertedError,
        "TensorDataset: inputs of shapes [(2, 10), (3,)] do not share their first size. "
        "Fix: pass tensors with one row per sample.",
    ),
    Case(
        "TensorDataset array", lambda: nn.TensorDataset(np.ones(3)), DTypeError,
        "TensorDataset: the input must be a Tensor, not ndarray. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
    Case(
        "DataLoader batch", lambda: nn.DataLoader(X, batch_size=0), ValueRangeError,
        "DataLoader: batch_size=0 is not positive. Fix: use 1 or more.",
    ),
    Case(
        "GRU state", lambda: nn.GRU(2, 2)(Tensor.ones(1, 1, 2), np.ones((1, 1, 2))), DTypeError,
        "GRU: the hx must be a Tensor, not ndarray. Fix: wrap it in picograd.Tensor(...).",
    ),
    Case(
        "LSTM state", lambda: nn.LSTM(2, 2)(Tensor.ones(1, 1, 2), Tensor.ones(1, 1, 2)), ShapeError,
        "LSTM: states of shapes [(1, 2)], [(1, 1, 2), (1, 1, 2)] wanted. Fix: give (h, c), each "
        "(layers * directions, B, H).",
    ),
    Case(
        "sizes of an array", lambda: nn.ConvTranspose1d(1, 1, 2)(Tensor.ones(1, 1, 2), ("a", 2)),
        DTypeError, "ConvTranspose1d: sizes must be ints, not ('a', 2). Fix: pass ints.",
    ),
    Case(
        "DataLoader of a generator", lambda: nn.DataLoader(iter([1])), DTypeError,
        "DataLoader: a list_iterator has no length. Fix: pass a data set with __len__ and "
        "__getitem__, or an IterableDataset.",
    ),
    Case(
        "DataLoader tensors", lambda: nn.DataLoader(X, X), ValueRangeError,
        "DataLoader: batch_size is a Tensor. Fix: join tensors: nn.TensorDataset(x, y).",
    ),
    Case(
        "model to ints", lambda: nn.Linear(2, 2).to(dtype="int32"), DTypeError,
        "Linear.to: parameters need a float or complex dtype, got int32. Fix: use "
        "picograd.float16 or wider.",
    ),
    Case(
        "buffer of number", lambda: nn.Linear(2, 2).register_buffer("count", 3), DTypeError,
        "register_buffer: the input must be a Tensor, not int. Fix: wrap it in "
        "picograd.Tensor(...).",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)


def one_tensor_layers() -> list[Any]:
    """Make every layer that takes one tensor and needs nothing, or fours, to be made."""
    # these hand on what they are given, or are not made from fours
    others = (
        nn.Identity, nn.DataParallel, nn.Sequential, nn.Unflatten, nn.TransformerEncoder,
        nn.FractionalMaxPool2d, nn.FractionalMaxPool3d,
    )  # fmt: skip
    kinds = [kind for kind in vars(nn).values() if isclass(kind) and issubclass(kind, nn.Module)]
    made: list[Any] = [nn.Unflatten(1, (2, 2))]
    for kind in kinds:
        if not issubclass(kind, others) and len(needed(kind.forward)) == 2:
            made.append(kind(*[4] * len(needed(kind))))
    return made


def needed(function: Any) -> list[Parameter]:
    """List the parameters without a default."""
    listed = signature(function).parameters.values()
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return [each for each in listed if each.default is each.empty and each.kind is kind]


def test_every_layer_asks_for_a_tensor() -> None:
    layers, image = one_tensor_layers(), np.ones((2, 4, 4, 4), np.float32)
    assert len(layers) > 80
    for layer in layers:
        for mode in (layer.train(), layer.eval()):
            with pytest.raises(DTypeError, match="must be a Tensor, not ndarray"):
                mode(image)
