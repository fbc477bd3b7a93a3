"""What the short way of a replay does for a trace that changes tensors: that of a training step.

Its writes happen in the plan. Gradients are new tensors, as everywhere; but where nothing except
its owner holds the last one, nobody can tell a new gradient from the old one with other contents:
then the plan writes into the same memory, and no tensor is made.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.buffer import Buffer
from picograd.engine import pending
from picograd.engine.executable import CompiledPlan, scalar_values
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_memory import own_memory
from picograd.tensor.transforms.jit_replay import (
    computed,
    draw_again,
    prepare_writes,
    spread_writes,
)
from picograd.tensor.transforms.jit_trace import Capture, Result


class Changes:
    """This class runs a plan and does what a trace did beside computing."""

    def __init__(self, capture: Capture, plan: CompiledPlan) -> None:
        self.capture = capture
        self.draws = bool(capture.drawn) or any(each.renew is not None for each in capture.scalars)
        places = plan.new_results()
        self.unkept: list[Any] = list(plan.unkept)
        self.reads = any(was is not None for *_, was in capture.read)  # gradients: they stay
        self.gradients: list[tuple[Callable[[], Any], Result, int]] = [
            (find, result, places[result.number] if result.kind == "root" else -1)
            for find, result in capture.gradients
        ]

    def run(
        self, plan: CompiledPlan, args: Sequence[Tensor], inputs: list[Any], are_shown: bool
    ) -> list[Buffer]:
        """Run the plan of the trace; `are_shown` if views may show what it writes."""
        capture = self.capture
        if capture.early is not None:
            capture.early.run(inputs)
        if capture.recorded != pending.recorded():
            prepare_writes(capture, args)
        values = draw_again(capture, ()) if self.draws else scalar_values(capture.scalars)
        kept = self.kept() if self.gradients else None
        results = plan.run(inputs, values, "", kept)
        if are_shown:
            spread_writes(capture, args)
        if kept is not None:
            self.give_gradients(results, kept)
        capture.recorded = pending.recorded()
        return results

    def kept(self) -> list[Any]:
        """List the memory of gradients that nothing else holds, for the plan to write."""
        kept = self.unkept.copy()
        for find, result, place in self.gradients:
            owner = find()
            if place >= 0 and owner is not None and not self.reads:
                kept[place] = own_memory(owner, result.shape)
        return kept

    def give_gradients(self, results: Sequence[Buffer], kept: list[Any]) -> None:
        """Set the gradients that the plan did not write where they are."""
        for find, result, place in self.gradients:
            if place >= 0 and results[result.number] is kept[place]:
                continue
            owner = find()
            if owner is None:
                continue
            is_none = result.kind == "none"
            buffer = None if is_none else results[result.number]
            owner._grad = buffer and computed(buffer, result.shape, result.is_made)


def changes_of(capture: Capture, plan: CompiledPlan) -> Changes | None:
    """Prepare what a trace changes; None if it does more than a training step."""
    leaves = {id(each.find()) for each in capture.captured if each.described[-1]}
    for find, result in capture.gradients:
        is_ours = result.kind == "none" or (result.kind == "root" and not result.tracks)
        if isinstance(find, int) or id(find()) not in leaves or not is_ours or result.sizes:
            return None
    return Changes(capture, plan)
