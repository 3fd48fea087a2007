"""`make test-integrations`: runs third-party code, unmodified, on the environments.

Each script runs in a process and a virtual environment of its own. What stands in a script between
`# shown` and `# end` is what docs/interfaces.md prints; the rest checks that something was trained.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NEWEST, RLLIB = ".venv-newest", ".venv-rllib"
"""The newest Gymnasium that is supported, and the oldest: the one that RLlib insists on."""

RUNS = (
    ("gymnasium_contract", NEWEST),
    ("gymnasium_contract", RLLIB),
    ("sb3_check", NEWEST),
    ("sb3_ppo", NEWEST),
    ("sb3_sac", NEWEST),
    ("sb3_recurrent_ppo", NEWEST),
    ("cleanrl_ppo", NEWEST),
    ("torchrl_ppo", NEWEST),
    ("tianshou_ppo", NEWEST),
    ("pettingzoo_tests", NEWEST),
    ("mo_gymnasium_wrappers", NEWEST),
    ("minari_data", NEWEST),
    ("rllib_ppo", RLLIB),
    ("rllib_multi_agent", RLLIB),
)
TIMEOUT_S = 600


def run(script: str, venv: str) -> tuple[str, float, str]:
    """Outcome, seconds, and what was printed."""
    command = [ROOT / venv / "bin" / "python", HERE / f"{script}.py"]
    # Networks are small: more threads than one slow each other down.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
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


def main() -> int:
    """Runs all scripts, or those whose name has a text; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT")
    only = parser.parse_args().only
    gymnasiums = {venv: version(venv) for venv in (NEWEST, RLLIB)}
    failed = 0
    for script, venv in RUNS:
        if only not in script:
            continue
        outcome, seconds, printed = run(script, venv)
        label = f"{script} (gymnasium {gymnasiums[venv]})"
        print(f"{label:<50}{outcome:>8}{seconds:>8.1f} s", flush=True)
        if outcome != "ok":
            failed += 1
            print(printed, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
