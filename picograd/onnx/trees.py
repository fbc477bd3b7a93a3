"""Ensembles of decision trees of `ai.onnx.ml`: all samples walk all trees at once, level by level.

A node asks whether low <= x[feature] <= high, whatever the model calls it; its children lie side by
side, the one for yes first. A leaf is its own child, and answers yes.

The other operators of `ai.onnx.ml` are here too: scalers, encoders, linear and support vector
models. Those of texts and maps, and `SVMClassifier`, run on the host.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.late_methods import dataclass
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


Array = Any
SWAPPED = ("BRANCH_GT", "BRANCH_GTE", "BRANCH_NEQ")  # the answer is the other one
BELOW = ("BRANCH_LT", "BRANCH_GTE")  # the threshold itself is not included
EQUAL = ("BRANCH_EQ", "BRANCH_NEQ")
NAMES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = 6  # the number of a question about members of a set
METHODS = ("mean", "sum", "amin", "amax")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = {"SUM": "sum", "AVERAGE": "mean", "MIN": "amin", "MAX": "amax"}


@dataclass(frozen=True)
class Trees:
    """This class is an ensemble as arrays, one element a node, in the order of a walk by levels."""

    roots: Array
    features: Array
    low: Array
    high: Array
    missing: Array  # does NaN mean yes?
    children: Array  # the place of the first child
    weights: Array  # (nodes, targets): what a leaf adds
    depth: int


def read_trees(attributes: dict[str, Any], leaves: str, targets: int) -> Trees:
    """Read an ensemble whose leaves are nodes: a classifier's ("class") or regressor's."""
    values = tensor_or_floats(attributes, "nodes_values")
    amounts = tensor_or_floats(attributes, f"{leaves}_weights")
    owners = attributes["nodes_treeids"]
    keys = list(zip(owners, attributes["nodes_nodeids"]))
    places = {key: place for place, key in enumerate(keys)}
    roots: dict[int, int] = {}
    for place, tree in enumerate(owners):
        roots.setdefault(tree, place)
    children = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        children.append([places.get(key, 0) for key in zip(owners, attributes[name])])
    weights = np.zeros((len(keys), targets), values.dtype)
    leaf_keys = zip(attributes[f"{leaves}_treeids"], attributes[f"{leaves}_nodeids"])
    for key, target, amount in zip(leaf_keys, attributes[f"{leaves}_ids"], amounts):
        weights[places[key], target] += amount
    return laid_out(
        list(roots.values()),
        list(attributes["nodes_modes"]),
        np.asarray(attributes["nodes_featureids"]),
        values,
        tracked(attributes, len(keys)),
        children,
        weights,
    )


def tensor_or_floats(attributes: dict[str, Any], name: str) -> Array:
    """Read numbers that stand in a tensor, or in a list of float32."""
    found = attributes.get(f"{name}_as_tensor")
    if found is not None:
        return found
    return np.asarray(attributes.get(name, ()), np.float32)


def tracked(attributes: dict[str, Any], count: int) -> Array:
    """Read for which nodes NaN means yes: for none if nothing is said."""
    found = attributes.get("nodes_missing_value_tracks_true")
    if not found:
        return np.zeros(count, bool)
    return np.asarray(found, bool)


def by_levels(
    roots: Sequence[int], modes: Sequence[str], children: Sequence[Sequence[int]]
) -> tuple[Array, Array, int]:
    """Order the nodes by levels, children side by side: nodes, first children, depth."""
    levels = [list(roots)]
    first: dict[int, int] = {}
    total = len(roots)
    while levels[-1]:
        below: list[int] = []
        for node in levels[-1]:
            if modes[node] == "LEAF":
                continue
            first[node] = total + len(below)
            pair = [children[0][node], children[1][node]]
            if modes[node] in SWAPPED:
                pair.reverse()
            below += pair
        total += len(below)
        levels.append(below)
    nodes = [node for level in levels for node in level]
    # a leaf is its own child
    starts = [first.get(node, place) for place, node in enumerate(nodes)]
    return np.asarray(nodes), np.asarray(starts, np.int32), len(levels) - 2


def laid_out(
    roots: Sequence[int],
    modes: Sequence[str],
    features: Array,
    values: Array,
    missing: Array,
    children: Sequence[Sequence[int]],
    weights: Array,
) -> Trees:
    """Order the nodes by levels; questions become intervals."""
    nodes, first, depth = by_levels(roots, modes, children)
    names = np.asarray(modes)[nodes]
    is_leaf = names == "LEAF"
    values = values[nodes]
    low = np.full_like(values, -np.inf)
    is_equal = np.isin(names, EQUAL)
    low[is_equal] = values[is_equal]
    high = values.copy()
    is_below = np.isin(names, BELOW)
    high[is_below] = np.nextafter(values, low, dtype=values.dtype)[is_below]
    high[is_leaf] = np.inf
    # NaN is not equal to any threshold, and no more than it either
    is_yes = missing[nodes] | (names == "BRANCH_NEQ")
    is_yes = is_yes ^ np.isin(names, SWAPPED)
    chosen = features[nodes].astype(np.int32)
    chosen[is_leaf] = 0
    added = weights[nodes]
    added[~is_leaf] = 0
    starts: Array = np.arange(len(roots), dtype=np.int32)
    return Trees(starts, chosen, low, high, is_yes | is_leaf, first, added, depth)


def walk(trees: Trees, x: Tensor) -> Tensor:
    """Walk all trees for all samples; gives what the leaves add: (N, trees, targets)."""
    features, children = Tensor(trees.features), Tensor(trees.children)
    low, high, missing = Tensor(trees.low), Tensor(trees.high), Tensor(trees.missing)
    has_low = bool((trees.low > -np.inf).any())
    is_leaf = trees.children == np.arange(len(trees.children))
    has_missing = bool((trees.missing & ~is_leaf).any())
    x = x.to(high.dtype)
    if not has_missing:  # NaN means no, as what is above all thresholds does
        x = where(x.isnan(), np.inf, x)
    place = Tensor(trees.roots).expand(x.shape[0], len(trees.roots))
    for _ in range(trees.depth):
        value = x.gather(1, features[place].long())
        is_no = value > high[place]
        if has_low:
            is_no = is_no | (value < low[place])
        if has_missing:
            is_no = where(value.isnan(), ~missing[place], is_no)
        # a leaf has itself for a child and says yes, so that it stays
        place = children[place] + is_no.to(children.dtype)
    return Tensor(trees.weights)[place]


def summed(call: Call, x: Value, attributes: dict[str, Any], leaves: str, count: int) -> Tensor:
    """Give what the trees say together, with the base values: (N, targets)."""
    trees = call.once(lambda: read_trees(attributes, leaves, count))
    method = AGGREGATES[attributes.get("aggregate_function", "SUM")]
    found = getattr(walk(trees, call.tensor(x)), method)(1)
    base = tensor_or_floats(attributes, "base_values")
    return found + Tensor(base) if base.size else found


@operator("TreeEnsembleRegressor", domain=ML)
def tree_regressor(call: Call, x: Value, **attributes: Any) -> Tensor:
    """Give what all trees say together, for each target."""
    found = summed(call, x, attributes, "target", attributes.get("n_targets", 1))
    return scored(found, attributes.get("post_transform", "NONE")).float()


@operator("TreeEnsembleClassifier", domain=ML)
def tree_classifier(call: Call, x: Value, **attributes: Any) -> tuple[Value, Tensor]:
    """Give the label with the largest sum, and the scores of all."""
    texts, numbers = (attributes.get(f"classlabels_{kind}") for kind in ("strings", "int64s"))
    count, transform = len(texts or numbers or ()), attributes.get("post_transform", "NONE")
    said = sorted(set(attributes["class_ids"]))
    if count != 2 or len(said) != 1:
        scores = summed(call, x, attributes, "class", count)
        places = scores.argmax(-1)
        return labelled(call, places, numbers, texts), scored(scores, transform).float()
    # trees speak of one class alone: sums of positive weights are its probability
    amounts = tensor_or_floats(attributes, "class_weights")
    is_probability = bool((amounts >= 0).all())
    one = {**attributes, "class_ids": [0] * len(attributes["class_ids"])}
    score = summed(call, x, one, "class", 1)
    places = (score[:, 0] > (0.5 if is_probability else 0.0)).long()
    if said == [0]:
        scores = paired(score, transform, is_probability).float()
    else:  # nothing is said of the first class
        scores = scored(cat([score * 0, score], 1), transform).float()
    return labelled(call, places, numbers, texts), scores


@operator("TreeEnsemble", domain=ML)
def tree_ensemble(call: Call, x: Value, **attributes: Any) -> Tensor:
    """Give what all trees say together; those that ask for members of a set run on the host."""
    if (np.asarray(attributes["nodes_modes"]) == MEMBER).any():
        return call.hosted([x])[0]
    found = walk(call.once(lambda: read_ensemble(attributes)), call.tensor(x))
    method = METHODS[attributes.get("aggregate_function", 1)]
    transform = TRANSFORMS[attributes.get("post_transform", 0)]
    return scored(getattr(found, method)(1), transform)


def read_ensemble(attributes: dict[str, Any]) -> Trees:
    """Read the attributes of TreeEnsemble, where leaves are apart from the nodes that ask."""
    splits = np.asarray(attributes["nodes_splits"])
    targets = attributes["leaf_targetids"]
    amounts = np.asarray(attributes["leaf_weights"])
    asked, leaves = len(splits), len(targets)
    numbers = np.asarray(attributes["nodes_modes"]).tolist()
    modes = [NAMES[number] for number in numbers] + ["LEAF"] * leaves
    children = []
    for name in ("true", "false"):
        below = np.asarray(attributes[f"nodes_{name}nodeids"])
        is_leaf = np.asarray(attributes[f"nodes_{name}leafs"], bool)
        children.append((below + asked * is_leaf).tolist() + [0] * leaves)
    weights = np.zeros((asked + leaves, attributes["n_targets"]), amounts.dtype)
    weights[np.arange(asked, asked + leaves), targets] = amounts
    return laid_out(
        attributes["tree_roots"],
        modes,
        np.pad(np.asarray(attributes["nodes_featureids"]), (0, leaves)),
        np.pad(splits, (0, leaves)),
        np.pad(tracked(attributes, asked), (0, leaves)),
        children,
        weights,
    )
