"""What the wheel holds, and that it works where nothing else is installed."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"

USE_EVERY_ENVIRONMENT = """
import pathlib, sys
import gymnasium
import roce_gym

assert pathlib.Path(roce_gym.__file__).is_relative_to(sys.prefix), roce_gym.__file__
ids = sorted(i for i in gymnasium.registry if i.startswith("RoCE/"))
assert ids, "no environment is registered"
for env_id in ids:
    own = {"scenario": "gray_failure"} if env_id == "RoCE/Scenario-v0" else {}
    gymnasium.make(env_id, **own).close()

env = gymnasium.make("roce_gym:RoCE/NoisyNeighbor-v0")
env.action_space.seed(0)
observation, info = env.reset(seed=0)
assert env.observation_space.contains(observation), observation
observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
assert env.observation_space.contains(observation), observation
assert isinstance(reward, float), reward
env.close()
print("made", *ids)
"""


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command without anything in the environment that could change what is tested."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k not in dropped},
        capture_output=True,
        text=True,
        check=False,
    )


def succeed(*command: object, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(python: object) -> list[object]:
    return [python, "-m", "pip", "--disable-pip-version-check", "-q"]


def files_below(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout with the tools installed here."""
    out = tmp_path_factory.mktemp("dist")
    succeed(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out),
        cwd=ROOT,
    )
    (path,) = out.glob("*.whl")
    return path


def test_wheel_holds_the_library_and_its_scenarios_only(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    library = {name for name in names if name.startswith("roce_gym/")}
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}

    assert names == library | metadata
    assert library == {
        *(f"roce_gym/{name}" for name in files_below(ROOT / "roce_gym")),
        *(f"roce_gym/envs_config/{name}" for name in files_below(ROOT / "envs_config")),
    }
    assert "roce_gym/py.typed" in library
    assert any(name.startswith("roce_gym/envs_config/") for name in library)
    assert any(name.endswith("/licenses/LICENSE") for name in metadata)


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(wheel, tmp_path):
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"

    # A small dependency tells whether packages can be had at all.
    probe = run(
        *pip(python),
        *("install", "--no-deps", "-c", CONSTRAINTS, "typing_extensions"),
        cwd=tmp_path,
    )
    if probe.returncode != 0:
        pytest.skip("no package registry can be reached, so the wheel's dependencies cannot be had")

    succeed(*pip(python), "install", "-c", CONSTRAINTS, wheel, cwd=tmp_path)
    script = tmp_path / "use.py"
    script.write_text(USE_EVERY_ENVIRONMENT)
    # -I: neither the working directory nor the user's site-packages can help.
    assert "RoCE/NoisyNeighbor-v0" in succeed(python, "-I", script, cwd=tmp_path)
    assert "usage" in succeed(scripts / "roce-gym", "--help", cwd=tmp_path).lower()
