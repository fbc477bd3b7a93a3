"""gather: find the plans of what a user wants to look at."""

import json
import os
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from picograd.engine.backends import get_device, target_for
from picograd.engine.executable import without_memory
from picograd.engine.inspect import PlanView, named_target
from picograd.engine.plan_key import leaf_buffer, walk_pending
from picograd.engine.realize import pending_roots, realize
from picograd.engine.recorder import PlanRuns, Recorder, recorded
from picograd.errors import DataError, DTypeError, MissingFileError, ValueRangeError, writing
from picograd.graph.node import Node
from picograd.nn.module import Module
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import Target
from picograd.tensor.tensor import Tensor
from picograd.view.report import Run, SeenPlan, loaded_run

WHAT = "pass a tensor, tensors, a plan, a module or function with its arguments, or a saved file"


def gather(thing: Any, arguments: Sequence[Any], target: str = "", runs: int = 1) -> Run:
    """Make the run that shows `thing`; see `picograd.view`."""
    title = title_of(thing)
    if isinstance(thing, (str, Path)):
        return read_run(Path(thing))
    if isinstance(thing, (Plan, PlanView)):
        plan = thing.plan if isinstance(thing, PlanView) else thing
        return Run(title, [SeenPlan(without_memory(plan), targets_of(plan, target), "plan")])
    if isinstance(thing, Tensor) or not callable(thing):
        return Run(title, pending_plans(tensors_in(thing), target, {}))
    if isinstance(thing, Module) and not arguments:
        problem = f"{title} alone has no plan: it depends on its input"
        raise ValueRangeError("view", problem, "pass an input too: picograd.view(model, x)")
    names = names_in(thing)
    if runs < 1:
        raise ValueRangeError("view", f"runs={runs} is less than 1", "call it once or more often")
    with recorded() as recorder:
        for _ in range(runs):
            result = thing(*arguments)
    plans = plans_of(recorder, names)
    waiting = [tensor for tensor in found_tensors(result) if pending_roots([tensor.node])]
    if waiting:
        plans += pending_plans(waiting, target, names)
    return checked(title, plans)


def title_of(thing: Any) -> str:
    """Name what is looked at."""
    if isinstance(thing, (str, Path)):
        return Path(thing).name
    if isinstance(thing, Tensor):
        return f"Tensor{list(thing.shape)}"
    name = getattr(thing, "__name__", None)
    return str(name) if name else type(thing).__name__


def checked(title: str, plans: list[SeenPlan]) -> Run:
    """Make a run of plans, if there are some."""
    if not plans:
        raise ValueRangeError("view", f"{title} computed nothing", "return what it computes")
    return Run(title, plans)


def tensors_in(thing: Any) -> list[Tensor]:
    """List the tensors that a user passed."""
    tensors = [thing] if isinstance(thing, Tensor) else thing
    is_fit = isinstance(tensors, Iterable)
    tensors = list(tensors) if is_fit else []
    if not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise DTypeError("view", f"cannot show a {type(thing).__name__}", WHAT)
    return tensors


def found_tensors(value: Any) -> list[Tensor]:
    """List the tensors in what a function returned, in containers at any depth."""
    if isinstance(value, Tensor):
        return [value]
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    return [tensor for part in parts for tensor in found_tensors(part)]


def names_in(thing: Any) -> dict[int, str]:
    """Name the memory of a module's parameters and buffers, by identity; they get theirs now."""
    if not isinstance(thing, Module):
        return {}
    named = [*thing.named_parameters(), *thing.named_buffers()]
    realize([tensor.node for _, tensor in named])
    found = [(leaf_buffer(tensor.node), name) for name, tensor in named]
    return {id(buffer): name for buffer, name in found if buffer is not None}


def pending_plans(
    tensors: Sequence[Tensor], target: str, names: Mapping[int, str]
) -> list[SeenPlan]:
    """Schedule tensors that are not computed yet; nothing runs."""
    roots = pending_roots([tensor.node for tensor in tensors])
    if not roots:
        problem = "every tensor given is computed already, so there is no plan"
        raise ValueRangeError("view", problem, "look before reading, or pass the function")
    chosen = named_target(target) if target else target_for(walk_pending(roots))
    plan = schedule(list(roots), chosen)
    slots = named_slots([identity(node) for node in plan.inputs], names)
    # a page that stays open keeps no tensor's memory
    plan = without_memory(plan)
    return [SeenPlan(plan, targets_of(plan, target), "not run yet", names=slots)]


def identity(leaf: Node) -> int:
    """Identify the memory of a leaf."""
    return id(leaf_buffer(leaf))


def named_slots(buffers: Sequence[int], names: Mapping[int, str]) -> dict[int, str]:
    """Name the input slots whose memory has a name."""
    return {slot: names[buffer] for slot, buffer in enumerate(buffers) if buffer in names}


def targets_of(plan: Plan, target: str = "") -> dict[str, Target]:
    """Find what the kernels on each device of a plan are made for."""
    devices = sorted({slot.device for slot in plan.slots})
    if target:
        return dict.fromkeys(devices, named_target(target))
    return {device: get_device(device).target for device in devices}


def plans_of(recorder: Recorder, names: Mapping[int, str]) -> list[SeenPlan]:
    """List the plans that ran."""
    return [seen_plan(number, runs, names) for number, runs in enumerate(recorder.runs.values(), 1)]


def seen_plan(number: int, runs: PlanRuns, names: Mapping[int, str]) -> SeenPlan:
    """Describe a plan that ran; the program's line by its file's name alone."""
    origin = Path(runs.origin).name
    title = f"plan {number} ({origin})" if origin else f"plan {number}"
    slots = named_slots(runs.inputs, names)
    targets = targets_of(runs.plan)
    return SeenPlan(runs.plan, targets, title, origin, runs.count, runs.seconds, slots)


def run_script(path: str, arguments: Sequence[str]) -> Run:
    """Run a program as Python does, and gather the plans that it ran."""
    if not Path(path).is_file():
        raise MissingFileError("view", f"there is no file {path}", "give the path of a script")
    before = sys.argv, list(sys.path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        with recorded() as recorder:
            execute(lambda: runpy.run_path(path, run_name="__main__"))
    finally:
        sys.argv, sys.path[:] = before
    return checked(Path(path).name, plans_of(recorder, {}))


def execute(program: Callable[[], Any]) -> None:
    """Run a program; one that ends itself has ended well here too."""
    try:
        program()
    except SystemExit:
        pass


def read_run(path: Path) -> Run:
    """Read a run that was saved."""
    try:
        return loaded_run(path.stem, json.loads(path.read_text()))
    except FileNotFoundError as error:
        raise MissingFileError("view", f"there is no file {path}", WHAT) from error
    except (OSError, ValueError, TypeError, LookupError) as error:
        problem = f"{path} is no saved run: {type(error).__name__}"
        raise DataError("view", problem, "write one with save=...") from error


def save_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run with all of its kernels' stages."""
    with writing("view", path):
        Path(path).write_text(json.dumps(run.everything()))
