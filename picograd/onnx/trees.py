"""Ensembles of decision trees of `ai.onnx.ml`: all samples walk all trees at once, level by level.

A node asks whether low <= x[feature] <= high, whatever the model calls it; its children lie side by
side, the one for yes first. A leaf is its own child, and answers yes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.late_methods import dataclass
from picograd.onnx.table import Call, Value, operator
from picograd.onnx.tabular import ML, labelled, paired, scored
from picograd.tensor.public import cat, where
from picograd.tensor.tensor import Tensor

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
        below = zip(owners, attributes[name])
        children.append([places.get(key, 0) for key in below])
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
    trees = call.once(lambda: read_ensemble(attributes))
    found = walk(trees, call.tensor(x))
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
