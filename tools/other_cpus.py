"""Pass the golden, law and truth tests again as on other processors: `make test-cpus`.

Libraries choose their code by what the processor can do, and add in another order on another one. Environment variables
make them believe in less than there is. Each setting has a cache of kernels of its own; two settings run side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moral_entropy.files import cache_folder

TESTS = ("tests/golden", "tests/laws", "tests/truth")
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]


@dataclass(frozen=True)
class Setting:
    """A processor to be taken for.

    Parameters
    ----------
    name
        In a few words.
    variables
        What the libraries are told.
    threads
        Threads of ours and of BLAS.
    needs
        What the processor must be able to do; the setting is left out where it cannot.
    """

    name: str
    variables: dict[str, str]
    threads: int
    needs: tuple[str, ...] = ()


def settings() -> Iterator[Setting]:
    """Yield the settings: no vectors at all, no fused multiplication, and the widest vectors there are."""
    dispatched = numpy_features()
    least = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched)} if dispatched else {}
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "OPENBLAS_CORETYPE": "Haswell", **least}
    yield Setting("plain", plain, 1, ("avx2", "fma"))
    last = {"NPY_DISABLE_CPU_FEATURES": dispatched[-1]} if dispatched else {}
    unfused = {"NUMBA_CPU_FEATURES": unfused_features(), "OPENBLAS_CORETYPE": "Zen", **last}
    yield Setting("unfused", unfused, 2, ("avx2", "fma"))
    wide = {"NUMBA_CPU_NAME": "skylake-avx512", "OPENBLAS_CORETYPE": "SkylakeX"}
    yield Setting("wide", wide, 2, ("avx512f", "avx512dq", "avx512vl", "avx512bw", "avx512cd"))


def numpy_features() -> list[str]:
    """List what NumPy has code for beyond its least, and finds here; it refuses other names."""
    from numpy._core import _multiarray_umath as umath

    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def unfused_features() -> str:
    """Name the features of this processor for LLVM, without fused multiplication and without 512 bits."""
    from llvmlite import binding

    off = ("fma", "fma4", "avx512")
    features = binding.get_host_cpu_features()
    return ",".join(f"{'-+'[on and not name.startswith(off)]}{name}" for name, on in sorted(features.items()))


def processor_can() -> set[str]:
    """List what the processor says it can do; nothing where the system does not tell."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return set(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def run(setting: Setting) -> tuple[Setting, int, str]:
    """Run the tests under one setting; return its exit code and what was printed."""
    threads = str(setting.threads)
    variables = {
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), threads),
        **setting.variables,
        # Kernels compiled for one processor are not those of another.
        "NUMBA_CACHE_DIR": str(cache_folder() / "other-cpus" / setting.name),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *TESTS]
    # We take as many threads as there are cores to run on.
    bound = partial(os.sched_setaffinity, 0, CORES[: setting.threads]) if hasattr(os, "sched_setaffinity") else None
    finished = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False, preexec_fn=bound
    )
    return setting, finished.returncode, finished.stdout + finished.stderr


def main() -> int:
    """Run every setting this processor allows; return 1 if a test fails under any."""
    able = processor_can()
    chosen = []
    for setting in settings():
        lacking = [name for name in setting.needs if name not in able]
        if lacking:
            print(f"{setting.name}: left out, as this processor has no {lacking[0]}")
        else:
            chosen.append(setting)
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for setting, code, printed in pool.map(run, chosen):
            told = " ".join(f"{name}={value[:40]}" for name, value in setting.variables.items())
            last = [line for line in printed.splitlines() if " passed" in line or " failed" in line][-1:]
            print(f"{setting.name}, {setting.threads} threads ({told}): {' '.join(last) or 'no test ran'}")
            if code:
                print(printed)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
