"""Which sums of exponentials join the maximum of few long rows, on a GPU."""

from plan_support import check_plan, leaf

from picograd.graph import build as graph
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


def test_a_softmax_of_few_long_rows_is_two_kernels() -> None:
    x = leaf(8, 1_000_000)
    gpu = cuda_target("sm_90a")
    for node in (graph.softmax(x, 1), graph.log_softmax(x, 1), graph.softmax(x * 0.5, 1)):
        heroes = [kernel.hero for kernel in schedule([node], gpu).kernels]
        assert heroes == ["reduce.row", "map"]
    many = graph.softmax(leaf(4096, 1000), 1)
    assert [kernel.hero for kernel in schedule([many], gpu).kernels] == ["reduce.row"]


def test_other_sums_wait_for_the_maximum() -> None:
    """Of another array, of what reads the maximum otherwise, or below a sum."""
    x, y = leaf(8, 1_000_000), leaf(8, 1_000_000)
    gpu = cuda_target("sm_90a")
    peak = x.reduce("max", (1,), keepdim=True).expand(x.shape)
    total = x.reduce("sum", (1,), keepdim=True).expand(x.shape)
    others = [y - peak, peak - x, x - total, x + peak, x - (peak + y), x - peak - y]
    others = [away.unary("exp") for away in others]
    for power in [*others, x - peak]:
        assert len(schedule([power.reduce("sum", (1,))], gpu).kernels) == 2


def test_values_stay_and_a_cpu_works_on_rows_itself() -> None:
    x = leaf(2, 50_000)
    roots = [graph.softmax(x, 1), graph.logsumexp(x, 1)]
    check_plan(roots, 2, target=cuda_target("sm_90a"))
    few = schedule([graph.softmax(leaf(2, 1_000_000), 1)], Target("llvm", "test", 64, threads=8))
    assert [kernel.hero for kernel in few.kernels] == ["reduce.row", "reduce.row", "map"]
