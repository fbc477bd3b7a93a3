"""Names whose subject is not here can be imported, derived from and asked."""

import warnings

import pytest

import picograd
from picograd import absent
from picograd.errors import DTypeError, StateError


def test_modes_of_operators_watch_nothing_and_questions_have_answers() -> None:
    class Mode(absent.TorchDispatchMode):
        def __torch_dispatch__(self, *given):
            raise AssertionError

    with Mode():
        assert (picograd.ones(2) + 1).tolist() == [2.0, 2.0]
    assert picograd.overrides.is_tensor_like(picograd.ones(1)) and not absent.is_tensor_like([1])
    assert not isinstance(3, picograd.SymInt) and picograd._C._get_tracing_state() is None
    assert picograd.overrides.handle_torch_function(max, (), 1, 2) == 2


def test_what_cannot_be_done_says_so() -> None:
    with pytest.raises(StateError, match="picograd.jit"):
        picograd.cuda.graph(picograd.cuda.CUDAGraph())
    assert picograd._C._jit_set_profiling_mode(False) is None
    with pytest.raises(AttributeError):
        absent.nothing


def test_compiled_extensions_are_refused() -> None:
    from picograd.utils.cpp_extension import CUDA_HOME, load_inline

    assert CUDA_HOME is None
    with pytest.raises(StateError, match="Fix: use"):
        load_inline(["x"])


def test_dtypes_that_tensors_do_not_have_are_names() -> None:
    assert picograd.ones(1).dtype != picograd.qint8 and picograd.chalf is picograd.complex32
    with pytest.raises(DTypeError, match="torch.complex32 is not a dtype"):
        picograd.zeros(2, dtype=picograd.complex32)


def test_names_of_levels_and_dispatch_keys() -> None:
    key = picograd._C.DispatchKey.AutocastCPU
    with picograd._C._ExcludeDispatchKeyGuard(picograd._C.DispatchKeySet(key)):
        pass
    x = picograd.ones(2)
    assert absent.get_unwrapped(x) is x and not absent.is_batchedtensor(x)
    with pytest.raises(StateError, match="picograd.vmap"):
        absent._add_batch_dim(x, 0, 1)


def test_operations_are_not_counted_one_by_one() -> None:
    with pytest.raises(StateError, match="picograd.profile"):
        picograd.utils.flop_counter.FlopCounterMode(display=False)


def test_no_tensor_wraps_others_unless_its_class_says_so() -> None:
    from picograd.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX
    from picograd.utils._python_dispatch import is_traceable_wrapper_subclass

    class Pair(picograd.Tensor):
        def __tensor_flatten__(self) -> None: ...
        def __tensor_unflatten__(self) -> None: ...

    assert _EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    assert not is_traceable_wrapper_subclass(
        picograd.ones(2)
    ) and not is_traceable_wrapper_subclass(1)
    assert is_traceable_wrapper_subclass(Pair([1.0]))


def test_views_are_of_one_memory() -> None:
    x = picograd.ones(3).realize()
    assert picograd._C._is_alias_of(x, x[1:]) and not picograd._C._is_alias_of(x, x.clone())
    assert not picograd._C._is_torch_function_mode_enabled()


def test_a_warning_comes_once() -> None:
    from picograd._dynamo.utils import warn_once

    with pytest.warns(UserWarning, match="of this test"):
        warn_once("of this test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_once("of this test")
    assert not picograd.utils._triton.has_triton()
    assert picograd.uint4 != picograd.uint8 and repr(picograd.uint4) == "torch.uint4"
