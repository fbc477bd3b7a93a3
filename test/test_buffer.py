"""Buffer, Storage and RuntimeScalar: names for memory, compared by identity."""

import gc
import weakref

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.dtype import bfloat16, float64


def test_buffer() -> None:
    assert Buffer("cpu", float64, 10, 0).nbytes == 80
    assert Buffer("cpu", bfloat16, 3, 0).nbytes == 6
    assert repr(Buffer("cuda:1", bfloat16, 3, 0)) == "Buffer(cuda:1, bfloat16[3])"


def test_dropping_the_storage_drops_the_buffer() -> None:
    storage = Storage(Buffer("cpu", float64, 4, 0, handle=object()))
    alive = weakref.ref(storage.buffer)
    del storage
    gc.collect()
    assert alive() is None


def test_storage_and_scalar_are_identities() -> None:
    assert Storage(None) != Storage(None) and Storage(None).version == 0
    assert "version 0" in repr(Storage(None))
    one, other = RuntimeScalar(0.5), RuntimeScalar(0.5, lambda: 1.5)
    assert one != other and one.renew is None and other.renew() == 1.5
    assert repr(one) == "RuntimeScalar(0.5)"
