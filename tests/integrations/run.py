"""`make test-integrations`: runs third-party code, unmodified, on the environments.

Each script runs in a process of its own, in one of two virtual environments. What stands in a
script between `# shown` and `# end` is what docs/interfaces.md or README.md prints; the rest checks
that something was trained.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NEWEST, RLLIB = ".venv-newest", ".venv-rllib"
"""The newest Gymnasium that is supported, and the oldest: the one that RLlib insists on."""

RUNS = (
    ("gymnasium_contract", NEWEST),
    ("sb3_check", NEWEST),
    ("sb3_ppo", NEWEST),
    ("sb3_sac", NEWEST),
    ("rllib_ppo", RLLIB),
    ("gymnasium_contract", RLLIB),
    ("rllib_multi_agent", RLLIB),
    ("sb3_recurrent_ppo", NEWEST),
    ("cleanrl_ppo", NEWEST),
    ("torchrl_ppo", NEWEST),
    ("tianshou_ppo", NEWEST),
    ("pettingzoo_tests", NEWEST),
    ("mo_gymnasium_wrappers", NEWEST),
    ("minari_data", NEWEST),
    ("first_episode", NEWEST),
    ("first_episode", RLLIB),
)
"""Long ones first. The simulator is compiled once: both environments have the same Numba."""

IN_TURN = [one for one in RUNS if one[1] == RLLIB]
"""A Ray cluster has more processes than most machines have cores: never two of them at once."""

TIMEOUT_S = 1200
MEMORY_BYTES = 4 * 2**30
"""What a script may need: RLlib's processes take 3.2 GiB together, the others less than 1."""


def affordable(workers: int) -> int:
    """As many of them as have memory, as far as the system tells; at least one."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return workers
    kib = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return max(1, min(workers, kib * 1024 // MEMORY_BYTES))


def run(script: str, venv: str) -> tuple[str, float, str]:
    """Outcome, seconds, and what was printed."""
    command = [ROOT / venv / "bin" / "python", HERE / f"{script}.py"]
    # Networks are small: more threads than one slow each other down.
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "RAY_ADDRESS": "local",  # a cluster of its own
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        return "TIMEOUT", TIMEOUT_S, printed if isinstance(printed, str) else printed.decode()
    seconds = time.perf_counter() - begun
    return "ok" if done.returncode == 0 else "FAILED", seconds, done.stdout


def version(venv: str) -> str:
    """Of the environment's Gymnasium."""
    code = "import gymnasium; print(gymnasium.__version__)"
    python = ROOT / venv / "bin" / "python"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def report(runs: list[tuple[str, str]], gymnasiums: dict[str, str]) -> int:
    """Runs scripts in turn and prints how each went, and what it printed if it failed.

    Returns how many failed.
    """
    failed = 0
    for script, venv in runs:
        outcome, seconds, printed = run(script, venv)
        name = f"{script} (gymnasium {gymnasiums[venv]})"
        line = f"{name:<50}{outcome:>8}{seconds:>8.1f} s"
        print(line if outcome == "ok" else f"{line}\n{printed}", flush=True)
        failed += outcome != "ok"
    return failed


def main() -> int:
    """Runs all scripts, or those whose name has a text; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--workers", type=int, default=1, help="scripts at a time")
    args = parser.parse_args()
    runs = [one for one in RUNS if args.only in one[0]]
    chains = [
        [one for one in runs if one in IN_TURN],
        *([one] for one in runs if one not in IN_TURN),
    ]
    gymnasiums = {venv: version(venv) for venv in (NEWEST, RLLIB)}
    begun = time.perf_counter()
    with ThreadPoolExecutor(affordable(args.workers)) as pool:
        done = [pool.submit(report, chain, gymnasiums) for chain in chains]
        failed = sum(future.result() for future in done)
    seconds = time.perf_counter() - begun
    print(f"integrations: {len(runs) - failed} ok, {failed} failed in {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
