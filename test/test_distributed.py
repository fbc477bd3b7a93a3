"""picograd.distributed: this process is the only one."""

import pytest

import picograd
from picograd import distributed


def test_one_process() -> None:
    assert not distributed.is_available() and not distributed.is_initialized()
    assert distributed.get_rank() == 0 and distributed.get_world_size() == 1
    distributed.barrier(), distributed.destroy_process_group()
    with pytest.raises(RuntimeError, match="train in one process"):
        distributed.init_process_group("nccl", world_size=2)
    with pytest.raises(RuntimeError, match="train in one process"):
        distributed.send(picograd.ones(1), 1)


def test_a_group_of_one_process() -> None:
    distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        assert distributed.is_initialized() and distributed.get_backend() == "gloo"
        x, found = picograd.ones(2), [picograd.zeros(2)]
        assert distributed.all_reduce(x) is None and distributed.broadcast(x, 0) is None
        work = distributed.all_gather(found, x * 3, async_op=True)
        assert work is not None and work.wait() and found[0].tolist() == [3.0, 3.0]
        whole, objects = picograd.zeros(2), [None]
        distributed.all_gather_into_tensor(whole, x)
        distributed.all_gather_object(objects, "a")
        assert whole.tolist() == x.tolist() == [1.0, 1.0] and objects == ["a"]
    finally:
        distributed.destroy_process_group()
    assert not distributed.is_initialized()


def test_a_store_of_one_process() -> None:
    store = distributed.TCPStore("localhost", 29500, 1, True)
    store.set("epoch", "3")
    assert store.get("epoch") == b"3" and store.add("steps", 2) + store.add("steps", 1) == 5
    assert store.num_keys() == 2 and store.check(["epoch"]) and store.delete_key("epoch")
    with pytest.raises(RuntimeError, match="no other process"):
        store.wait(["epoch"])
