"""PyTorch's `torch.utils.benchmark`: how long a statement takes, on how many threads.

A statement that nobody reads computes nothing here: after each run the value of its last line, or
else all that waits, is computed, and the clock is read when the device is done.
"""

import ast
import math
import statistics
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any

from picograd.engine import pending
from picograd.engine.realize import synchronize
from picograd.errors import ValueRangeError
from picograd.late_methods import dataclass
from picograd.settings import get_num_threads, set_num_threads
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.pytree import leaves_of

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer"]

UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
FRAME = "def run(compute, clock, synchronize, number):\n    for _ in range(number):\n        pass"


def compute(value: Any) -> None:
    """Compute the tensors of a value; without any, all that waits."""
    tensors = [each for each in leaves_of(value) if isinstance(each, Tensor)]
    if tensors:
        tensors[0].realize(*tensors[1:])
    else:
        pending.realize_all()


def in_unit(seconds: float) -> str:
    """Write a time: 1.50 us."""
    name, unit = next((row for row in reversed(UNITS) if seconds >= row[1]), UNITS[0])
    return f"{seconds / unit:.2f} {name}"


@dataclass(frozen=True)
class TaskSpec:
    """This class says what was timed."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement itself."""
        text = self.label or self.stmt
        return f"{text}: {self.sub_label}" if self.sub_label else text


@dataclass
class Measurement:
    """This class holds the times of runs, each of `number_per_run` calls, in seconds."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """Seconds a call, one number a run."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """The time in the middle."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The range that the middle half of the runs lie in."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self) -> bool:
        """Whether the runs are few, or spread over more than a tenth."""
        return len(self.times) < 4 or self.iqr > 0.1 * self.median

    @property
    def title(self) -> str:
        """The label, or the statement itself."""
        return self.task_spec.title

    def __repr__(self) -> str:
        task, runs = self.task_spec, len(self.times)
        lines = [f"<picograd.benchmark.Measurement of {self.title}>", f"setup: {task.setup}"]
        if runs == 1:
            lines.append(f"  {in_unit(self.median)}")
        else:
            lines += [f"  Median: {in_unit(self.median)}", f"  IQR:    {in_unit(self.iqr)}"]
        threads = f"{task.num_threads} thread{'s' * (task.num_threads > 1)}"
        plural = "s" * (runs > 1)
        lines.append(f"  {runs} measurement{plural}, {self.number_per_run} runs , {threads}")
        return "\n".join(lines)


class Timer:
    """This class times a statement, given as text, among the names of `globals`.

    >>> import picograd
    >>> from picograd.utils import benchmark
    >>> timer = benchmark.Timer("x @ x", globals={"x": picograd.ones(8, 8)}, label="product")
    >>> found = timer.timeit(10)
    >>> found.number_per_run, 0 < found.median < 1, found.title
    (10, True, 'product')
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = time.perf_counter, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: str = "python",
    ) -> None:  # fmt: skip
        if str(language).lower().rpartition(".")[2] not in ("python", "py"):
            raise ValueRangeError(
                "Timer", f"language={language!r}", "write the statement in Python"
            )
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        names = (label, sub_label, description, env)
        self._task_spec = TaskSpec(stmt, setup, global_setup, *names, num_threads)
        self._timer = timer
        scope = dict(globals or {})
        scope.setdefault("picograd", __import__("picograd"))
        exec(compile_run(stmt, setup), scope)
        self._run: Callable[..., float] = scope["run"]

    def seconds(self, number: int) -> float:
        """Time so many calls."""
        threads = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return self._run(compute, self._timer, synchronize, number)
        finally:
            set_num_threads(threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Time so many calls, after a few that compile."""
        self.seconds(max(1, min(number // 100, 2)))
        return Measurement(number, [self.seconds(number)], self._task_spec)

    def autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Time runs of so many calls that each takes long enough, until the time is up."""
        self.seconds(2)
        number, found = 1, self.seconds(1)
        while found < min_run_time / 1000 and number < 1 << 30:
            number *= 10
            found = self.seconds(number)
        times = [found]
        while math.fsum(times) < min_run_time:
            times.append(self.seconds(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Time runs until `min_run_time` seconds are over."""
        return self.autorange(callback, min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:
        """Time runs until half of them lie within a share of the median, or the time is up."""
        spent = min_run_time
        while True:
            found = self.autorange(callback, spent)
            if found.iqr <= threshold * found.median or spent >= max_run_time:
                return found
            spent = min(2 * spent, max_run_time)


def compile_run(stmt: str, setup: str) -> Any:
    """Make the code of `run`: the setup, then the loop over the statement between two clocks."""
    frame, body, before = ast.parse(FRAME), ast.parse(stmt).body, ast.parse(setup).body
    last, value = body[-1], "None"
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(
            ast.Assign([ast.Name("_value", ast.Store())], last.value), last
        )
        value = "_value"
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        value = last.targets[0].id
    function: Any = frame.body[0]
    loop = function.body[0]
    loop.body = [*body, *ast.parse(f"compute({value})").body]
    started, ended = "synchronize(); _begin = clock()", "synchronize(); _end = clock()"
    after = ast.parse(ended).body
    function.body = [*before, *ast.parse(started).body, loop, *after]
    function.body.append(ast.Return(ast.parse("_end - _begin", mode="eval").body))
    return compile(ast.fix_missing_locations(frame), "<timed statement>", "exec")


class Compare:
    """This class prints measurements as a table: a row a sub-label, a column a description."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self.results = list(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Add measurements."""
        self.results += results

    def trim_significant_figures(self) -> None:
        """Accept PyTorch's wish: times have two decimals."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accept PyTorch's wish: the table has no colours."""

    def __str__(self) -> str:
        specs = [each.task_spec for each in self.results]
        columns = list(dict.fromkeys(each.description or "" for each in specs))
        rows: dict[str, dict[str, str]] = {}
        for spec, found in zip(specs, self.results):
            name = f"{spec.sub_label or spec.stmt} ({spec.num_threads})"
            rows.setdefault(name, {})[spec.description or ""] = in_unit(found.median)
        table = [["", *columns]] + [
            [name, *(row.get(column, "") for column in columns)] for name, row in rows.items()
        ]
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [" | ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        return "\n".join([f"[{specs[0].label or specs[0].stmt}]", *lines]) if specs else ""

    def print(self) -> None:
        """Print the table."""
        print(str(self))
