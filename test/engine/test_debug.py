"""DEBUG=1..4: what each level prints; levels are cumulative, and none changes anything.

Ancestors' list: M33, M42, M51.
"""

import gc
import os
import re
import subprocess
import sys
import time
import timeit
from pathlib import Path

import numpy as np
import pytest
from debug_tools import fresh_engine, masked, outline, small_network

from picograd import Tensor, jit
from picograd.config import config
from picograd.engine import assembly, debug
from picograd.engine.backends import get_device
from picograd.engine.compile import LOADED
from picograd.runtime.nvrtc import compile_cuda

GOLDEN = Path(__file__).parents[1] / "golden"
KERNEL_LINE = re.compile(r"^ *\d+ (cpu|null|cuda)")


def kernel_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if KERNEL_LINE.match(line)]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_golden(level, capsys, update_golden, monkeypatch, tmp_path):
    """On the null device, so that the text is the same on every machine."""
    monkeypatch.setattr("picograd.engine.compile.assembly_of", lambda code, target: "ASSEMBLY")
    gc.collect()  # else memory of other tests is freed in between
    get_device("null").empty_cache()
    with fresh_engine(debug=level, cache=str(tmp_path)):
        result = small_network("null").numpy()
        gc.collect()  # what was planned refers to itself, and to the memory it read
        debug.log_summary()
        del result
        text = capsys.readouterr().err
    text = masked(outline(text))
    path = GOLDEN / f"debug_{level}.txt"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text(), "output changed; run with --update-golden if meant"


def test_levels_are_cumulative(capsys, tmp_path):
    """Every kind of line of a level appears on the next."""
    seen: set[str] = set()
    for level in range(5):
        with fresh_engine(debug=level, cache=str(tmp_path / str(level))):
            small_network("cpu").numpy()
        text = capsys.readouterr().err
        kinds = set(re.findall(r"^(?:--- (?:\w+)| {7}\w+|number)", text, re.MULTILINE))
        assert seen < kinds if level else not text
        seen = kinds
    assert {"--- graph", "--- plan", "--- loop", "--- tile", "--- program", "--- source"} < seen
    assert {"       allocate", "       copy", "       compile", "--- assembly"} < seen


def test_one_line_a_launch(capsys):
    device = get_device("null")
    with fresh_engine(cache=""):
        network = jit(lambda x: (x @ x).softmax(1).sum(0))
        x = Tensor(np.ones((8, 8), np.float32), device="null")
        network(x)
        before = device.launches
        with config.override(debug=2):
            for _ in range(3):
                network(x)
    lines = kernel_lines(capsys.readouterr().err)
    assert len(lines) == device.launches - before > 3
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))


def test_environment_and_exit_summary():
    """DEBUG=1 from outside: a heading, kernels, one plan line, a table whose shares are 100 %."""
    program = "import picograd as p; print(((p.ones(99) + p.rand(99)).exp().sum()).item() > 0)"
    environment = {**os.environ, "DEBUG": "1", "PICOGRAD_DEVICE": "cpu"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "True\n"
    assert "\033" not in done.stderr, "colour codes"
    assert done.stderr.startswith("number device  kernel")
    shares = [float(share) for share in re.findall(r"^ *(\d+\.\d) %", done.stderr, re.MULTILINE)]
    launched = len(kernel_lines(done.stderr))
    assert abs(sum(shares) - 100) < 0.1 * len(shares)
    assert f"\n{launched} kernels, " in done.stderr


def test_launches_name_the_users_line(capsys):
    with fresh_engine(debug=2, cache=""):
        (Tensor([1.0, 2.0], device="cpu") * 3).realize()
    line = kernel_lines(capsys.readouterr().err)[0]
    assert re.search(r"test_debug\.py:\d+$", line)


def test_hit_and_miss(capsys, tmp_path):
    """A kernel found on disk still prints its IRs and source."""
    texts = []
    for _ in range(2):
        with fresh_engine(debug=3, cache=str(tmp_path)):
            (Tensor([1.0, 2.0], device="cpu").exp() * 3).realize()
        texts.append(capsys.readouterr().err)
    first, second = texts
    assert ", miss\n" in first and ", hit\n" not in first
    assert ", hit\n" in second and ", miss\n" not in second
    for stage in ("loop", "tile", "program", "source"):
        assert f"--- {stage}\n" in second
    assert "@map_mul_2" in second


def test_memory_is_reserved_once_and_reused(capsys):
    device = get_device("cpu")
    size = 123 << 10
    with config.override(debug=2):
        device.empty_cache()
        first = device.allocate(size)
        del first
        second = device.allocate(size)
        del second
        device.empty_cache()
    text = capsys.readouterr().err
    actions = re.findall(r"(allocate|free|give back).*?(reused|from the system|$)", text, re.M)
    kinds = [f"{action} {how}".strip() for action, how in actions][-5:]
    assert kinds[:4] == ["allocate from the system", "free", "allocate reused", "free"]
    assert "give back cpu" in text


@pytest.mark.parametrize("name", ["cpu", "null"])
def test_levels_change_neither_code_nor_results(name, tmp_path, capsys):
    """The cached machine code is the same file with the same bytes, and the results are equal."""
    found = []
    for level in (0, 4):
        folder = tmp_path / str(level)
        with fresh_engine(debug=level, cache=str(folder)):
            x = Tensor(np.random.RandomState(0).randn(33, 17).astype(np.float32), device=name)
            values = [((x @ x.T).softmax(1) + x.mean()).numpy(), x.exp().sum(0).numpy()]
        files = {path.name: path.read_bytes() for path in folder.rglob("*.kernel")}
        found.append((files, [value.tobytes() for value in values]))
    assert found[0] == found[1]
    assert len(found[0][0]) >= 3
    capsys.readouterr()


def test_cubins_do_not_depend_on_the_level(capsys):
    pytest.importorskip("cuda.bindings.nvrtc")
    with fresh_engine(cache=""):
        small_network("null").realize()
        codes = [executable.code for executable in LOADED.values()]
        before = [compile_cuda(code, "sm_90a") for code in codes]
        with config.override(debug=4):
            texts = [assembly.assembly_of(code, get_device("null").target) for code in codes]
            after = [compile_cuda(code, "sm_90a") for code in codes]
    assert before == after
    assert all(re.match(r"// \d+ registers, \d+ bytes stack, ", text) for text in texts)
    assert all("dynamic shared memory" in text for text in texts)


def least_seconds(statement: str, count: int, **names: object) -> float:
    """The seconds of one execution in the quickest of a few rounds: others use the machine too."""
    timer = timeit.Timer(statement, timer=time.thread_time, globals=names)
    return min(timer.repeat(5, count)) / count


def test_switched_off_costs_nothing_measurable():
    """The checks a launch by Python meets with DEBUG=0, against the smallest run of a plan by it.

    Machine code looks at one word of a dict.
    """
    x = Tensor(np.ones(4, np.float32), device="cpu")
    step = jit(lambda x: x + 1.0)
    with config.override(native=0):
        step(x), step(x)
        run = least_seconds("step(x)", 300, step=step, x=x)
    passed = least_seconds("pass", 100_000)
    check = least_seconds("if config.debug: raise AssertionError", 100_000, config=config) - passed
    assert 4 * check < 0.05 * run


def test_summary_is_empty_without_launches():
    with fresh_engine():
        assert debug.summary().splitlines()[0] == "0 kernels, 0.00 ms"


def test_kernels_are_listed_when_their_plan_is_new(capsys, tmp_path):
    with fresh_engine(debug=1, cache=str(tmp_path)):
        for _ in range(3):
            small_network("cpu").realize()
        text = capsys.readouterr().err
    assert len(kernel_lines(text)) == 2 and text.count("       plan  ") == 3
    with fresh_engine(debug=2, cache=str(tmp_path)):
        for _ in range(3):
            small_network("cpu").realize()
        assert len(kernel_lines(capsys.readouterr().err)) == 6


def test_table_alone(capsys, tmp_path):
    with fresh_engine(debug=-1, cache=str(tmp_path)):
        small_network("cpu").numpy()
        assert capsys.readouterr().err == ""
        debug.log_summary()
        assert "reduce_row_div_3x5 on cpu" in capsys.readouterr().err
