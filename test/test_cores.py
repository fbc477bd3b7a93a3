"""The default number of threads follows the limits of the process's control groups."""

import os

import pytest

from picograd import cores
from picograd.config import Config
from picograd.cores import usable_cores


@pytest.fixture(autouse=True)
def sixteen(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)), raising=False)


def machine(root, groups, **files):
    """Write a fake /proc and /sys."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    "text, cores",
    [
        ("max 100000\n", 16), ("200000 100000\n", 2), ("100000 100000\n", 1), ("50000 100000\n", 1),
        ("150000 100000\n", 1), ("399999 100000", 3), ("6400000 100000\n", 16), ("", 16),
        ("garbage", 16), ("1 2 3", 16), ("100000 0", 16), ("-1 100000", 16), ("0 100000", 16),
    ],
)  # fmt: skip
def test_version_2_in_a_container(tmp_path, text, cores):
    assert usable_cores(machine(tmp_path, "0::/\n", **{"cpu.max": text})) == cores


@pytest.mark.parametrize("place", ["a/b/c", "a/b", "a"])
def test_the_smallest_limit_on_the_way_up_counts(tmp_path, place):
    files = {f"{each}/cpu.max": "max 100000\n" for each in ("a", "a/b", "a/b/c")}
    files |= {f"{place}/cpu.max": "300000 100000\n", "other/cpu.max": "100000 100000\n"}
    assert usable_cores(machine(tmp_path, "0::/a/b/c\n", **files)) == 3


def test_a_group_whose_folder_a_container_does_not_see(tmp_path):
    root = machine(tmp_path, "0::/docker/1234\n", **{"cpu.max": "400000 100000\n"})
    assert usable_cores(root) == 4


def test_a_group_outside_the_namespace(tmp_path):
    root = machine(tmp_path, "0::/../../other\n", **{"cpu.max": "400000 100000\n"})
    assert usable_cores(root) == 4


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize("quota, cores", [("250000\n", 2), ("-1\n", 16), ("1000\n", 1)])
def test_version_1(tmp_path, mount, quota, cores):
    files = {
        f"{mount}/job/cpu.cfs_quota_us": quota,
        f"{mount}/job/cpu.cfs_period_us": "100000\n",
        f"{mount}/cpu.cfs_quota_us": "-1\n",
        f"{mount}/cpu.cfs_period_us": "100000\n",
    }
    groups = "12:memory:/else\n4:cpu,cpuacct:/job\n1:name=systemd:/init\n0::/init\n"
    assert usable_cores(machine(tmp_path, groups, **files)) == cores


def test_no_control_groups(tmp_path):
    assert usable_cores(str(tmp_path)) == 16


def test_the_mask_counts_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 3}, raising=False)
    assert usable_cores(machine(tmp_path, "0::/\n", **{"cpu.max": "400000 100000"})) == 2


def test_a_platform_without_masks(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.usable_cores(str(tmp_path)) == 1


def test_the_setting_overrides_the_limit():
    assert Config({"PICOGRAD_THREADS": "11"}).threads == 11
