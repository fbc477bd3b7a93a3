"""Ensembles of decision trees of `ai.onnx.ml`: all samples walk all trees at once, level by level.

A node asks whether low <= x[feature] <= high, whatever the model calls it; its children lie side by
side, the one for yes first. A leaf is its own child, and answers yes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from picograd.onnx.table import Call, Value, operator
from picograd.onnx.tabular import ML, labelled, paired, scored
from picograd.tensor.public import cat, where
from picograd.tensor.tensor import Tensor

Array = Any
SWAPPED = ("BRANCH_GT", "BRANCH_GTE", "BRANCH_NEQ")  # the answer is the other one
BELOW = ("BRANCH_LT", "BRANCH_GTE")  # the threshold itself is not included
EQUAL = ("BRANCH_EQ", "BRANCH_NEQ")
MEMBER = 6  # the number of a question about members of a set
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
    a = attributes
    values = a.get("nodes_values_as_tensor", np.asarray(a.get("nodes_values", ()), np.float32))
    amounts = a.get(f"{leaves}_weights_as_tensor")
    amounts = np.asarray(a.get(f"{leaves}_weights", ()), np.float32) if amounts is None else amounts
    keys = list(zip(a["nodes_treeids"], a["nodes_nodeids"]))
    places = {key: place for place, key in enumerate(keys)}
    modes = list(a["nodes_modes"])
    firsts = {tree: place for place, (tree, _) in reversed(list(enumerate(keys)))}
    yes, no = (
        [places.get((tree, node), 0) for (tree, _), node in zip(keys, a[f"nodes_{name}nodeids"])]
        for name in ("true", "false")
    )
    missing = a.get("nodes_missing_value_tracks_true") or [0] * len(keys)
    weights = np.zeros((len(keys), targets), values.dtype)
    owners = zip(a[f"{leaves}_treeids"], a[f"{leaves}_nodeids"], a[f"{leaves}_ids"])
    for (tree, node, target), amount in zip(owners, amounts):
        weights[places[tree, node], target] += amount
    return laid_out(
        list(firsts.values()), modes, a["nodes_featureids"], values, missing, (yes, no), weights
    )


def laid_out(
    roots: Sequence[int],
    modes: Sequence[str],
    features: Any,
    values: Array,
    missing: Any,
    children: tuple[Sequence[int], Sequence[int]],
    weights: Array,
) -> Trees:
    """Order the nodes by levels, children side by side; questions become intervals."""
    order = [list(roots)]
    first: dict[int, int] = {}
    total = len(roots)
    while order[-1]:
        below: list[int] = []
        for node in order[-1]:
            if modes[node] == "LEAF":
                continue
            pair = [children[0][node], children[1][node]]
            first[node] = total + len(below)
            below += pair[::-1] if modes[node] in SWAPPED else pair
        total += len(below)
        order.append(below)
    nodes = np.asarray([node for level in order for node in level])
    names = np.asarray(modes)[nodes]
    is_leaf, is_below = names == "LEAF", np.isin(names, BELOW)
    values = values[nodes]
    high = np.where(is_below, np.nextafter(values, -np.inf, dtype=values.dtype), values)
    # NaN is not equal to any threshold, and no more than it either
    unequal = names == "BRANCH_NEQ"
    answers = (np.asarray(missing, bool)[nodes] | unequal) ^ np.isin(names, SWAPPED)
    return Trees(
        np.arange(len(roots), dtype=np.int32),
        np.where(is_leaf, 0, np.asarray(features)[nodes]).astype(np.int32),
        np.where(np.isin(names, EQUAL), values, -np.inf).astype(values.dtype),
        np.where(is_leaf, np.inf, high).astype(values.dtype),
        answers | is_leaf,
        np.asarray([first.get(n, place) for place, n in enumerate(nodes)], np.int32),
        weights[nodes] * is_leaf[:, None],
        len(order) - 2,
    )


def walk(trees: Trees, x: Tensor) -> Tensor:
    """Walk all trees for all samples; gives what the leaves add: (N, trees, targets)."""
    features, children = Tensor(trees.features), Tensor(trees.children)
    low, high, missing = Tensor(trees.low), Tensor(trees.high), Tensor(trees.missing)
    has_low = bool((trees.low > -np.inf).any())
    is_leaf = trees.children == np.arange(len(trees.children))
    has_missing = bool((trees.missing & ~is_leaf).any())
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
    x = call.tensor(x).to(Tensor(trees.high).dtype)
    method = AGGREGATES[attributes.get("aggregate_function", "SUM")]
    found = getattr(walk(trees, x), method)(1)
    base = attributes.get("base_values_as_tensor", attributes.get("base_values"))
    return found if base is None else found + Tensor(np.asarray(base, trees.high.dtype))


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
    amounts = attributes.get("class_weights_as_tensor")
    amounts = np.asarray(attributes.get("class_weights") if amounts is None else amounts)
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
    found = walk(trees, call.tensor(x).to(Tensor(trees.high).dtype))
    method = ("mean", "sum", "amin", "amax")[attributes.get("aggregate_function", 1)]
    transform = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return scored(getattr(found, method)(1), transform[attributes.get("post_transform", 0)])


def read_ensemble(a: dict[str, Any]) -> Trees:
    """Read the attributes of TreeEnsemble, where leaves are apart from the nodes that ask."""
    names = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    asked, splits = len(a["nodes_featureids"]), np.asarray(a["nodes_splits"])
    targets, amounts = a["leaf_targetids"], np.asarray(a["leaf_weights"])
    modes = [names[mode] for mode in np.asarray(a["nodes_modes"]).tolist()]
    is_leaf = a["nodes_trueleafs"], a["nodes_falseleafs"]
    nexts = a["nodes_truenodeids"], a["nodes_falsenodeids"]
    yes, no = (
        [place + asked * leaf for place, leaf in zip(places, leaves)]
        for places, leaves in zip(nexts, is_leaf)
    )
    count, more = asked + len(targets), len(targets)
    weights = np.zeros((count, a["n_targets"]), amounts.dtype)
    weights[np.arange(asked, count), targets] = amounts
    missing = list(a.get("nodes_missing_value_tracks_true") or [0] * asked) + [0] * more
    features = list(a["nodes_featureids"]) + [0] * more
    values = np.concatenate([splits, np.zeros(more, splits.dtype)])
    ends = (yes + [0] * more, no + [0] * more)
    return laid_out(
        a["tree_roots"], modes + ["LEAF"] * more, features, values, missing, ends, weights
    )
