"""Timelines: read back as they were written, and refused with a word about what is wrong."""

import csv

import numpy as np
import pytest

from roce_gym.cli.timeline import TimelineFile
from roce_gym.counters import Sampler
from roce_gym.diagnose import Recorder, Timeline, read_timeline
from roce_gym.diagnose.timeline import Place
from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario


def written(path, name="pfc_storm", steps=4):
    """What a run leaves in a file, and in memory."""
    scenario = load_scenario(name)
    fabric = Fabric(scenario, 0)
    sampler = Sampler(scenario, fabric.network, fabric.plan)
    recorder = Recorder(sampler)
    with TimelineFile(path, False, sampler) as file:
        for _ in range(steps):
            sampler.add(fabric.advance(us=1000))
            recorder.add()
            file.add(sampler.sample())
    return recorder.timeline()


def same(one, other):
    assert one.time_us.tolist() == other.time_us.tolist()
    assert one.places == other.places
    assert list(one.values) == list(other.values)
    for name, values in one.values.items():
        assert np.array_equal(values, other.values[name], equal_nan=True), name


def test_csv_is_what_was_in_memory(tmp_path):
    path = tmp_path / "timeline.csv"
    same(written(path), read_timeline(path))
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_is_what_was_in_memory(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "timeline.parquet"
    same(written(path), read_timeline(path))
    assert list(tmp_path.iterdir()) == [path]
    kinds = dict(
        zip(*(lambda s: (s.names, map(str, s.types)))(parquet.read_schema(path)), strict=True)
    )
    assert kinds["SAI_QUEUE_STAT_BYTES:3"] == "int64" and kinds["device"] == "string"


def test_parquet_in_several_row_groups(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("roce_gym.cli.timeline._ROWS_AT_ONCE", 50)
    path = tmp_path / "timeline.parquet"
    same(written(path), read_timeline(path))
    assert parquet.ParquetFile(path).num_row_groups == 3


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"--timeline: .*pip install 'roce-gym\[parquet\]'"):
        written(tmp_path / "timeline.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="pyarrow, which is not installed"):
        read_timeline(tmp_path / "timeline.parquet")


def test_rows_in_any_order(tmp_path):
    path = tmp_path / "timeline.csv"
    timeline = written(path)
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *sorted(rows, key=hash)]) + "\n")
    again = read_timeline(path)
    assert set(again.places) == set(timeline.places)
    order = [again.places.index(place) for place in timeline.places]
    for name, values in timeline.values.items():
        assert np.array_equal(values, again.values[name][:, order], equal_nan=True)


def test_counters_may_be_reset():
    values = np.array([[90.0], [100.0], [7.0], [np.nan], [9.0]])
    timeline = Timeline(np.arange(5.0), (Place("a", "b", "c", 1.0),), {"x": values})
    grown = timeline.growth("x")[:, 0]
    assert grown[:2].tolist() == [10.0, 7.0] and np.isnan(grown[2:]).all()
    assert timeline.growth("y") is None


def test_priorities():
    names = ["SAI_QUEUE_STAT_BYTES:5", "SAI_PORT_STAT_PFC_3_RX_PKTS", "tx_prio4_bytes", "x_7y", "a"]
    timeline = Timeline(np.arange(2.0), (), dict.fromkeys(names, np.zeros((2, 0))))
    assert timeline.priorities == [3, 4, 5]


GOOD = [
    ["time_us", "device", "port", "neighbor", "speed_gbps", "x"],
    ["0", "s", "p", "h", "100", "1"],
    ["1", "s", "p", "h", "100", "2"],
]


def changed(row, column, text):
    rows = [list(line) for line in GOOD]
    rows[row][column] = text
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([line[:4] + line[5:] for line in GOOD], "column speed_gbps is missing"),
        ([], "column time_us, device, port, neighbor, speed_gbps is missing"),
        (changed(0, 5, "port"), "more than one column port"),
        (changed(1, 0, ""), ":2: time_us is empty"),
        (changed(1, 5, "lots"), ":2: x = 'lots' is not a number"),
        (changed(2, 5, "nan"), ":3: x = 'nan' is not a number"),
        (changed(2, 5, "1e999"), ":3: x = '1e999' is not a number"),
        (changed(1, 4, "0"), ":2: speed_gbps = '0' must be above 0"),
        (changed(2, 0, "0"), "has samples of 1 moments"),
        ([*GOOD, GOOD[1]], ":4: is the second sample of its port and time"),
        ([*GOOD, ["1", "2"]], ":4: has 2 cells, the head has 6"),
        (GOOD[:1], "has samples of 0 moments"),
        (
            [GOOD[0], *([str(i), f"s{i}", "p", "h", "100", "1"] for i in range(11))],
            "11 ports are sampled at 11 different times in 11 rows",
        ),
    ],
)
def test_bad_tables(tmp_path, rows, message):
    path = tmp_path / "bad.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(TraceFileError) as error:
        read_timeline(path)
    assert message in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01", b'time_us,"dev\nice', b"\x00" * 100])
def test_not_csv(tmp_path, content):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match=str(path)):
        read_timeline(path)


def test_not_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1 or so")
    with pytest.raises(TraceFileError, match="is not Parquet"):
        read_timeline(path)


def test_no_file(tmp_path):
    with pytest.raises(TraceFileError, match="cannot be read: No such file"):
        read_timeline(tmp_path / "none.csv")
