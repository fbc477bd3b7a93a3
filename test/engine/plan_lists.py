"""Trains small networks and prints a digest of every plan and its texts: the same in every process.

python test/engine/plan_lists.py JUNK: other numbers leave other holes in memory, so that objects
get addresses in another order, and import parts of picograd in another order.
"""

import hashlib
import importlib
import sys

JUNK = [bytes(size % 600) for size in range(0, 7919 * int(sys.argv[1]), 7)]
del JUNK[:: 2 + int(sys.argv[1])]

for name in ("nn.optim", "func", "amp")[:: 1 - 2 * (int(sys.argv[1]) % 2)]:
    importlib.import_module(f"picograd.{name}")

# ruff: noqa: E402 - the rest after those
import picograd
from picograd import Tensor, nn
from picograd.codegen.pipeline import generate
from picograd.config import config
from picograd.engine.backends import get_device, target_of
from picograd.engine.executable import all_launches
from picograd.engine.realize import PLANS
from picograd.schedule.canonical import canonical_key
from picograd.schedule.plan import KernelLaunch

optim = picograd.nn.optim
HOLES: list[object] = []


def holes() -> None:
    """Leave holes in memory, others in every process, between the objects of a step."""
    made = [Tensor([0.0]).node for _ in range(40 + 13 * int(sys.argv[1]))]
    HOLES.extend(made[:: 3 + int(sys.argv[1])])


def convolutions() -> None:
    """Two batch norms, dropout and Adam."""
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4),
        nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    x, y = Tensor.ones(4, 2, 6, 6), Tensor([0, 1, 2, 0])
    for _ in range(3):
        holes()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def adversaries() -> None:
    """Two networks, two optimizers, an average of the weights."""
    maker, judge = nn.Linear(3, 5), nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    average = [p.detach().clone() for p in maker.parameters()]
    first = optim.Adam(maker.parameters())
    second = optim.SGD(judge.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        holes()
        noise = picograd.randn(4, 3)
        second.zero_grad()
        (judge(maker(noise).detach()).square().mean() - judge(Tensor.ones(4, 5)).mean()).backward()
        second.step()
        first.zero_grad()
        judge(maker(noise)).mean().backward()
        first.step()
        with picograd.no_grad():
            for slow, fast in zip(average, maker.parameters()):
                slow.mul_(0.9).add_(fast, alpha=0.1)


def recurrent() -> None:
    """A loop over time in the graph, one by hand, embeddings, writes of parts, steps by hand."""
    table, cell, layer = nn.Embedding(7, 4), nn.RNNCell(4, 4), nn.GRU(4, 4)
    modules = nn.ModuleList([table, cell, layer])
    state, kept = Tensor.zeros(2, 4), Tensor.zeros(8, 4)
    for step in range(3):
        holes()
        x, _ = layer(table(Tensor([[1, 2], [3, 4]])))
        for row in x:
            state = cell(row, state)
        state.square().sum().backward()
        state = state.detach()
        with picograd.no_grad():
            kept[step] = state[0]
            kept[5:7].add_(state)
            for p in modules.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        kept.realize()


def sizes_that_vary() -> None:
    """Pictures, products and maps of sizes that vary, each of which is a condition of a kernel."""
    layer, weight = nn.Conv2d(2, 3, 3, padding=1, device="cpu"), Tensor.ones(4, 5, device="cpu")
    with config.override(dynamic=1):
        for sizes in ((6, 7, 3, 8), (9, 8, 4, 2), (7, 5, 6, 6)):
            holes()
            height, width, *_ = sizes
            layer(Tensor.ones(1, 2, height, width, device="cpu")).relu().square().mean().backward()
            layer.weight.grad.realize()
            (Tensor.ones(height, width, 4, device="cpu") @ weight * 2.0).softmax(1).realize()
            (Tensor.ones(*sizes, device="cpu").realize() + 1.0).realize()


SCRIPTS = convolutions, adversaries, recurrent, sizes_that_vary


def text_of(launch: KernelLaunch) -> str:
    """Write the code of a kernel."""
    return generate(launch.kernel, target_of(get_device(launch.device))).source


def main() -> None:
    """Train, and print a line for every plan."""
    config.verify = 1  # one found on disk would not show its kernels
    for script in SCRIPTS:
        known = len(PLANS)
        picograd.manual_seed(0)
        script()
        picograd.synchronize()
        for key in PLANS.keys()[known:]:
            plan = PLANS[key].plan  # type: ignore[attr-defined]
            kernels = [(canonical_key(x.kernel), x.slots, x.scalars) for x in all_launches(plan)]
            texts = [text_of(launch) for launch in all_launches(plan)]
            text = repr((key[0], plan.slots, kernels, plan.outputs, texts))
            print(script.__name__, len(kernels), hashlib.sha256(text.encode()).hexdigest()[:16])


if __name__ == "__main__":
    main()
