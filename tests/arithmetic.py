"""Runs the numeric tests under other arithmetic than this machine's own.

    python -m tests.arithmetic

Each setting is a process of its own, for libraries read these variables when they are loaded; as
many run at once as there are cores.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
NATIVE: dict[str, str] = {}
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
OLDEST = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}
FILES = [
    str(file)
    for file in sorted((ROOT / "tests").rglob("test_*.py"))
    if "mark.numeric" in file.read_text("utf-8")
]
# Instruction set, NumPy's OpenBLAS kernels, threads. The whole suite has the machine's own
# instructions and one thread.
SETTINGS = (
    (NATIVE, "Haswell", 2),
    (AVX2, "Zen", 2),
    (OLDEST, "SkylakeX", 1),
    (OLDEST, "Zen", 2),
)


def passes(instructions: dict[str, str], core: str, threads: int) -> bool:
    """Run the tests under a setting, print what they print, and return whether all passed."""
    # Threads that wait do not spin, or they would hold up the others on a loaded machine.
    variables = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"} | instructions
    if core != "SkylakeX" or torch.cpu.get_capabilities().get("avx512_f"):
        variables["OPENBLAS_CORETYPE"] = core  # it would not ask whether the CPU can
    command = [sys.executable, "-m", "pytest", "-m", "numeric", "-n", "0"]
    ended = subprocess.run(
        [*command, *FILES], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
    )
    setting = " ".join(f"{key}={value}" for key, value in variables.items())
    print(f"{setting}\n{ended.stdout}{ended.stderr}", flush=True)
    return ended.returncode == 0


def main() -> int:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = list(pool.map(lambda setting: passes(*setting), SETTINGS)).count(False)
    print(f"{failed} settings failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
