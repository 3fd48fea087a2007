"""The command line: lists, version and help, interruption, progress."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

import pytest

from roce_gym import __version__
from roce_gym.cli import main
from roce_gym.fabric import Fabric
from roce_gym.presets import PRESETS
from roce_gym.scenario_file import available_scenarios

cli_alone = import_module("roce_gym.cli.alone")


def test_list(command):
    text, found = command("list"), json.loads(command("list", "--json"))
    assert list(found["scenarios"]) == available_scenarios()
    assert set(found["presets"]) == set(PRESETS)
    assert "RoCE/NoisyNeighbor-v0" in found["environments"]
    for section in found.values():
        assert all(value for value in section.values())
        for name, value in section.items():
            assert any(name in line and value in line for line in text.splitlines())


def test_version_help_and_module(capsys):
    for arguments, text in ((["--version"], __version__), (["run", "--help"], "CLASS.SETTING")):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert text in capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "roce_gym", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"roce-gym {__version__}\n"


# --------------------------------------------------------------------------- interruption


def test_interrupted__partial_results_are_reported(capsys, tmp_path, monkeypatch):
    path = tmp_path / "trace.csv"
    advance, calls = Fabric.advance, []

    def interrupted(self, **keys):
        calls.append(keys)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, **keys)

    monkeypatch.setattr(Fabric, "advance", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert main(["run", "regime_shift", "--json", "--trace", str(path)]) == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["interrupted"] and found["duration_us"] == 300
    assert found["tenants"]["steady"]["cct_alone_us"] is None
    assert "interrupted: these results are partial" in err
    assert len(path.read_text().splitlines()) == 4
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupted__while_tenants_run_alone(capsys, monkeypatch):
    def slow(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    monkeypatch.setattr(cli_alone, "get_references", slow)
    assert main(["run", "regime_shift", "--duration-us", "500", "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"] and found["duration_us"] == 500


def test_progress__only_if_it_takes_long(capsys, monkeypatch):
    arguments = ["run", "regime_shift", "--duration-us", "500"]
    assert main(arguments) == 0
    capsys.readouterr()
    monkeypatch.setattr("roce_gym.cli.terminal._SILENT_S", 1e9)
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("roce_gym.cli.terminal._SILENT_S", 0.0)
    assert main(arguments) == 0
    assert "% simulated" in capsys.readouterr().err
