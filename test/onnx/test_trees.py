"""Ensembles of trees equal ONNX Runtime's: every question, NaN, several classes and targets."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from runtime_support import compare_node

from picograd.onnx.trees import read_trees

ORDERS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
MODES = (*ORDERS, "BRANCH_EQ", "BRANCH_NEQ")


def forest(modes: Any, targets: int, kind: str, trees: int = 4, missing: bool = False) -> Any:
    """Draw trees of different depths over 3 features, whose values are small whole numbers."""
    random = np.random.default_rng(0)
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes",
                            "truenodeids", "falsenodeids", "missing_value_tracks_true")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        count, waiting = 1, [(0, 0)]
        while waiting:
            node, depth = waiting.pop(0)
            is_leaf = depth > 3 or (depth > 0 and random.random() < 0.3)
            below = (0, 0) if is_leaf else (count, count + 1)
            count += 0 if is_leaf else 2
            row = (tree, node, int(random.integers(3)), float(random.integers(-2, 3)),
                   "LEAF" if is_leaf else str(random.choice(modes)), *below,
                   int(missing and random.random() < 0.5))  # fmt: skip
            for key, value in zip(nodes, row):
                nodes[key].append(value)
            waiting += [] if is_leaf else [(each, depth + 1) for each in below]
            for target in range(targets) if is_leaf else ():
                amount = float(random.normal())
                for key, value in zip(leaves, (tree, node, target, amount)):
                    leaves[key].append(value)
    found = {f"nodes_{key}": value for key, value in nodes.items()}
    if not missing:
        del found["nodes_missing_value_tracks_true"]
    return found | {f"{kind}_{key}": value for key, value in leaves.items()}


def samples() -> Any:
    """Draw rows whose values are those of the questions; some are not there."""
    x = np.random.default_rng(1).integers(-3, 4, (40, 3)).astype(np.float32)
    x[3, 1], x[5], x[7, 0] = np.nan, np.nan, np.inf
    return x


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("modes", [(each,) for each in MODES] + [ORDERS, MODES])
def test_questions(modes: Any, missing: bool) -> None:
    x = samples()
    if missing:  # ONNX Runtime asks otherwise where NaN meets questions that are not <=
        x = x if modes == ("BRANCH_LEQ",) else np.nan_to_num(x, nan=0.0)
    settings = forest(modes, 2, "target", missing=missing)
    compare_node("TreeEnsembleRegressor", {"x": x}, [np.float32], n_targets=2, **settings)


@pytest.mark.parametrize("method", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_what_trees_say_together(method: str) -> None:
    settings = forest(ORDERS[:1], 2, "target") | {"aggregate_function": method}
    settings |= {"base_values": [0.5, -1.0], "n_targets": 2}
    compare_node("TreeEnsembleRegressor", {"x": samples()}, [np.float32], **settings)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_several_classes(transform: str) -> None:
    settings = forest(ORDERS[:1], 3, "class") | {"post_transform": transform}
    settings["classlabels_int64s"] = [4, 7, 9]
    compare_node("TreeEnsembleClassifier", {"x": samples()}, [np.int64, np.float32], **settings)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("is_positive", [False, True])
@pytest.mark.parametrize("said", [0, 1])
def test_two_classes_of_one_score(said: int, is_positive: bool, transform: str) -> None:
    settings = forest(ORDERS[:1], 1, "class")
    if is_positive:
        amounts = settings["class_weights"]
        settings["class_weights"] = [abs(each) / 8 for each in amounts]
    settings["class_ids"] = [said] * len(settings["class_ids"])
    settings |= {"post_transform": transform, "classlabels_int64s": [4, 7]}
    compare_node("TreeEnsembleClassifier", {"x": samples()}, [np.int64, np.float32], **settings)


def test_labels_that_are_texts() -> None:
    settings = forest(ORDERS[:1], 3, "class") | {"classlabels_strings": ["a", "b", "c"]}
    dtypes = [np.dtype(object), np.float32]
    arrays = {"x": samples()}
    compare_node("TreeEnsembleClassifier", arrays, dtypes, is_jitted=False, **settings)


def test_children_lie_side_by_side() -> None:
    trees = read_trees(forest(MODES, 1, "target"), "target", 1)
    is_leaf = trees.children == np.arange(len(trees.children))
    assert is_leaf.any() and (trees.children[~is_leaf] > np.nonzero(~is_leaf)[0]).all()
    assert np.isinf(trees.high[is_leaf]).all() and (trees.weights[~is_leaf] == 0).all()
    assert trees.depth == 4 and trees.roots.tolist() == [0, 1, 2, 3]
