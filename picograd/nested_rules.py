"""Which functions take nested tensors, and in which way: tables of names."""

from picograd.graph.row import Role, ops_of

# elementwise functions beside those that are rows of the op table under their own name
MORE = (
    "bfloat16",
    "bool",
    "clamp",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "detach",
    "double",
    "dropout",
    "elu",
    "eq",
    "float",
    "ge",
    "gelu",
    "gt",
    "half",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "int",
    "isfinite",
    "isinf",
    "leaky_relu",
    "le",
    "logsigmoid",
    "long",
    "lt",
    "masked_fill",
    "mish",
    "ne",
    "ones_like",
    "rand_like",
    "randn_like",
    "relu",
    "relu6",
    "remainder",
    "selu",
    "softplus",
    "square",
    "to",
    "zeros_like",
)
ELEMENTWISE = frozenset((*MORE, *ops_of(Role.ELEMENTWISE)))
ON_ROWS = frozenset(("embedding", "layer_norm", "linear", "matmul", "rms_norm"))
REDUCING = frozenset(("all", "amax", "amin", "any", "mean", "prod", "std", "sum", "var"))
# functions of one axis, and where it stands among their arguments
ALONG = dict.fromkeys((*REDUCING, "cumsum", "log_softmax", "softmax"), 0) | {"chunk": 1, "split": 1}
SAME = ("add", "eq", "ge", "gt", "le", "lt", "matmul", "mul", "ne", "neg", "pow", "sub")
OTHERS = {"mod": "remainder", "radd": "add", "rmul": "mul", "truediv": "div"}
OPERATORS = {name: name for name in SAME} | OTHERS
