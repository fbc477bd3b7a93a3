"""What the host takes for a call of a jitted function, by what is passed and what it does.

Kernels of 4 x 4 numbers on one CPU thread; the lower quartile of 400 calls, processor time. With
PyTorch's optimizers and eager steps beside those rows that have one.

    python bench/jit_calls.py
"""

import time
from collections.abc import Callable
from typing import Any

import torch

import picograd
from picograd import Tensor, nn
from picograd.engine.native_calls import CALLS

COUNT, WARM = 400, 300
RATE = 0.01
Call = Callable[[], Any]


def tensors(count: int) -> list[Tensor]:
    return [picograd.randn(4, 4).realize() for _ in range(count)]


def calls() -> dict[str, Call]:
    """Make a call for each way to pass tensors."""
    a, b, *others = tensors(20)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    add = picograd.jit(lambda a, b: a + b)
    entries = picograd.jit(lambda batch: batch["a"] + batch["b"])
    total = picograd.jit(lambda listed: sum(listed[1:], listed[0]))
    named = picograd.jit(lambda a, b=None, flag=False: a + b if flag else a)
    passed = picograd.jit(lambda model, x: model(x))
    scaled = picograd.jit(lambda x, scale: x * scale)
    return {
        "two tensors": lambda: add(a, b),
        "a dict of two": lambda: entries({"a": a, "b": b}),
        "a list of 18": lambda: total(others),
        "by name, with a flag": lambda: named(a, b=b, flag=True),
        "a module and a tensor": lambda: passed(frozen, a),
        "a tensor and a number": lambda: scaled(a, 2.5),
    }


def steps(library: Any) -> dict[str, Call]:
    """Make steps whose loss, or whose optimizer, stands outside of what is jitted."""
    jit = picograd.jit if library is picograd else lambda function: function
    model = library.nn.Sequential(
        library.nn.Linear(4, 4), library.nn.ReLU(), library.nn.Linear(4, 4)
    )
    run, x = jit(model), library.randn(4, 4)

    def learn() -> Any:
        model.zero_grad()
        run(x).sum().backward()
        return model[0].weight.grad.numpy()

    found = {"a model; loss and backward outside": learn}
    for count in (1, 10, 60):
        weights = [library.nn.Parameter(library.randn(32, 32)) for _ in range(count)]
        for weight in weights:
            weight.grad = library.randn(32, 32)
        options = {"fused": True} if library is torch else {}
        optimizer = library.optim.AdamW(weights, lr=1e-3, **options)
        found[f"AdamW of {count} parameters of 32 x 32"] = jit(optimizer.step)
    return found


def whole_steps(library: Any) -> dict[str, Call]:
    """Make steps that train a perceptron of 16, 32 and 4, or one layer, in what is jitted."""
    jit = picograd.jit if library is picograd else lambda function: function
    model = library.nn.Sequential(
        library.nn.Linear(16, 32), library.nn.ReLU(), library.nn.Linear(32, 4)
    )
    optimizer = library.optim.Adam(model.parameters(), lr=RATE)
    x, y, labels = library.randn(32, 16), library.randn(32, 4), library.arange(32) % 4
    weight = library.randn(16, 4).requires_grad_()
    held = [library.randn(16, 4)]

    def adam(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    def written(weight: Any, x: Any, y: Any) -> Any:
        loss = (x @ weight - y).square().mean()
        loss.backward()
        with library.no_grad():
            weight -= RATE * weight.grad
        weight.grad = None
        return loss

    def made(weight: Any, x: Any, y: Any) -> Any:
        weight = weight.detach().requires_grad_()
        (x @ weight - y).square().mean().backward()
        return (weight - RATE * weight.grad).detach()

    def asked(weight: Any, x: Any, y: Any) -> Any:
        return library.autograd.grad((x @ weight - y).square().mean(), [weight])[0]

    def rated(x: Any, y: Any, rate: float) -> Any:
        model.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        with library.no_grad():
            for each in model.parameters():
                each -= rate * each.grad
        return loss

    adam, written, made, asked, rated = map(jit, (adam, written, made, asked, rated))
    return {
        "a perceptron's step with Adam": lambda: adam(x, labels),
        "weights as arguments": lambda: written(weight, x, y),
        "weights as arguments, new ones": lambda: held.append(made(held.pop(), x, y)),
        "autograd.grad": lambda: asked(weight, x, y),
        "the rate a number": lambda: rated(x, y, RATE),
    }


def measured(call: Call) -> float:
    """Time a call, in microseconds."""
    for _ in range(WARM):
        call()
    found = []
    for _ in range(COUNT):
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return sorted(found)[COUNT // 4] * 1e6


def main() -> None:
    torch.set_num_threads(1)
    CALLS.find("picograd_launch")
    CALLS.wait()
    for name, call in calls().items():
        print(f"{name:40s} {measured(call):8.1f} us")
    theirs = steps(torch) | whole_steps(torch)
    for name, call in (steps(picograd) | whole_steps(picograd)).items():
        print(f"{name:40s} {measured(call):8.1f} us   PyTorch {measured(theirs[name]):8.1f}")


if __name__ == "__main__":
    main()
