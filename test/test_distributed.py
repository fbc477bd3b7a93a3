"""picograd.distributed: this process is the only one."""

import importlib

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


def test_parts_of_one_process_are_the_whole() -> None:
    x, group = picograd.ones(2), distributed.new_group([0])
    assert group.rank() == 0 == distributed.get_global_rank(group, 0) and group.size() == 1
    assert distributed.get_process_group_ranks(group) == [0]
    calls = {
        "reduce_scatter": lambda out: distributed.reduce_scatter(out, [x]),
        "reduce_scatter_tensor": lambda out: distributed.reduce_scatter_tensor(out, x),
        "scatter": lambda out: distributed.scatter(out, [x], src=0),
        "gather": lambda out: distributed.gather(x, [out], dst=0),
        "all_to_all": lambda out: distributed.all_to_all([out], [x]),
        "all_to_all_single": lambda out: distributed.all_to_all_single(out, x),
    }
    for name, call in calls.items():
        found = picograd.zeros(2)
        assert call(found) is None and found.tolist() == [1.0, 1.0], name
    assert distributed.gather(x) is None and distributed.scatter(x) is None
    gathered, scattered = [None], [None]
    distributed.gather_object("a", gathered)
    distributed.scatter_object_list(scattered, ["b"])
    assert gathered == ["a"] and scattered == ["b"]


def test_a_store_of_one_process() -> None:
    store = distributed.TCPStore("localhost", 29500, 1, True)
    store.set("epoch", "3")
    assert store.get("epoch") == b"3" and store.add("steps", 2) + store.add("steps", 1) == 5
    assert store.num_keys() == 2 and store.check(["epoch"]) and store.delete_key("epoch")
    with pytest.raises(RuntimeError, match="no other process"):
        store.wait(["epoch"])


def test_what_is_told_of_models_in_parts() -> None:
    """Programs import these names before they ask how many processes there are."""
    fsdp = importlib.import_module("picograd.distributed.fsdp")
    assert fsdp.ShardingStrategy.FULL_SHARD == "FULL_SHARD" and fsdp.CPUOffload(True)
    assert fsdp.MixedPrecision(param_dtype=picograd.bfloat16) and fsdp.StateDictType
    assert not hasattr(fsdp.ShardingStrategy, "__missing__")
    make = importlib.import_module("picograd.distributed.optim").ZeroRedundancyOptimizer
    weight = picograd.nn.Parameter(picograd.ones(2))
    optimizer = make([weight], picograd.optim.SGD, lr=0.1, process_group=None)
    assert type(optimizer) is picograd.optim.SGD and optimizer.param_groups[0]["lr"] == 0.1
    assert not isinstance(optimizer, make)  # pytorch-ignite asks before it saves
