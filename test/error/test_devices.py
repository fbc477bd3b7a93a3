"""Devices that do not exist, are missing, or differ between operands."""

from error_support import Case, check, named

import picograd
from picograd import Tensor, nn
from picograd.errors import DeviceError

X = Tensor.ones(2, 2)
FAR = Tensor.ones(2, 2, device="null")


CASES = [
    Case(
        "unknown", lambda: X.to("tpu"), DeviceError,
        "device: there is no device 'tpu'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "unknown for new tensor", lambda: Tensor([1.0], device="gpu"), DeviceError,
        "device: there is no device 'gpu'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "bad number", lambda: Tensor([1.0], device="cuda:x"), DeviceError,
        "device: there is no device 'cuda:x'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "second CPU", lambda: Tensor([1.0], device="cpu:1"), DeviceError,
        "device: there is no device 'cpu:1'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "number", lambda: Tensor([1.0], device=-1), DeviceError,
        "device: there is no device 'cuda:-1'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "model to unknown", lambda: nn.Linear(2, 3).to("npu"), DeviceError,
        "device: there is no device 'npu'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "synchronize unknown", lambda: picograd.synchronize("tpu"), DeviceError,
        "device: there is no device 'tpu'. Fix: use cpu, cuda, opencl, null, meta, or cuda:1 "
        "for the second GPU.",
    ),
    Case(
        "add", lambda: FAR + X, DeviceError,
        "add: operands are on different devices: null and cpu. Fix: move one with "
        '.to("null").',
    ),
    Case(
        "matmul", lambda: FAR @ X, DeviceError,
        "matmul: operands are on different devices: null and cpu. Fix: move one with "
        '.to("null").',
    ),
    Case(
        "cat", lambda: picograd.cat([X, FAR]), DeviceError,
        'cat: operands are on different devices: cpu and null. Fix: move one with .to("cpu").',
    ),
    Case(
        "gather", lambda: FAR.gather(1, Tensor([[0, 1], [1, 0]])), DeviceError,
        "gather: operands are on different devices: null and cpu. Fix: move one with "
        '.to("null").',
    ),
    Case(
        "index", lambda: X[Tensor([[0, 1], [1, 0]], device="null")], DeviceError,
        'getitem: operands are on different devices: cpu and null. Fix: move one with .to("cpu").',
    ),
    Case(
        "assign", lambda: Tensor.ones(2, 2).assign(FAR), DeviceError,
        "assign: operands are on different devices: cpu and null. Fix: move one with "
        '.to("cpu").',
    ),
    Case(
        "linear", lambda: nn.Linear(2, 3)(FAR), DeviceError,
        "linear: operands are on different devices: null and cpu. Fix: move one with "
        '.to("null").',
    ),
    Case(
        "cross_entropy",
        lambda: nn.functional.cross_entropy(X, Tensor([0, 1], device="null")),
        DeviceError,
        "cross_entropy: operands are on different devices: cpu and null. Fix: move one with "
        '.to("cpu").',
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
