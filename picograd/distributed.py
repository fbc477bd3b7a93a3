"""Several processes under torch.distributed's names: this is the only one."""

from typing import Any, NoReturn

from picograd.errors import DeviceError

__path__: list[str] = []  # so that Python asks for PyTorch's modules below


def is_available() -> bool:
    """Tell that processes cannot train together.

    >>> import picograd.distributed
    >>> picograd.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Tell that no group of processes was made."""
    return False


def get_rank(group: Any = None) -> int:
    """Number this process among those that train together."""
    return 0


def get_backend(group: Any = None) -> str:
    """Name how processes talk: not at all."""
    return "undefined"


def get_world_size(group: Any = None) -> int:
    """Count the processes that train together."""
    return 1


def barrier(*given: Any, **options: Any) -> None:
    """Wait for the other processes: there are none."""


def init_process_group(*given: Any, **options: Any) -> NoReturn:
    """Raise: one process trains."""
    raise DeviceError("distributed", "processes cannot train together", "train in one process")


def destroy_process_group(group: Any = None) -> None:
    """End the group of processes: there is none."""


class ReduceOp:
    """This class names how values of several processes are joined."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"


class ProcessGroup:
    """This class stands for groups of processes: there are none."""


class group:
    """This class names the group of all processes."""

    WORLD = None


class DeviceMesh:
    """This class stands for devices that share tensors: there are none."""


class DTensor:
    """This class stands for tensors that devices share: there are none."""


class MixedPrecisionPolicy:
    """This class stands for dtypes of parameters that processes share: there are none."""


FSDPModule = FullyShardedDataParallel = ProcessGroup
Shard = Replicate = Partial = Placement = DTensor


all_gather = all_gather_object = all_gather_into_tensor = all_reduce = init_process_group
broadcast = broadcast_object_list = gather = scatter = reduce = init_process_group
reduce_scatter = all_to_all = send = recv = new_group = init_process_group
get_global_rank = get_group_rank = gather_object = scatter_object_list = isend = irecv = new_group
batch_isend_irecv = all_to_all_single = P2POp = monitored_barrier = new_group
fully_shard = implicit_replication = init_process_group
init_device_mesh = distribute_tensor = distribute_module = init_process_group
