"""The memory that kernel rows may take by default."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray

from marginwise import OnlineSVC
from marginwise._engine import memory
from tests.support import assert_same_model, blobs

GB = 2**30


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files of a system, by path, in place of those of this machine."""
    files: dict[str, str] = {}
    monkeypatch.setattr(memory, "_read", lambda path: files.get(str(path), ""))
    return files


def test_memory_of_the_machine(system: dict[str, str]) -> None:
    system["/proc/meminfo"] = "MemTotal: 99 kB\nMemAvailable:   4194304 kB\n"
    assert memory.available() == 4 * GB


def test_the_tightest_cgroup_counts_and_its_page_cache_does_not(system: dict[str, str]) -> None:
    system["/proc/meminfo"] = f"MemAvailable: {64 * GB // 1024} kB\n"
    system["/proc/self/cgroup"] = "0::/jobs/one\n"
    system["/sys/fs/cgroup/jobs/one/memory.max"] = "max\n"
    system["/sys/fs/cgroup/jobs/one/memory.current"] = f"{GB}\n"
    system["/sys/fs/cgroup/jobs/memory.max"] = f"{10 * GB}\n"
    system["/sys/fs/cgroup/jobs/memory.current"] = f"{4 * GB}\n"
    system["/sys/fs/cgroup/jobs/memory.stat"] = f"anon 7\ninactive_file {GB}\n"
    assert memory.available() == 7 * GB


def test_cgroups_of_version_1(system: dict[str, str]) -> None:
    system["/proc/meminfo"] = f"MemAvailable: {64 * GB // 1024} kB\n"
    system["/proc/self/cgroup"] = "4:cpu:/x\n3:memory:/x\n"
    system["/sys/fs/cgroup/memory/x/memory.limit_in_bytes"] = f"{3 * GB}\n"
    system["/sys/fs/cgroup/memory/x/memory.usage_in_bytes"] = f"{GB}\n"
    assert memory.available() == 2 * GB


@pytest.mark.parametrize(
    ("available", "expected"), [(16 * GB, 4 * GB), (100 * GB, 8 * GB), (0, memory.LEAST)]
)
def test_a_quarter_within_bounds(
    available: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: available)
    monkeypatch.setattr(multiprocessing.current_process(), "name", "MainProcess")
    assert memory.auto_bytes.__wrapped__(0) == expected


def test_workers_of_a_pool_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 16 * GB)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(multiprocessing.current_process(), "name", "LokyProcess-1")
    assert memory.auto_bytes.__wrapped__(0) == GB


def test_a_system_that_reports_nothing(
    system: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: str) -> int:
        raise OSError

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.available() == memory.UNKNOWN


@pytest.mark.parametrize(
    "files",
    [
        {"/proc/meminfo": "MemAvailable:\n"},
        {"/proc/meminfo": "MemAvailable: lots of kB\n"},
        {"/proc/self/cgroup": "\n"},
        {
            "/proc/self/cgroup": "0::/\n",
            "/sys/fs/cgroup/memory.max": "7",
            "/sys/fs/cgroup/memory.current": "5",
            "/sys/fs/cgroup/memory.stat": "odd\n",
        },
    ],
    ids=str,
)
def test_what_is_reported_in_another_form_is_left_out(
    files: dict[str, str], system: dict[str, str]
) -> None:
    system.update(files)
    assert memory.available() > 0


def test_cgroups_of_version_1_that_share_a_folder(system: dict[str, str]) -> None:
    system["/proc/meminfo"] = f"MemAvailable: {64 * GB // 1024} kB\n"
    system["/proc/self/cgroup"] = "3:cpu,memory:/x\n"
    system["/sys/fs/cgroup/cpu,memory/x/memory.limit_in_bytes"] = f"{3 * GB}\n"
    system["/sys/fs/cgroup/cpu,memory/x/memory.usage_in_bytes"] = f"{GB}\n"
    assert memory.available() == 2 * GB


@pytest.mark.slow
def test_a_limit_of_the_address_space_counts() -> None:
    code = (
        "import resource; from marginwise._engine import memory;"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize();"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**30,) * 2);"
        "print(memory.available())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.9 * GB < int(done.stdout) <= GB


def test_a_forked_worker_finds_out_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 16 * GB)
    here = memory.auto_bytes(-1)  # no process has this number
    monkeypatch.setattr(memory, "available", lambda: 8 * GB)
    assert memory.auto_bytes(-1) == here, "one process finds out once"
    assert memory.auto_bytes(-2) == here // 2
    memory.auto_bytes.cache_clear()


def test_auto_gives_the_same_model_and_the_same_state(tmp_path: Path) -> None:
    X, y = blobs(300, 0, 3, 4)
    params: dict[str, Any] = {"gamma": 0.5, "random_state": 0}
    auto, small = (OnlineSVC(cache_size=size, **params).fit(X, y) for size in ("auto", 1e-3))
    assert_same_model(auto, small, "cache_size")
    assert auto._engine.plan.cache_bytes == memory.AUTO, "what was available is not in the state"


def test_a_kernel_function_is_called_for_large_blocks_and_needs_no_cache() -> None:
    blocks: list[int] = []

    def kernel(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        blocks.append(len(A) * len(B))
        squared = sum((A[:, [k]] - B[:, k]) ** 2 for k in range(A.shape[1]))
        return np.asarray(np.exp(-0.5 * squared))

    n = 3800  # whose kernel matrix takes more memory than is kept beyond the cache
    X, y = blobs(n, 0, 3, 2)
    whole = OnlineSVC(C=0.1, kernel=kernel, cache_size=100).fit(X, y)
    assert len(blocks) < 160, "calls"
    assert sum(blocks) < 0.6 * n * n, "each pair of rows once"
    row_by_row = OnlineSVC(C=0.1, kernel=kernel, cache_size=1e-3).fit(X, y)
    assert_same_model(whole, row_by_row, "cache_size")
