"""Benchmarks of two trees in turns: a core for each benchmark, three turns, everything printed.

    python old_and_new.py OLD_TREE NEW_TREE [name ...]

The scripts of OLD_TREE/bench run against both trees; `host_time.py` and `plain_models.py` came
later and are copied there first. Each tree and benchmark has a cache of kernels of its own.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

JOBS = {
    "growth": "--threads 1 --rounds 3 --largest 1000000",
    "loader": "--rounds 9",
    "memory": "--steps 400",
    "plain_steps": "--rounds 9",
    "recurrent": "",
    "scan_sort": "--threads 1 --rounds 5 --largest 1000000",
    "schedule_cost": "--rounds 5",
    "host_time": "--rounds 40",
    "plain_models": "--steps 40",
}
TURNS = 3


def turns(name: str, trees: list[Path], core: int) -> str:
    """Run a benchmark against the trees in turns, on one core; gives what it printed."""
    said = []
    for turn in range(TURNS):
        for tree in trees:
            fixed = {"PICOGRAD_DEVICE": "cpu", "PICOGRAD_THREADS": "1", "OMP_NUM_THREADS": "1"}
            own = {"PYTHONPATH": str(tree), "PICOGRAD_CACHE": f"/tmp/cache_{tree.name}_{name}"}
            script = [sys.executable, str(trees[0] / "bench" / f"{name}.py"), *JOBS[name].split()]
            command = ["taskset", "-c", str(core), *script]
            environment = {**os.environ, **fixed, **own}
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            said.append(f"### {name} {tree.name} turn {turn}\n{done.stdout}")
    return "\n".join(said)


def main() -> None:
    """Run all benchmarks side by side."""
    trees, names = [Path(each).resolve() for each in sys.argv[1:3]], sys.argv[3:] or list(JOBS)
    cores = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(len(names)) as pool:
        taken = [cores[place % len(cores)] for place in range(len(names))]
        for text in pool.map(turns, names, [trees] * len(names), taken):
            print(text, flush=True)


if __name__ == "__main__":
    main()
