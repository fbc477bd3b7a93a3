"""ONNX operators of `ai.onnx.ml` on numbers: scalers, encoders, linear and support vector models.

Those of texts and maps, and `SVMClassifier`, run on the host; trees are in `trees.py`.
"""

from typing import Any

import numpy as np

from picograd.onnx.table import Call, Value, operator
from picograd.onnx.values import is_held
from picograd.tensor.public import cat, where
from picograd.tensor.tensor import Tensor

ML = "ai.onnx.ml"


def floats(values: Any) -> Tensor:
    """Make a tensor of an attribute."""
    return Tensor(np.asarray(values, np.float32))


def labelled(call: Call, places: Tensor, numbers: Any, texts: Any) -> Value:
    """Give the labels at places; texts are looked up on the host."""
    if texts:
        return np.asarray(texts, object)[call.host(places)]
    return Tensor(np.asarray(numbers, np.int64))[places]


def scored(scores: Tensor, transform: str) -> Tensor:
    """Make probabilities of the scores of several classes (N, C), as a model says."""
    if transform == "LOGISTIC":
        return scores.sigmoid()
    if transform == "SOFTMAX":
        return scores.softmax(-1)
    if transform == "SOFTMAX_ZERO":  # a score of 0 stays 0
        powers = (scores - scores.amax(-1, True)).exp()
        weights = where(scores == 0, 0.0, powers)
        return weights / weights.sum(-1, True)
    return 2**0.5 * (2 * scores - 1).erfinv() if transform == "PROBIT" else scores


def paired(score: Tensor, transform: str, is_probability: bool = False) -> Tensor:
    """Make the scores of two classes of that of the second one (N, 1)."""
    if transform == "LOGISTIC":
        return cat([-score, score], 1).sigmoid()
    if is_probability:
        return cat([1 - score, score], 1)
    return scored(cat([-score, score], 1), transform)


@operator("Scaler", domain=ML)
def scaler(x: Tensor, offset: Any = (0.0,), scale: Any = (1.0,)) -> Tensor:
    """Take an offset away from each feature, and multiply."""
    return (x.float() - floats(offset)) * floats(scale)


@operator("Normalizer", domain=ML)
def normalizer(x: Tensor, norm: str = "MAX") -> Tensor:
    """Divide each row by its norm."""
    x = x.float()
    if norm == "L1":
        size = x.abs().sum(-1, True)
    elif norm == "L2":
        size = x.square().sum(-1, True).sqrt()
    else:
        size = x.amax(-1, True)
    return x / where(size == 0, 1.0, size)


@operator("Binarizer", domain=ML)
def binarizer(x: Tensor, threshold: float = 0.0) -> Tensor:
    """Tell, as 1 and 0, what is above a threshold."""
    return (x > threshold).to(x.dtype)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Call, x: Value, places: Value) -> Value:
    """Choose features."""
    if is_held(x) and x.dtype.kind in "OU":
        return call.hosted([x, places])[0]
    x = call.tensor(x)
    index = call.tensor(places).reshape(-1).long()
    if x.ndim == 1:
        x = x.reshape(1, -1)
    return x[..., index]


@operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(*xs: Tensor, inputdimensions: Any) -> Tensor:
    """Join features."""
    parts = []
    for x, size in zip(xs, inputdimensions):
        rows = x.reshape(-1, 1) if x.ndim == 1 else x
        parts.append(rows[:, :size].float())
    return cat(parts, 1)


@operator("Imputer", domain=ML)
def imputer(
    x: Tensor,
    imputed_value_floats: Any = None,
    imputed_value_int64s: Any = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    """Write values in place of a number, or of NaN."""
    if not x.dtype.is_float:
        values = Tensor(np.asarray(imputed_value_int64s, np.int64))
        return where(x == replaced_value_int64, values, x)
    is_missing = x.isnan() if np.isnan(replaced_value_float) else x == replaced_value_float
    values = floats(imputed_value_floats).to(x.dtype)
    return where(is_missing, values, x)


@operator("OneHotEncoder", domain=ML)
def one_hot_encoder(
    call: Call, x: Value, cats_int64s: Any = None, cats_strings: Any = None, zeros: int = 1
) -> Value:
    """Write 1 at the place of a category."""
    if cats_strings or not zeros:
        return call.hosted([x])[0]
    categories = Tensor(np.asarray(cats_int64s))
    values = call.tensor(x).long()[..., None]
    return (values == categories).float()


@operator("LabelEncoder", domain=ML)
def label_encoder(call: Call, x: Value, **attributes: Any) -> Value:
    """Look each element up in a table of keys and values."""
    given = {key.split("_")[0]: np.asarray(value) for key, value in attributes.items()}
    has_texts = any(each.dtype.kind in "OU" for each in given.values())
    if is_held(x) or "keys" not in given or "values" not in given or has_texts:
        return call.hosted([x])[0]
    values, unknown = given["values"], -1.0
    if values.dtype.kind == "f":
        values, unknown = values.astype(np.float32), -0.0
    usual = given.get("default", np.asarray(unknown))
    keys = Tensor(given["keys"].astype(x.dtype.numpy))
    matches = x[..., None] == keys
    if x.dtype.is_float and call.opset >= 4:
        matches = matches | (x[..., None].isnan() & keys.isnan())
    places = matches.to("uint8").argmax(-1)
    default = Tensor(usual.reshape(()).astype(values.dtype))
    return where(matches.any(-1), Tensor(values)[places], default)


@operator("ZipMap", domain=ML)
def zip_map(
    call: Call, scores: Value, classlabels_strings: Any = None, classlabels_int64s: Any = None
) -> list[Any]:
    """Give a dict for each row: scores by label."""
    labels = list(classlabels_strings or classlabels_int64s)
    rows = np.asarray(call.host(scores)).reshape(-1, len(labels)).tolist()
    return [dict(zip(labels, row)) for row in rows]


@operator("LinearRegressor", domain=ML)
def linear_regressor(
    x: Tensor,
    coefficients: Any,
    intercepts: Any = (0.0,),
    targets: int = 1,
    post_transform: str = "NONE",
) -> Tensor:
    """Give weighted sums of the features, a target a column."""
    weights = floats(coefficients).reshape(targets, -1)
    return scored(x.float() @ weights.T + floats(intercepts), post_transform)


@operator("LinearClassifier", domain=ML)
def linear_classifier(
    call: Call,
    x: Value,
    coefficients: Any,
    intercepts: Any = (0.0,),
    classlabels_ints: Any = None,
    classlabels_strings: Any = None,
    post_transform: str = "NONE",
    multi_class: int = 0,
) -> tuple[Value, Tensor]:
    """Give the label of the largest weighted sum, and the scores."""
    bias = floats(intercepts)
    weights = floats(coefficients).reshape(bias.numel(), -1)
    scores = call.tensor(x).float() @ weights.T + bias
    count = len(classlabels_strings or classlabels_ints)
    if count == 2 and scores.shape[1] == 1:
        places = (scores[:, 0] > 0).long()
        scores = paired(scores, post_transform, True)
    else:
        places = scores.argmax(-1)
        scores = scored(scores, post_transform)
    return labelled(call, places, classlabels_ints, classlabels_strings), scores


def kernel_of(x: Tensor, vectors: Tensor, kind: str, parameters: Any) -> Tensor:
    """Compare rows (N, K) with support vectors (S, K): (N, S)."""
    gamma, shift, degree = parameters or (0.0, 0.0, 0.0)
    if kind == "RBF":
        gaps = x[:, None] - vectors[None]
        return (gaps.square().sum(-1) * -gamma).exp()
    products = x @ vectors.T
    if kind == "LINEAR":
        return products
    moved = gamma * products + shift
    return moved.tanh() if kind == "SIGMOID" else moved**degree


@operator("SVMRegressor", domain=ML)
def svm_regressor(
    x: Tensor,
    coefficients: Any,
    rho: Any,
    kernel_type: str = "LINEAR",
    kernel_params: Any = None,
    n_supports: int = 0,
    support_vectors: Any = None,
    one_class: int = 0,
    post_transform: str = "NONE",
) -> Tensor:
    """Give a weighted sum of what a kernel makes of a row and each support vector."""
    x = x.float()
    if n_supports:
        vectors = floats(support_vectors).reshape(-1, x.shape[1])
        x = kernel_of(x, vectors, kernel_type, kernel_params)
    weights = floats(coefficients).reshape(-1, 1)
    value = x @ weights + rho[0]
    return where(value > 0, 1.0, -1.0) if one_class else scored(value, post_transform)
