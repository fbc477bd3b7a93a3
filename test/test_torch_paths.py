"""Modules of PyTorch that programs import from, where picograd has no file of that name."""

import importlib
import inspect
import subprocess
import sys

import pytest

import picograd
from picograd import torch_paths


@pytest.mark.parametrize("path", torch_paths.PATHS)
def test_every_path_is_imported(path: str) -> None:
    module = importlib.import_module(f"picograd.{path}")
    assert sys.modules[f"picograd.{path}"] is module


@pytest.mark.parametrize("path", torch_paths.PATHS)
def test_every_path_is_one_of_pytorch(path: str) -> None:
    pytest.importorskip("torch")
    try:
        importlib.import_module(f"torch.{path}")
    except ModuleNotFoundError:
        assert path in OLDER, path


OLDER = {"optim.adamw", "torch"}  # of versions before; and `torch.torch`, which is no file


def test_names_are_those_of_the_rooms() -> None:
    from picograd.nn.modules.batchnorm import BatchNorm2d, _BatchNorm  # type: ignore
    from picograd.nn.modules.utils import _pair  # type: ignore
    from picograd.optim.adam import Adam  # type: ignore

    assert BatchNorm2d is picograd.nn.BatchNorm2d and issubclass(BatchNorm2d, _BatchNorm)
    assert _pair(3) == (3, 3) and Adam is picograd.optim.Adam
    assert picograd.nn.modules.conv.Conv2d is picograd.nn.Conv2d  # type: ignore


def test_names_that_the_files_of_pytorch_import_themselves() -> None:
    """Programs import them from there, as editors complete them."""
    from picograd.nn.modules.activation import Parameter, xavier_uniform_  # type: ignore
    from picograd.nn.modules.conv import Tensor  # type: ignore
    from picograd.nn.modules.rnn import PackedSequence  # type: ignore

    assert Tensor is picograd.Tensor and Parameter is picograd.nn.Parameter
    assert xavier_uniform_ is picograd.nn.init.xavier_uniform_
    assert PackedSequence is picograd.nn.utils.rnn.PackedSequence


def test_paths_are_attributes_without_an_import() -> None:
    paths = [path for path in torch_paths.PATHS if path != "jit.annotations"]  # below a function
    paths += ["utils.data.sampler", "utils.data.dataloader", "utils.data.dataset"]
    lines = "\n".join(f"picograd.{path}" for path in paths)
    script = f"import picograd\n{lines}\nassert not hasattr(picograd.autograd, 'nothing')"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_is_not_there_is_not_made_up() -> None:
    with pytest.raises(ImportError):
        from picograd.distributions import Nothing  # type: ignore # noqa: F401
    with pytest.raises(ImportError):
        importlib.import_module("picograd.nn.modules.nothing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("picograd.nn.modules.linear").nothing


def test_functions_stay_functions() -> None:
    function = picograd.jit
    assert importlib.import_module("picograd.jit") is function and picograd.jit is function
    from picograd.jit import Final  # type: ignore
    from picograd.jit.annotations import List  # type: ignore

    assert Final[int] is int and List is not None
    assert importlib.import_module("picograd.fft") is picograd.fft


def test_star_imports_what_the_room_shows() -> None:
    space: dict[str, object] = {}
    exec("from picograd.nn.modules.activation import *", space)
    assert space["ReLU"] is picograd.nn.ReLU


def test_installing_twice_changes_nothing() -> None:
    before = list(sys.meta_path)
    torch_paths.install()
    assert sys.meta_path == before


def test_private_names_of_layers_are_signatures_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (
        importlib.import_module(f"{each}.nn.modules.utils") for each in ("picograd", "torch")
    )
    for name in ("_single", "_pair", "_triple", "_quadruple"):
        for given in (2, (1, 2, 3), [4]):
            assert getattr(ours, name)(given) == tuple(getattr(theirs, name)(given))
    assert ours._reverse_repeat_tuple((1, 2), 2) == theirs._reverse_repeat_tuple((1, 2), 2)
    assert inspect.isclass(importlib.import_module("picograd.nn.modules.loss")._Loss)
    assert torch.nn.modules is not None


def test_a_name_that_jit_has_not_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="_get_frozen_graph"):
        from picograd.jit import _get_frozen_graph  # noqa: F401


def test_private_names_that_packages_import() -> None:
    operators = importlib.import_module("picograd.onnx.operators")
    assert operators.shape_as_tensor(picograd.ones(2, 3)).tolist() == [2, 3]
    _vmap = importlib.import_module("picograd._vmap_internals")._vmap
    assert _vmap(lambda x: x * 2)(picograd.ones(3)).tolist() == [2.0, 2.0, 2.0]
    before = repr(picograd.tensor([0.125]))
    with picograd._tensor_str.printoptions(precision=1):
        assert repr(picograd.tensor([0.125])) == "Tensor([0.1])"
    assert repr(picograd.tensor([0.125])) == before
    assert not picograd.cuda._initialized


def test_files_of_layers_list_what_is_in_them() -> None:
    activation = importlib.import_module("picograd.nn.modules.activation")
    kinds = [each for each in vars(activation).values() if inspect.isclass(each)]
    assert picograd.nn.Tanh in kinds and picograd.nn.PReLU in kinds


def test_names_that_packages_of_graphs_import() -> None:
    assert picograd._tensor_str._tensor_str(picograd.tensor([1.0, 2.5]), 0) == "[1.0000, 2.5000]"
    assert isinstance(picograd.profiler.EventList([1]), list)
    assert not picograd._C._functorch.is_gradtrackingtensor(picograd.ones(1))
    assert set(picograd.distributions.constraints.__all__) > {"positive", "simplex"}
    loaders = importlib.import_module("picograd.utils.data.dataloader")
    assert not isinstance(iter([]), loaders._MultiProcessingDataLoaderIter)
    assert importlib.import_module("picograd.distributed.rpc").is_available() is False
    assert picograd.serialization.pickle.loads(b"N.") is None


def test_classes_that_are_named_with_what_they_hold() -> None:
    data = picograd.utils.data
    for kind in (data.DataLoader, data.Dataset, data.IterableDataset, data.Sampler):
        assert kind[int] is kind


def test_names_of_observers_shards_and_compilers() -> None:
    observer = importlib.import_module("picograd.quantization.observer")
    assert issubclass(observer.HistogramObserver, picograd.nn.Module)
    assert importlib.import_module("picograd.quantization.qconfig").QConfig
    fsdp = importlib.import_module("picograd.distributed.fsdp")
    assert fsdp.MixedPrecisionPolicy and fsdp.fully_shard
    assert importlib.import_module("picograd.distributed._composable.fsdp").FSDPModule
    api = importlib.import_module("picograd.distributed.fsdp.api")
    assert api.ShardingStrategy.FULL_SHARD and api.StateDictSettings
    whole = importlib.import_module("picograd.distributed.fsdp.fully_sharded_data_parallel")
    assert isinstance(whole.FullyShardedDataParallel, type)
    groups = importlib.import_module("picograd.distributed.distributed_c10d")
    assert groups._get_default_group().size() == 1
    assert groups.Backend("NCCL") == groups.Backend.NCCL and groups.ReduceOp.BAND
    path = "picograd.distributed.algorithms._checkpoint.checkpoint_wrapper"
    assert importlib.import_module(path).CheckpointImpl.NO_REENTRANT
    assert picograd.nn.modules.conv._ConvTransposeMixin and picograd._C.Graph
    assert picograd.amp.grad_scaler.OptState.READY.value == 0
    with pytest.raises(RuntimeError, match="is no file here"):
        picograd.jit._get_trace_graph(picograd.nn.Linear(1, 1), picograd.ones(1))
    tensors = importlib.import_module("picograd.distributed._tensor.experimental")
    assert tensors.implicit_replication
    assert issubclass(picograd._dynamo.exc.BackendCompilerFailed, RuntimeError)


def test_settings_of_compilers_are_accepted() -> None:
    picograd._dynamo.config.suppress_errors = True
    config = importlib.import_module("picograd._inductor.config")
    config.coordinate_descent_tuning = config.triton.unique_kernel_names = True
    assert picograd._inductor.config is config


def test_what_layers_of_programs_call() -> None:
    class Own(picograd.nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, input: picograd.Tensor) -> None:
            if input.ndim != 3:
                raise ValueError("three axes")

    with pytest.raises(ValueError, match="three axes"):
        Own(3)(picograd.ones(2, 3))
    assert Own(3)(picograd.ones(2, 3, 4)).shape == (2, 3, 4)
    picograd.nn.BatchNorm2d(3)._check_input_dim(picograd.ones(1, 3, 2, 2))
    layer = picograd.nn.Conv2d(1, 1, (3, 5), padding=(1, 2), padding_mode="reflect")
    assert layer._reversed_padding_repeated_twice == [2, 2, 1, 1]
    assert len(picograd.nn.modules.transformer._get_clones(layer, 2)) == 2
    assert picograd.utils.data.ConcatDataset([[1], [2, 3]]).cumulative_sizes == [1, 3]
    assert picograd.is_autocast_cache_enabled() and picograd.clear_autocast_cache() is None
    assert picograd.get_autocast_gpu_dtype() is picograd.float16
    assert not picograd.distributed.is_nccl_available()


def test_another_name_for_the_package_has_the_same_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lent", picograd)
    try:
        for path in ("nn.functional", "nn.modules.batchnorm", "jit", "fft", "utils.data"):
            found = importlib.import_module(f"lent.{path}")
            assert found is importlib.import_module(f"picograd.{path}")
        with pytest.raises(ModuleNotFoundError, match="nothing_of_ours"):
            importlib.import_module("lent.nothing_of_ours")
        assert picograd.nn.__spec__.name == "picograd.nn"
    finally:
        for name in [name for name in sys.modules if name.startswith("lent.")]:
            del sys.modules[name]


def test_functorch_is_ours_where_torch_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "functorch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", picograd)
    monkeypatch.setitem(sys.modules, "functorch", None)
    del sys.modules["functorch"]
    assert importlib.import_module("functorch") is picograd.func
    assert str(picograd.float32)[6:] == "float32" and repr(picograd.strided) == "torch.strided"
    assert picograd.utils._pytree.__file__.endswith("tree_specs.py")
