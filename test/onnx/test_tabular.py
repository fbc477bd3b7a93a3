"""Operators of `ai.onnx.ml` on numbers equal ONNX Runtime's."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import helper
from runtime_support import compare, compare_node, model_of, output

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 3)).astype(np.float32)
WHOLE = np.array([[1, 2, 5], [5, 9, 1]])
REAL, INT = [np.float32], [np.int64]
LABELS = {"classlabels_ints": [3, 5, 8]}


def test_features() -> None:
    compare_node("Scaler", {"x": X}, REAL, offset=[1.0, 2.0, 3.0], scale=[2.0, 0.5, 1.0])
    compare_node("Scaler", {"x": WHOLE}, REAL, offset=[1.0], scale=[2.0])
    for norm in ("L1", "L2"):
        compare_node("Normalizer", {"x": X}, REAL, norm=norm)
    compare_node("Binarizer", {"x": X}, REAL, threshold=0.25)
    compare_node("ArrayFeatureExtractor", {"x": X, "places": np.array([2, 0])}, REAL)
    compare_node("FeatureVectorizer", {"x": X, "y": X * 2}, REAL, inputdimensions=[3, 2])
    missing = X.copy()
    missing[1, 2] = np.nan
    for value in (float("nan"), float(X[0, 0])):
        settings = dict(imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=value)
        compare_node("Imputer", {"x": missing}, REAL, **settings)
    compare_node("OneHotEncoder", {"x": WHOLE}, REAL, cats_int64s=[1, 5, 7])


def test_labels() -> None:
    compare_node("LabelEncoder", {"x": WHOLE}, INT, keys_int64s=[1, 5], values_int64s=[10, 50])
    settings: Any = dict(keys_int64s=[1, 5], values_floats=[0.5, 1.5], default_float=-2.0)
    compare_node("LabelEncoder", {"x": WHOLE}, REAL, **settings)
    reals = np.array([1.0, np.nan, 3.0], np.float32)
    settings = dict(keys_floats=[1.0, float("nan")], values_int64s=[10, 50], default_int64=7)
    compare_node("LabelEncoder", {"x": reals}, INT, **settings)
    texts = np.array(["a", "b", "c"], object)
    settings = dict(keys_strings=["a", "c"], values_int64s=[1, 3])
    compare_node("LabelEncoder", {"x": texts}, INT, is_jitted=False, **settings)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_models(transform: str) -> None:
    weights = RANDOM.normal(size=(3, 3)).ravel().tolist()
    settings: Any = dict(coefficients=weights, intercepts=[0.1, -0.2, 0.3])
    settings["post_transform"] = transform
    arrays = {"x": X}
    compare_node("LinearClassifier", arrays, [np.int64, np.float32], **settings, **LABELS)
    compare_node("LinearRegressor", arrays, REAL, targets=3, **settings)
    two: Any = dict(coefficients=weights[:3], intercepts=[0.1], classlabels_ints=[3, 5])
    if transform in ("NONE", "LOGISTIC"):
        settings = two | {"post_transform": transform}
        compare_node("LinearClassifier", arrays, [np.int64, np.float32], **settings)


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kind: str) -> None:
    vectors = RANDOM.normal(size=(4, 3)).ravel().tolist()
    settings: Any = dict(kernel_type=kind, kernel_params=[0.5, 0.25, 2.0])
    settings |= dict(support_vectors=vectors, coefficients=[1.0, -0.5, 0.25, -0.75], rho=[0.1])
    arrays = {"x": X}
    compare_node("SVMRegressor", arrays, REAL, n_supports=4, **settings)
    settings |= dict(vectors_per_class=[2, 2], prob_a=[-1.5], prob_b=[0.25])
    settings |= dict(classlabels_ints=[3, 5], is_jitted=False)
    compare_node("SVMClassifier", arrays, [np.int64, np.float32], **settings)


def test_maps_of_scores() -> None:
    ml = "ai.onnx.ml"
    for labels in ({"classlabels_int64s": [3, 5, 8]}, {"classlabels_strings": ["a", "b", "c"]}):
        node = helper.make_node("ZipMap", ["x"], ["y"], domain=ml, **labels)
        kind, reals = output("y", np.int64), helper.make_tensor_type_proto(1, [])
        keys = 7 if "classlabels_int64s" in labels else 8
        kind.type.CopyFrom(helper.make_sequence_type_proto(helper.make_map_type_proto(keys, reals)))
        compare(model_of([node], {"x": X}, [kind]), {"x": X}, is_jitted=False)
