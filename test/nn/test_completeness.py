"""Every public module class of torch.nn: here with the same signature, state and repr, or refused.

What differs on purpose is data: ABSENT names classes that picograd leaves out, SIGNATURES options
that differ, each with the reason.
"""

import inspect

import pytest
from nn_support import torch

from picograd import nn

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
pytestmark = pytest.mark.skipif(VERSION < (2, 13), reason="signatures are those of PyTorch 2.13")

ABSENT = {
    "Container": "deprecated in PyTorch",
    "RNNBase": "an implementation detail of PyTorch",
    "RNNCellBase": "an implementation detail of PyTorch",
}

# Options of PyTorch that no class of picograd takes.
DROPPED = {
    "size_average": "deprecated: use reduction",
    "reduce": "deprecated: use reduction",
    "min_value": "deprecated: use min_val",
    "max_value": "deprecated: use max_val",
}
# Classes whose constructor PyTorch declares as (*args, **kwargs).
OPEN = {"GRU", "LSTM", "RNN", "Module", "Tanh", "Tanhshrink"}
OPEN |= {"LogSigmoid", "NLLLoss2d", "Sigmoid", "Softmax2d", "Softsign"}

IMAGE = (2, 4, 3)
ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": (8, 20, [5, 10], 2.0),
    "AdaptiveAvgPool1d": (2,),
    "AdaptiveAvgPool2d": (2,),
    "AdaptiveAvgPool3d": (2,),
    "AdaptiveMaxPool1d": (2,),
    "AdaptiveMaxPool2d": ((2, 3),),
    "AdaptiveMaxPool3d": (2,),
    "AvgPool1d": (2,),
    "AvgPool2d": (2,),
    "AvgPool3d": ((2, 1, 1),),
    "BatchNorm1d": (3,),
    "BatchNorm2d": (3,),
    "BatchNorm3d": (3,),
    "Bilinear": (2, 3, 4),
    "ChannelShuffle": (2,),
    "ConstantPad1d": (2, 1.5),
    "ConstantPad2d": (2, 1.5),
    "ConstantPad3d": (2, 1.5),
    "CrossMapLRN2d": (3,),
    "FractionalMaxPool2d": (2, 3),
    "FractionalMaxPool3d": (2, 3),
    "Conv1d": IMAGE,
    "Conv2d": IMAGE,
    "Conv3d": IMAGE,
    "ConvTranspose1d": IMAGE,
    "ConvTranspose2d": IMAGE,
    "ConvTranspose3d": IMAGE,
    "Embedding": (4, 3),
    "EmbeddingBag": (4, 3),
    "Fold": ((4, 4), 2),
    "GRU": (2, 3),
    "GRUCell": (2, 3),
    "GroupNorm": (2, 4),
    "InstanceNorm1d": (3,),
    "InstanceNorm2d": (3,),
    "InstanceNorm3d": (3,),
    "LPPool1d": (2, 3),
    "LPPool2d": (2, 3),
    "LPPool3d": (2, 3),
    "LSTM": (2, 3, 2),
    "LSTMCell": (2, 3),
    "LayerNorm": ((3, 4),),
    "Linear": (2, 3),
    "LinearCrossEntropyLoss": (3, 2),
    "LocalResponseNorm": (3,),
    "MaxPool1d": (2,),
    "MaxPool2d": (2, 1),
    "MaxPool3d": (2,),
    "MaxUnpool1d": (2,),
    "MaxUnpool2d": (2,),
    "MaxUnpool3d": (2,),
    "MultiheadAttention": (4, 2),
    "PixelShuffle": (2,),
    "PixelUnshuffle": (2,),
    "RMSNorm": (3,),
    "RNN": (2, 3),
    "RNNCell": (2, 3),
    "Threshold": (1, 2),
    "TransformerDecoderLayer": (4, 2, 8),
    "TransformerEncoderLayer": (4, 2, 8),
    "Transformer": (4, 2, 1, 1, 8),
    "Unflatten": (1, (2, 3)),
    "Unfold": (2,),
    "Upsample": (5,),
    "UpsamplingBilinear2d": (5,),
    "UpsamplingNearest2d": (5,),
}
# More constructions of the same classes, whose state and repr differ from the plain one.
VARIANTS = [
    ("BatchNorm2d", (3,), {"affine": False, "track_running_stats": False}),
    ("BatchNorm1d", (3,), {"bias": False}),
    ("InstanceNorm1d", (3,), {"affine": True, "bias": False}),
    ("Bilinear", (2, 3, 4), {"bias": False}),
    ("Conv2d", (4, 4, 3), {"padding": "same", "groups": 2, "padding_mode": "reflect"}),
    ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1, "dilation": 2, "bias": False}),
    ("ConvTranspose2d", (2, 4, 3), {"stride": 2, "output_padding": 1}),
    ("Dropout", (0.2,), {"inplace": True}),
    ("Embedding", (4, 3), {"padding_idx": -1}),
    ("GRU", (2, 3), {"bidirectional": True, "num_layers": 2}),
    ("GroupNorm", (2, 4), {"affine": False}),
    ("LSTM", (2, 3), {"proj_size": 2, "bias": False}),
    ("LayerNorm", (3,), {"bias": False}),
    ("LeakyReLU", (0.2, True), {}),
    ("MultiheadAttention", (4, 2), {"kdim": 3, "vdim": 5, "add_bias_kv": True, "bias": False}),
    ("PReLU", (3,), {}),
    ("ReLU", (True,), {}),
    ("Softmax", (1,), {}),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear", "align_corners": True}),
]


def theirs():
    found = {name: getattr(torch.nn, name) for name in dir(torch.nn)}
    module = torch.nn.Module
    return sorted(n for n, c in found.items() if inspect.isclass(c) and issubclass(c, module))


APART = {"DataParallel", "SyncBatchNorm"}  # these and lazy layers have tests of their own
PRESENT = [n for n in theirs() if n not in {*ABSENT, *APART} and not n.startswith("Lazy")]
BUILT = [name for name in PRESENT if name not in ("Container", "Module")]
STACKS = ("TransformerEncoder", "TransformerDecoder")  # take a layer: see test_stacks


def options(kind):
    """List (name, default) of a constructor."""
    listed = inspect.signature(kind).parameters.values()
    return [(p.name, p.default) for p in listed if p.name not in DROPPED]


def default_text(value):
    """Write a default so that picograd's functions compare with PyTorch's."""
    return getattr(value, "__name__", value)


def test_absent_classes_are_absent():
    missing = {name for name in theirs() if name not in dir(nn)}
    assert missing == set(ABSENT)


@pytest.mark.parametrize("name", PRESENT)
def test_signature(name):
    if name in OPEN:
        assert {k for k, _ in options(getattr(torch.nn, name))} <= {"args", "kwargs"}
        return
    ours, reference = (options(getattr(room, name)) for room in (nn, torch.nn))
    assert [k for k, _ in ours] == [k for k, _ in reference]
    for (option, mine), (_, wanted) in zip(ours, reference):
        assert default_text(mine) == default_text(wanted), option


def same(ours, reference):
    shapes = [{k: tuple(v.shape) for k, v in m.state_dict().items()} for m in (ours, reference)]
    assert list(shapes[0].items()) == list(shapes[1].items())
    kinds = [[name for name, _ in m.named_parameters()] for m in (ours, reference)]
    assert kinds[0] == kinds[1]
    wanted = repr(reference).replace("NonDynamicallyQuantizable", "")
    assert repr(ours) == wanted


@pytest.mark.parametrize("name", [name for name in BUILT if name not in STACKS])
def test_state_and_repr(name):
    padding = 2 if "Pad" in name and "Constant" not in name else None
    arguments = ARGUMENTS.get(name, () if padding is None else (padding,))
    same(getattr(nn, name)(*arguments), getattr(torch.nn, name)(*arguments))


@pytest.mark.parametrize("name, arguments, changed", VARIANTS)
def test_state_and_repr_of_variants(name, arguments, changed):
    same(getattr(nn, name)(*arguments, **changed), getattr(torch.nn, name)(*arguments, **changed))


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_stacks(name):
    made = []
    for room in (nn, torch.nn):
        layer = getattr(room, f"{name}Layer")(4, 2, 8)
        made.append(getattr(room, name)(layer, 2, room.LayerNorm(4)))
    same(*made)


# Functions of torch.nn.functional that picograd leaves out.
ABSENT_FUNCTIONS = {
    "assert_int_or_pair": "a helper of PyTorch",
    "boolean_dispatch": "a helper of PyTorch",
    "native_channel_shuffle": "channel_shuffle",
    "scaled_grouped_mm": "an unstable API of PyTorch",
    "scaled_mm": "an unstable API of PyTorch",
}
IN_PLACE = {"celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"}


def their_functions():
    room = torch.nn.functional
    found = {name: getattr(room, name) for name in dir(room) if name[0] != "_"}
    names = [n for n, f in found.items() if callable(f) and not inspect.isclass(f)]
    return [name for name in names if "torch_function" not in name]


def test_functions_are_here_or_refused():
    skipped = {n for n in their_functions() if n.endswith("_with_indices")} | IN_PLACE
    typing_names = set(dir(__import__("typing"))) | {"importlib"}
    missing = {n for n in their_functions() if n not in dir(nn.functional)} - typing_names
    assert missing - skipped == set(ABSENT_FUNCTIONS) - skipped


def function_options(function):
    try:
        listed = inspect.signature(function).parameters.values()
    except ValueError:  # written in C
        return None
    dropped = {*DROPPED, "_stacklevel", "out"}
    return [p.name for p in listed if p.name not in dropped]


def test_function_signatures():
    """Names of options are PyTorch's; what PyTorch dispatches by hand shows (*args, **kwargs)."""
    different = {}
    for name in their_functions():
        wanted = function_options(getattr(torch.nn.functional, name))
        if wanted is None or name not in dir(nn.functional) or wanted[:1] == ["args"]:
            continue
        found = function_options(getattr(nn.functional, name))
        if found != wanted:
            different[name] = (found, wanted)
    assert not different
