"""What `run --trace` writes."""

import csv
import json

import numpy as np
import pytest

from roce_gym.cli import main


def test_trace(command, tmp_path):
    path = tmp_path / "trace.csv"
    arguments = ("run", "regime_shift", "--duration-us", 1050, "--json", "--trace", path)
    found = json.loads(command(*arguments))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time_us"]) for row in rows] == [*range(100, 1100, 100), 1050]
    assert {float(row["interval_us"]) for row in rows} == {100, 50}
    assert all(len(row) == len(rows[0]) and None not in row for row in rows)
    for row in rows:
        assert all(value == "" or np.isfinite(float(value)) for value in row.values())

    def total(name):
        return sum(float(row[name]) for row in rows)

    prefix = "class/shared/"
    watermark = max(float(row[f"{prefix}SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"]) for row in rows)
    assert watermark == found["fabric"]["queue_max_bytes"]
    marked = total(f"{prefix}SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS")
    share = marked / total(f"{prefix}SAI_QUEUE_STAT_PACKETS")
    assert share == pytest.approx(found["fabric"]["ecn_marked_share"])
    assert total(f"{prefix}rx_prio3_pause_duration") > 0
    for tenant, numbers in found["tenants"].items():
        assert total(f"tenant/{tenant}/rp_cnp_handled") == numbers["cnps"]
        assert total(f"tenant/{tenant}/completions") == numbers["rounds_completed"]
        delivered = total(f"tenant/{tenant}/delivered_bytes")
        assert delivered * 8 / 1050e3 == pytest.approx(numbers["goodput_gbps"])
    assert list(tmp_path.iterdir()) == [path]


def test_trace__replaces_only_if_told_to(command, tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text("precious")
    arguments = ["run", "regime_shift", "--duration-us", "100", "--trace", str(path)]
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"error: --trace: '{path}' exists; --force replaces it\n"
    assert path.read_text() == "precious"
    command(*arguments, "--force")
    assert path.read_text().startswith("time_us,")
