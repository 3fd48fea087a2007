from dataclasses import asdict

import pytest
import yaml
from small import SMALL

from agents.registry import make_policy
from eval import demo
from eval.demo import Size, clear, full_size, quick_size, run
from roce_gym.errors import ConfigError
from training.args import check_args


@pytest.fixture(scope="module")
def size(tmp_path_factory):
    scenario = tmp_path_factory.mktemp("scenario") / "small.yaml"
    scenario.write_text(yaml.safe_dump(SMALL))
    values = {"env": str(scenario), "layouts": 4, "total_steps": 20, "num_envs": 1}
    values |= {"parallel": False, "n_steps": 10, "batch_size": 10, "hidden_sizes": [8]}
    return Size(check_args(values, ""), num_seeds=2)


def test_the_demo_leaves_table_pictures_model_and_page(size, tmp_path, capsys):
    out = tmp_path / "demo"
    summary = run(size, out, jobs=1)
    names = {path.name for path in out.iterdir()}
    assert names >= {"summary.md", "table.md", "table.csv", "scores.png", "timeline.png"}
    make_policy(f"sb3:{out / 'model.zip'}")
    page, told = (out / "summary.md").read_text(), capsys.readouterr().out
    for text in (page, told):
        assert "every preset" in text
        for row in summary.rows:
            assert row.policy in text
    policies = [row.policy for row in summary.rows]
    assert {"preset:default", "preset:pfc_only", "random"} < set(policies)
    assert "preset:connectx_default" not in policies  # it is what default stands for

    clear(out)  # an earlier demo is replaced
    assert [path.name for path in out.iterdir()] == [".roce-gym-demo"]


def test_other_folders_are_left_alone(size, tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="exists and is no demo"):
        run(size, tmp_path)
    assert demo.main(["--out", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_both_sizes_are_acceptable():
    for size in (full_size(), quick_size()):
        args = size.args
        assert check_args(asdict(args), "") == args
        assert size.num_seeds >= 8
        assert args.max_minutes <= 4
