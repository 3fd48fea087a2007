import json
from pathlib import Path

import pytest
from small import SMALL

from roce_gym.cli import main
from roce_gym.cli.page import file_name, page
from roce_gym.registration import ENVIRONMENTS

images = pytest.importorskip("PIL.Image")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SMALL))
    return str(path)


def test_film_and_picture(scenario, tmp_path, capsys):
    film, picture = tmp_path / "film.gif", tmp_path / "last.png"
    assert main(["render", scenario, "--out", str(film), "--random", "--every", "2"]) == 0
    assert "film.gif: 5 pictures" in capsys.readouterr().out
    with images.open(film) as opened:
        assert opened.n_frames == 5 and opened.size == (1280, 720)
        assert opened.info["duration"] == 100
    command = ["render", scenario, "--out", str(picture), "--steps", "3", "--preset", "pfc_only"]
    assert main(command) == 0
    with images.open(picture) as opened:
        assert opened.size == (1280, 720)
    first = picture.read_bytes()
    assert main([*command, "--force"]) == 0
    assert picture.read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "film.mp4"], "--out: film.mp4 is not allowed; allowed: files in .gif or .png"),
        (["--out", "nowhere/film.gif"], "does not exist"),
        (["--out", "film.gif", "--steps", "0"], "'0' is not allowed; allowed: whole numbers"),
        (["--out", "film.gif", "--set", "switch.bufer=1"], "switch has no 'bufer'"),
        (["--out", "film.gif", "--preset", "best"], "preset = 'best' is unknown"),
        (["--out", "there.gif"], "exists; give --force"),
        ([], "--out"),
    ],
)
def test_faults(scenario, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("there.gif").touch()
    assert main(["render", scenario, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("film.gif").exists()


# --------------------------------------------------------------------------- pages


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_pages_in_docs_are_what_would_be_made_now(env_id):
    path = Path(__file__).parents[1] / "docs" / "envs" / file_name(env_id)
    assert path.read_text(encoding="utf-8") == page(env_id), "run: roce-gym pages --out docs/envs"


def test_page__sections_of_gymnasium():
    text = page("RoCE/LatencyTenant-v0")
    for heading in (
        *("Description", "Action Space", "Observation Space", "Rewards", "Starting State"),
        *("Episode End", "Arguments", "Version History"),
    ):
        assert f"\n## {heading}\n" in text
    assert "| 0 | `class/shared/kmin` | 8000 | 800k | bytes | log |" in text
    assert "| `latency` | `shared` | 0.5 | p95 |" in text
    assert "| `stress` | `switch.buffer_bytes` |" in text


def test_pages__command(tmp_path, capsys):
    assert main(["pages", "RoCE/NoisyNeighbor-v0", "--out", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["NoisyNeighbor.md"]
    assert main(["pages", "RoCE/Nothing-v0"]) == 2
    assert "'RoCE/Nothing-v0' is unknown" in capsys.readouterr().err
