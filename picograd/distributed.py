"""Several processes under torch.distributed's names: this is the only one."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from picograd.errors import DeviceError, StateError
from picograd.tensor.tensor import Tensor

T = TypeVar("T")
BACKENDS: list[str] = []  # of the group of one process, once a program made it

__path__: list[str] = []  # so that Python asks for PyTorch's modules below


def is_available() -> bool:
    """Tell that processes cannot train together, until a program made a group of one.

    >>> import picograd.distributed
    >>> picograd.distributed.is_available()
    False
    """
    return bool(BACKENDS)


is_nccl_available = is_gloo_available = is_mpi_available = is_available


def is_initialized() -> bool:
    """Tell whether a group of one process was made."""
    return bool(BACKENDS)


def get_rank(group: Any = None) -> int:
    """Number this process among those that train together."""
    return 0


def get_backend(group: Any = None) -> str:
    """Name how processes would talk."""
    return BACKENDS[-1] if BACKENDS else "undefined"


def get_world_size(group: Any = None) -> int:
    """Count the processes that train together."""
    return 1


def barrier(*given: Any, **options: Any) -> None:
    """Wait for the other processes: there are none."""


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    *given: Any,
    **options: Any,
) -> None:
    """Make a group of one process; DeviceError for several."""
    count = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if count != 1:
        refused()
    BACKENDS.append(backend or "gloo")


def refused(*given: Any, **options: Any) -> NoReturn:
    """Raise: one process trains."""
    raise DeviceError("distributed", "processes cannot train together", "train in one process")


def destroy_process_group(group: Any = None) -> None:
    """End the group of one process."""
    BACKENDS.clear()


class Store:
    """This class keeps values by name for processes that meet: this one.

    >>> import picograd.distributed as dist
    >>> store = dist.TCPStore("localhost", 0, 1, True)
    >>> store.set("step", "3"); store.get("step"), store.add("count", 2)
    (b'3', 2)
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        """Give a value; nobody else could set it. Raises StateError."""
        self.wait([key])
        return self.values[key]

    def add(self, key: str, amount: int) -> int:
        """Add to a count, which starts at 0."""
        count = int(self.values.get(key, b"0")) + amount
        self.set(key, str(count))
        return count

    def wait(self, keys: Sequence[str], *timeout: Any) -> None:
        """Wait until there are values. Raises StateError where none can come."""
        missing = [key for key in keys if key not in self.values]
        if missing:
            text = f"there is no {', '.join(missing)}, and no other process to set it"
            raise StateError("Store", text, "set it first")

    def check(self, keys: Sequence[str]) -> bool:
        """Tell whether there are values."""
        return all(key in self.values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Forget a value; tells whether there was one."""
        return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        """Count the values."""
        return len(self.values)


TCPStore = FileStore = HashStore = Store


class Work:
    """This class is what a collective operation gives that does not wait: it is done."""

    def wait(self, *given: Any) -> bool:
        """Wait for nothing."""
        return True


def all_reduce(
    tensor: Any, op: Any = None, group: Any = None, async_op: bool = False, **options: Any
) -> Work | None:
    """Join the values of all processes in each: those of one stay."""
    return Work() if async_op else None


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the values of each process into a list: those of one.

    >>> import picograd.distributed as dist
    >>> found = [picograd.zeros(2)]
    >>> dist.all_gather(found, picograd.ones(2))
    >>> found[0].tolist()
    [1.0, 1.0]
    """
    tensor_list[0].copy_(tensor)
    return Work() if async_op else None


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the values of all processes into one tensor."""
    return all_gather([output_tensor], input_tensor, group, async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put an object of each process into a list."""
    object_list[0] = obj


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Join the values of all processes, and give each its part: one has them all.

    >>> import picograd.distributed as dist
    >>> found = picograd.zeros(2)
    >>> dist.reduce_scatter(found, [picograd.ones(2)])
    >>> found.tolist()
    [1.0, 1.0]
    """
    return all_gather([output], input_list[0], group, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give each process its part of a list: the first."""
    return all_gather([tensor], (scatter_list or [tensor])[0], group, async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Copy the values of each process into a list of one: those of one."""
    return all_gather(gather_list or [tensor], tensor, group, async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its part of a list: the first."""
    return all_gather(output_tensor_list, input_tensor_list[0], group, async_op)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, *given: Any) -> None:
    """Put an object of each process into a list of one."""
    if object_gather_list:
        object_gather_list[0] = obj


def scatter_object_list(into: list[Any], objects: list[Any] | None = None, *given: Any) -> None:
    """Give each process its object of a list: the first."""
    into[0] = (objects or into)[0]


def new_group(*given: Any, **options: Any) -> "ProcessGroup":
    """Make a group of this process."""
    return ProcessGroup()


def get_global_rank(group: Any, group_rank: int) -> int:
    """Number a process of a group among all."""
    return group_rank


get_group_rank = get_global_rank


def get_process_group_ranks(group: Any = None) -> list[int]:
    """List the processes of a group."""
    return [0]


def record(function: T) -> T:
    """Give a function back, whose errors no launcher waits for."""
    return function


class ReduceOp:
    """This class names how values of several processes are joined."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"
    BAND, BOR, BXOR, PREMUL_SUM = "band", "bor", "bxor", "premul_sum"


class Backend(str):
    """This class names a backend.

    >>> Backend("GLOO") == Backend.GLOO
    True
    """

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"

    def __new__(cls, name: str) -> "Backend":
        """Write the name in small letters."""
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """This class stands for groups of processes: each is of this one."""

    def rank(self) -> int:
        """Number this process in the group."""
        return 0

    def size(self) -> int:
        """Count the processes of the group."""
        return 1


class group:
    """This class names the group of all processes."""

    WORLD = None
    NON_GROUP_MEMBER = -100  # no group is this


class DeviceMesh:
    """This class stands for devices that share tensors: there are none."""


class DTensor:
    """This class stands for tensors that devices share: there are none."""


class MixedPrecisionPolicy:
    """This class stands for dtypes of parameters that processes share: there are none."""


class AnyChoice(type):
    """This class makes classes with every name that they are asked for."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class ShardingStrategy(metaclass=AnyChoice):
    """This class stands for what PyTorch is told about models in parts: one process has none."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Take any."""


BackwardPrefetch = CPUOffload = CPUOffloadPolicy = MixedPrecision = ShardingStrategy
StateDictType = FullStateDictConfig = ShardedStateDictConfig = ShardingStrategy
FullOptimStateDictConfig = ShardedOptimStateDictConfig = ShardingStrategy
StateDictConfig = OptimStateDictConfig = LocalStateDictConfig = ShardingStrategy
LocalOptimStateDictConfig = StateDictSettings = OffloadPolicy = CheckpointImpl = ShardingStrategy
GroupMember = group


class ZeroRedundancyOptimizer:
    """This class makes the optimizer that it is given: one process has all of its state.

    It is a class, as programs ask whether an optimizer is one. None is.
    """

    def __new__(cls, params: Any, optimizer_class: Callable[..., Any], **options: Any) -> Any:
        """Make the optimizer."""
        for name in ("process_group", "parameters_as_bucket_view", "overlap_with_ddp"):
            options.pop(name, None)
        return optimizer_class(params, **options)


FSDPModule = FullyShardedDataParallel = ProcessGroup
Shard = Replicate = Partial = Placement = DTensor


broadcast = broadcast_object_list = reduce = all_reduce
reduce_scatter_tensor = all_to_all_single = all_gather_into_tensor
monitored_barrier = barrier
get_node_local_rank = get_rank
send = recv = isend = irecv = batch_isend_irecv = P2POp = refused
context = get_gradients = rpc_async = rpc_sync = remote = init_rpc = RRef = refused
fully_shard = implicit_replication = refused
apply_activation_checkpointing = checkpoint_wrapper = offload_wrapper = refused
_get_default_group = new_group
init_device_mesh = distribute_tensor = distribute_module = refused
