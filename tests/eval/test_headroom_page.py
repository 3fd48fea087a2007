from pathlib import Path

import pytest
import yaml
from made_up import make_records
from small import SMALL

from agents.regimes import find_regimes
from agents.registry import make_policy
from agents.settings_file import read_settings
from eval.headroom.__main__ import (
    IDS,
    Size,
    folder_of,
    measure,
    policies_of,
    row_of,
    short_name,
    write_page,
)
from eval.headroom.page import as_page, make_row
from eval.summary import summarize
from roce_gym.registration import ENVIRONMENTS
from training.environment import EnvChoice

ROOT = Path(__file__).parents[2]


def scores(**means):
    """By policy and seed, the same spread for all."""
    spread = (-0.02, 0.0, 0.02, 0.01, -0.01, 0.0, 0.015, -0.015)
    names = {"good": "preset:good", "bad": "preset:bad", "static": "static:x.yaml"}
    names |= {"oracle": "oracle:x.yaml"}
    return {names[k]: {i: mean + d for i, d in enumerate(spread)} for k, mean in means.items()}


def row(**means):
    return make(scores(**means))


def make(table):
    about = {"budget": 120, "regime_budget": 0, "repeats": 3, "confirm": 8, "training_seeds": 24}
    return make_row("RoCE/RegimeShift-v0", summarize(make_records(table)), about, 100, 50.0)


def test_gains_are_differences_seed_by_seed():
    one = row(good=0.5, bad=0.7, static=0.4, oracle=0.25)
    assert list(one.presets) == ["good", "bad"]
    assert one.tuning.mean == pytest.approx(-0.1) and one.tuning.high == pytest.approx(-0.1)
    assert one.adapting.mean == pytest.approx(-0.15)
    assert one.tuning_pays and one.adapting_pays
    assert one.num_evaluated == 4 * 8


def test_adapting_is_compared_with_the_best_that_holds_still():
    one = row(good=0.3, bad=0.7, static=0.4, oracle=0.25)
    assert one.tuning.mean == pytest.approx(0.1) and not one.tuning_pays
    assert one.adapting.mean == pytest.approx(-0.05)


@pytest.mark.parametrize(
    ("means", "pays"),
    [
        ({"static": 0.44, "oracle": 0.41}, "tuning and adapting"),
        ({"static": 0.44, "oracle": 0.43}, "tuning"),
        ({"static": 0.46, "oracle": 0.43}, "adapting"),
        ({"static": 0.46, "oracle": 0.45}, "**neither**"),
        ({"static": 0.46}, "**neither**"),
        ({"static": 0.44}, "tuning"),
    ],
)
def test_the_page_says_what_pays(means, pays):
    one = row(good=0.5, bad=0.7, **means)
    page = as_page([one], "command", "headroom")
    (line,) = (x for x in page.splitlines() if x.startswith("| `RoCE/RegimeShift-v0` | good"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[-1] == pays
    assert cells[3].startswith(f"+{0.5 - means['static']:.3f}")
    assert (cells[4] == "–") == ("oracle" not in means)
    assert "| `RoCE/RegimeShift-v0` | 120 | – | 3 | 8 | 24 | 8 |" in page.splitlines()


def test_what_is_uncertain_does_not_pay():
    table = scores(good=0.5, static=0.4)
    table["static:x.yaml"] = {i: 0.1 if i == 0 else 0.47 for i in range(8)}
    one = make(table)
    assert one.tuning.mean < -0.05 and one.tuning_pays
    table["static:x.yaml"] = {i: 0.1 if i == 0 else 0.52 for i in range(8)}
    one = make(table)
    assert one.tuning.mean < -0.03 and one.tuning.high > 0.0 and not one.tuning_pays


def test_measuring_ends_in_a_page_and_does_nothing_twice(tmp_path, capsys):
    pytest.importorskip("cma")
    scenario = tmp_path / "small.yaml"
    scenario.write_text(yaml.safe_dump(SMALL))
    out, page = tmp_path / "out", tmp_path / "docs" / "page.md"
    env = str(scenario)
    size = Size(budget=12, regime_budget=0, repeats=1, confirm=1, training_seeds=3, num_seeds=2)
    assert row_of(env, out) is None
    measure(env, size, out)
    write_page([env], out, page)
    text = page.read_text()
    assert f"| `{env}` |" in text and f"| `{env}` | 12 | – | 1 | 1 | 3 | 2 |" in text
    found = page.with_suffix("") / f"{short_name(env)}.yaml"
    make_policy(f"static:{found}").check(EnvChoice(env).make())
    capsys.readouterr()
    measure(env, size, out)
    write_page([env], out, page)
    assert "16 of 16 records are there already" in capsys.readouterr().err
    assert page.read_text() == text
    assert len(policies_of(folder_of(env, out) / "settings.yaml")) == 8


def test_ids_are_all_there_are():
    assert set(IDS) == set(ENVIRONMENTS)
    assert short_name("RoCE/RegimeShift-v0") == "RegimeShift"


def test_the_committed_page_is_about_every_id():
    page = (ROOT / "docs" / "headroom.md").read_text(encoding="utf-8")
    for env in IDS:
        rows = [line for line in page.splitlines() if line.startswith(f"| `{env}` |")]
        assert len(rows) == 3, env
        assert int(rows[1].strip("| ").split(" | ")[-1]) >= 8  # unseen seeds
        assert "neither" not in rows[0], f"{env}: change it, or drop it"


@pytest.mark.parametrize("env", IDS)
def test_committed_settings_fit_their_environment(env):
    path = ROOT / "docs" / "headroom" / f"{short_name(env)}.yaml"
    one = EnvChoice(env).make()
    make_policy(f"static:{path}").check(one)
    content = read_settings(path)
    assert content.about["env"] == env
    names = {r.name for seed in range(8) for r in find_regimes(EnvChoice(env).scenario(seed))}
    assert set(content.regimes) == (names if len(names) > 1 else set())
