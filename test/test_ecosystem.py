"""Packages of others take tensors: each test is with the real package."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import picograd
from picograd import Tensor

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((40, 3)).astype(np.float32)


def test_jaxtyping_checks_shapes_and_dtypes() -> None:
    jaxtyping = pytest.importorskip("jaxtyping")
    beartype = pytest.importorskip("beartype")

    rows = jaxtyping.Float[Tensor, "batch 3"]

    @jaxtyping.jaxtyped(typechecker=beartype.beartype)
    def scaled(x: rows) -> rows:
        return x * 2

    assert scaled(Tensor(X)).shape == (40, 3)
    for wrong in (Tensor.ones(4, 2), Tensor.ones(4, 3, dtype=picograd.int32)):
        with pytest.raises(jaxtyping.TypeCheckError):
            scaled(wrong)


def test_safetensors_reads_and_writes() -> None:
    package = pytest.importorskip("safetensors.numpy")
    state = {"w": Tensor(X)}
    data = package.save({name: tensor.numpy() for name, tensor in state.items()})
    back = package.load(data)
    assert (Tensor(back["w"]).numpy() == X).all()


def test_tokenizers_feed_embeddings() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ids = Tensor(tokenizer.encode("a b c a").ids)
    assert picograd.nn.Embedding(3, 4)(ids).shape == (4, 4)
    assert tokenizer.decode(ids.tolist()) == "a b ? a"


def test_pandas_and_tensors_are_made_of_one_another() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.asarray(Tensor(X)), columns=list("abc"))
    assert (Tensor(frame.to_numpy()).numpy() == X).all()
    assert picograd.tensor(frame["a"].values).shape == (40,)
    assert picograd.tensor(frame["a"]).sum().item() == pytest.approx(frame["a"].sum(), rel=1e-5)
    assert pandas.Series(Tensor(X[:, 0])).mean() == pytest.approx(X[:, 0].mean(), rel=1e-4)


def test_matplotlib_draws_tensors(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3)
    axes[0].plot(Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 4.0, 9.0]))
    axes[1].imshow(Tensor(X))
    axes[2].hist(Tensor(X[:, 0]))
    figure.savefig(tmp_path / "figure.png")
    pyplot.close(figure)
    line = axes[0].lines[0].get_ydata()
    assert np.asarray(line).tolist() == [1.0, 4.0, 9.0]


def test_pictures_come_and_go() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = Tensor(GENERATOR.integers(0, 256, (5, 7, 3)), dtype=picograd.uint8)
    picture = image.fromarray(np.asarray(pixels))
    assert picture.size == (7, 5)
    assert (Tensor(np.asarray(picture)).numpy() == pixels.numpy()).all()
    assert (picograd.tensor(picture).numpy() == pixels.numpy()).all()


def test_tensorboard_writes_tensors(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from picograd.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", Tensor(0.5), 1)
        writer.add_scalars("losses", {"train": Tensor(0.5), "test": 1.0}, 1)
        writer.add_histogram("weights", Tensor(X).requires_grad_(), 1)
        writer.add_image("picture", Tensor.ones(3, 4, 4), 1)
        with pytest.warns(UserWarning, match="no graph is written"):
            writer.add_graph(picograd.nn.ReLU(), Tensor(X))
    assert any(path.stat().st_size for path in tmp_path.iterdir())


ESTIMATORS = """
import numpy as np
import picograd
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int64)
calls = [
    *[lambda a, b, kind=kind: kind().fit_transform(a)
      for kind in (MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler)],
    lambda a, b: PCA(2, svd_solver="full").fit_transform(a),
    lambda a, b: Ridge(solver="svd").fit(a, a[:, 0]).predict(a),
    lambda a, b: LinearDiscriminantAnalysis().fit(a, b).predict(a),
    lambda a, b: cosine_similarity(a, a),
]
numbers = [
    lambda a, b: accuracy_score(b, b),
    lambda a, b: mean_squared_error(a[:, 0], a[:, 1]),
]
with sklearn.config_context(array_api_dispatch=True):
    for call in [*calls, *numbers]:
        found, wanted = call(picograd.tensor(x), picograd.tensor(y)), call(x, y)
        assert call in numbers or isinstance(found, picograd.Tensor)
        assert np.allclose(np.asarray(found), wanted, atol=1e-5)
print("equal")
"""
FUNCTIONS = """
import numpy as np
import picograd
import scipy.cluster, scipy.fft, scipy.ndimage, scipy.signal, scipy.special, scipy.stats

x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
calls = [
    lambda a: scipy.special.logsumexp(a, axis=1),
    lambda a: scipy.special.softmax(a, axis=1),
    lambda a: scipy.special.erf(a),
    lambda a: scipy.fft.fft(a, axis=0),
    lambda a: scipy.stats.zscore(a),
    lambda a: scipy.stats.skew(a),
    lambda a: scipy.stats.pearsonr(a[:, 0], a[:, 1]).statistic,
    lambda a: scipy.stats.entropy(scipy.special.softmax(a, axis=1), axis=1),
    lambda a: scipy.signal.detrend(a, axis=0),
    lambda a: scipy.cluster.vq.whiten(a),
    lambda a: scipy.ndimage.gaussian_filter(a, 1.0),
]
for call in calls:
    found, wanted = call(picograd.tensor(x)), call(x)
    assert isinstance(found, picograd.Tensor)
    assert np.allclose(np.asarray(found), wanted, atol=1e-5)
print("equal")
"""


@pytest.mark.parametrize(("package", "code"), [("sklearn", ESTIMATORS), ("scipy", FUNCTIONS)])
def test_functions_of_numpy_take_tensors(package: str, code: str) -> None:
    """In a process of its own: SciPy reads its flag when it is imported."""
    pytest.importorskip(package)
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.stdout == "equal\n", found.stderr


def test_autoray_finds_functions_of_tensors():
    autoray = pytest.importorskip("autoray")
    x = picograd.arange(6.0).reshape(2, 3)
    assert autoray.infer_backend(x) == "picograd" and autoray.shape(x) == (2, 3)
    assert autoray.do("transpose", x, (1, 0)).tolist() == x.T.tolist()
    assert autoray.do("max", x, axis=1).tolist() == [2.0, 5.0]
    assert autoray.do("concatenate", [x, x], axis=1).shape == (2, 6)
    assert autoray.do("pad", x, ((1, 0), (0, 2)), mode="constant").shape == (3, 5)
    assert autoray.do("zeros", (2,), dtype="float64", like=x).dtype is picograd.float64
    assert autoray.do("linalg.svd", x)[0].shape == (2, 2)
    assert autoray.to_numpy(autoray.astype(x, "float64")).dtype == np.float64
