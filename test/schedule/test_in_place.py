"""Maps write where they read, at the steps where most memory is taken, and nowhere else."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.dtype import DType, float32, int32
from picograd.schedule import in_place
from picograd.schedule.in_place import merged_kernel, write_in_place
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.schedule.plan import CopyStep, KernelLaunch, PlanSlot, Step

SIZE = 1 << 19  # elements: 2 MiB
I = Axis("i", SIZE)  # noqa: E741
HERE = axis_index(I)
BEHIND = HERE * -1 + (SIZE - 1)


def kernel(at: Index = HERE, dtype: DType = float32, hero: str = "map") -> Kernel:
    """Make a kernel: s1[i] = -s0[at]."""
    body = Expr("neg", (Expr("load", (), (0, at), dtype),), None, dtype)
    compute = Compute((I,), (), None, body, dtype, (1, HERE))
    slots = Slot(dtype, SIZE, "in"), Slot(float32, SIZE, "out")
    return Kernel("k", hero, slots, (), (Part((I,), (compute,)),))


def launch(source: int, target: int, which: Kernel | None = None) -> KernelLaunch:
    return KernelLaunch(which or kernel(), (source, target), (), "cpu")


def slots(*kinds: str, size: int = SIZE) -> list[PlanSlot]:
    return [PlanSlot(kind, float32, size, "cpu", (size,), (1,)) for kind in kinds]


def touched(steps: list[Step]) -> list[tuple[int, ...]]:
    return [step.slots for step in steps if isinstance(step, KernelLaunch)]


CHAIN = "input", "temporary", "temporary", "output"


def test_a_map_writes_where_it_read_last() -> None:
    made = write_in_place(slots(*CHAIN), [launch(0, 1), launch(1, 2), launch(2, 3)])
    assert touched(made) == [(0, 2), (2,), (2, 3)]
    step = made[1]
    assert isinstance(step, KernelLaunch)
    assert [slot.role for slot in step.kernel.slots] == ["inout"]


@pytest.mark.parametrize("steps", [
    [launch(0, 1), launch(1, 2, kernel(BEHIND)), launch(2, 3)],
    [launch(0, 1), launch(1, 2, kernel(hero="reduce.row")), launch(2, 3)],
    [launch(0, 1), launch(1, 2, kernel(dtype=int32)), launch(2, 3)],
    [launch(0, 1), launch(1, 2), launch(1, 3), launch(2, 3)],
    [CopyStep(0, 1), launch(1, 2), launch(2, 3)],
], ids=["another element", "rows", "another dtype", "read later", "a copy"])  # fmt: skip
def test_what_does_not_write_where_it_read(steps: list[Step]) -> None:
    assert write_in_place(slots(*CHAIN), steps) == steps


def test_short_arrays_are_left_alone() -> None:
    steps: list[Step] = [launch(0, 1), launch(1, 2), launch(2, 3)]
    assert write_in_place(slots(*CHAIN, size=1 << 17), steps) == steps


def test_steps_below_the_peak_are_left_alone() -> None:
    large = slots("temporary", size=8 * SIZE)
    both = KernelLaunch(kernel(), (4, 3), (), "cpu")
    steps: list[Step] = [launch(0, 1), launch(1, 2), launch(2, 3), both]
    assert write_in_place([*slots(*CHAIN), *large], steps) == steps


def test_chains_lie_in_one_array() -> None:
    kinds = ["input", *["temporary"] * 4, "output"]
    made = write_in_place(slots(*kinds), [launch(n, n + 1) for n in range(5)])
    assert touched(made) == [(0, 4), (4,), (4,), (4,), (4, 5)]


def test_a_second_store_to_the_target_keeps_arrays_apart() -> None:
    plain = kernel()
    twice = Kernel("k", "map", plain.slots, (), plain.parts * 2)
    assert merged_kernel(plain, 0, 1) is not None and merged_kernel(twice, 0, 1) is None


def test_values_stay_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(in_place, "LEAST", 1)
    merged: list[str] = []
    move = in_place.merged_kernel

    def noted(kernel: Kernel, source: int, target: int) -> Kernel | None:
        found = move(kernel, source, target)
        merged.extend([] if found is None else [found.name])
        return found

    monkeypatch.setattr(in_place, "merged_kernel", noted)
    generator = np.random.default_rng(0)
    shapes = (91, 53), (53, 2), (2, 91)
    arrays = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    made = []
    for a, b, c in (map(Tensor, arrays), map(torch.tensor, arrays)):
        rows = (a.cumsum(1) * 0.1).tanh()
        made.append((c @ rows) @ (b * (rows @ b).sum()))
    np.testing.assert_allclose(made[0].numpy(), made[1].numpy(), rtol=1e-4)
    assert merged


def test_sums_that_share_all_their_terms_are_no_join() -> None:
    """`a, b = b, a + b`: each term once more at every step."""
    first, second = (Expr("load", (), (slot, HERE), float32) for slot in (0, 1))
    terms = in_place.terms_of(Expr("add", (first, second), None, float32), {})
    assert terms == [(second, {}), (first, {})]
    for _ in range(24):
        first, second = second, Expr("add", (first, second), None, float32)
    assert in_place.terms_of(second, {}) is None
    a, b = Tensor([0]), Tensor([1])
    for _ in range(60):
        a, b = b, a + b
    assert a.tolist() == [1548008755920]
