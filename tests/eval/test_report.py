import csv
import json
import math

import matplotlib.image
import pytest
from made_up import make_record, make_records

from eval import plots, report
from eval.plots import choose, plot_scores, plot_timeline
from eval.records import claim, read_record, record_path, write_record
from eval.report import as_csv, as_markdown, as_text
from eval.summary import summarize
from eval.verdict import verdict
from roce_gym.errors import CheckpointError, ConfigError
from training.environment import EnvChoice

SCORES = {
    "preset:default": {1: 0.5, 2: 0.7, 3: 0.9, 4: 0.7},
    "preset:pfc_only": {1: 0.4, 2: 0.7, 3: 0.7, 4: 0.6},
    "sb3:runs/a": {1: 0.2, 2: 0.4, 3: 0.6, 4: 0.4},
}


def test_policies_are_sorted_by_score_and_compared_seed_by_seed():
    summary = summarize(make_records(SCORES))
    assert [row.policy for row in summary.rows] == ["sb3:runs/a", *list(SCORES)[1::-1]]
    best = summary.rows[0]
    assert best.score.mean == pytest.approx(0.4)
    # The same difference on every seed: an interval without width, though scores vary.
    assert (best.difference.low, best.difference.high) == pytest.approx((-0.3, -0.3))
    assert best.score.low < best.score.mean < best.score.high
    assert summary.rows[-1].difference is None
    assert summary.seeds == (1, 2, 3, 4)


def test_seeds_that_not_every_policy_has_are_left_out():
    scores = SCORES | {"random": {2: 0.9, 3: 0.8}}
    summary = summarize(make_records(scores))
    assert summary.seeds == (2, 3) and summary.left_out == 6
    assert "6 records are left out" in as_text(summary).replace("\n", " ")
    with pytest.raises(CheckpointError, match="no seed was played by every policy"):
        summarize(make_records({"random": {1: 0.1}, "preset:default": {2: 0.1}}))


def test_records_of_different_simulators_are_not_mixed():
    records = [*make_records({"random": {1: 0.1}}), make_record("b", 1, 0.2, key="other")]
    with pytest.raises(CheckpointError, match="seed 1 were made with different simulators"):
        summarize(records)


def test_without_the_default_preset_nothing_is_compared():
    summary = summarize(make_records({"random": {1: 0.1, 2: 0.2}}))
    assert summary.compared_with == "" and summary.rows[0].difference is None
    assert "ΔJ" not in as_text(summary)
    with pytest.raises(ConfigError, match="'nobody' is unknown; allowed: random"):
        summarize(make_records({"random": {1: 0.1}}), compared_with="nobody")


def test_tenants_without_rounds_do_not_count_in_means():
    records = [
        make_record("random", 1, 0.1, slowdowns=(1.2, 0.0)),
        make_record("random", 2, 0.1, slowdowns=(1.4, 2.0)),
    ]
    row = summarize(records).rows[0]
    assert row.slowdown == pytest.approx((1.3, 2.0))
    assert row.cct_us == pytest.approx((130.0, 200.0))
    assert row.interference == pytest.approx((0.3, 1.0))
    alone = summarize(records[:1])
    assert math.isnan(alone.rows[0].slowdown[1])
    assert "1.20 / –" in as_text(alone)
    assert math.isnan(alone.rows[0].score.low)


def test_the_three_forms_say_the_same():
    summary = summarize(make_records(SCORES))
    markdown, text = as_markdown(summary, "Title"), as_text(summary)
    assert markdown.startswith("# Title\n\n| policy | J | ΔJ | return |")
    assert "| sb3:runs/a | 0.400 [" in markdown
    assert "-0.300 [-0.300, -0.300]" in markdown and "-0.300 [-0.300, -0.300]" in text
    rows = list(csv.DictReader(as_csv(summary).splitlines()))
    assert [row["policy"] for row in rows] == [row.policy for row in summary.rows]
    assert float(rows[0]["difference_mean"]) == pytest.approx(-0.3)
    assert rows[-1]["difference_mean"] == ""
    assert float(rows[0]["slowdown/burst"]) == pytest.approx(1.5)
    assert len({len(line.split("|")) for line in markdown.splitlines() if "|" in line}) == 1


def test_tables_are_made_from_records_alone(tmp_path, capsys):
    claim(tmp_path, EnvChoice("anything", ("a.b=1",)))
    for record in make_records(SCORES):
        write_record(tmp_path, record)
        path = record_path(tmp_path, record.policy, record.seed)
        assert read_record(path) == record
    assert report.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == (tmp_path / "table.txt").read_text()
    assert (tmp_path / "table.md").read_text().startswith("# anything a.b=1")
    assert plots.main([str(tmp_path)]) == 0
    assert plots.main([str(tmp_path), "--seed", "9"]) == 2
    assert "seeds: 1, 2, 3, 4" in capsys.readouterr().err


def test_damaged_records_are_named(tmp_path, capsys):
    assert report.main([str(tmp_path)]) == 2
    claim(tmp_path, EnvChoice("anything"))
    assert report.main([str(tmp_path)]) == 2
    assert "holds no records" in capsys.readouterr().err
    write_record(tmp_path, make_record("random", 1, 0.5))
    path = record_path(tmp_path, "random", 1)
    good = json.loads(path.read_text())
    series = good["episode"]["series"] | {"time_us": [1.0]}
    for damaged in (
        "{",
        json.dumps(good | {"format": "other"}),
        json.dumps({key: value for key, value in good.items() if key != "seed"}),
        json.dumps(good | {"episode": good["episode"] | {"series": series}}),
        json.dumps(good | {"episode": good["episode"] | {"totals": {"score": 1.0}}}),
    ):
        path.write_text(damaged)
        with pytest.raises(CheckpointError, match=r"1\.json: is damaged or no record"):
            read_record(path)
        assert report.main([str(tmp_path)]) == 2
        assert "run eval.evaluate again" in capsys.readouterr().err


def test_an_evaluation_is_not_mixed_with_another(tmp_path):
    claim(tmp_path, EnvChoice("one"))
    claim(tmp_path, EnvChoice("one"))
    with pytest.raises(ConfigError, match="holds an evaluation of"):
        claim(tmp_path, EnvChoice("other"))


def test_records_of_different_policies_lie_apart(tmp_path):
    specs = ("preset:default", "random", "sb3:a/b", "sb3:a-b", "sb3:a b", "sb3:" + "x" * 300)
    paths = {record_path(tmp_path, spec, 1) for spec in specs}
    assert len(paths) == len(specs)
    assert record_path(tmp_path, "preset:default", 1).parent.name == "preset-default"


def test_the_verdict_claims_no_more_than_intervals_allow():
    summary = summarize(make_records(SCORES))
    assert verdict(summary, "sb3:runs/a")[0].startswith(
        "The agent beats every preset (2 of 2): the best of them is preset:pfc_only, ΔJ -0.200 ["
    )
    scores = SCORES | {"sb3:runs/a": {1: 0.5, 2: 0.6, 3: 0.8, 4: 0.7}}
    lines = verdict(summarize(make_records(scores)), "sb3:runs/a")
    assert lines[0].startswith("The agent does not beat every preset (0 of 2)")
    assert lines[1].startswith("No difference shown to preset:pfc_only")
    scores = SCORES | {"sb3:runs/a": {1: 0.6, 2: 0.9, 3: 0.95, 4: 0.8}}
    lines = verdict(summarize(make_records(scores)), "sb3:runs/a")
    assert lines[1].startswith("Worse than preset:pfc_only (ΔJ +0.213 [")
    one_seed = {policy: {1: by_seed[1]} for policy, by_seed in SCORES.items()}
    assert "(0 of 2)" in verdict(summarize(make_records(one_seed)), "sb3:runs/a")[0]


def test_the_verdict_names_who_pays():
    records = make_records({"preset:default": {1: 0.5, 2: 0.6}})
    for seed in (1, 2):
        records.append(make_record("sb3:a", seed, 0.2, slowdowns=(1.0, 4.0)))
    lines = verdict(summarize(records), "sb3:a")
    assert "ring 1.20 → 1.00, burst 1.50 → 4.00. So burst paid for it." in " ".join(lines)
    lines = verdict(summarize(make_records(SCORES)), "sb3:runs/a")
    assert "paid for it" not in " ".join(lines)


def test_pictures_are_drawn_for_the_policies_worth_a_column(tmp_path):
    records = make_records(SCORES | {"random": dict.fromkeys(range(1, 5), 0.9)})
    summary = summarize(records)
    chosen = choose(records, summary)
    assert chosen == ("preset:default", "preset:pfc_only", "sb3:runs/a")
    plot_scores(summary, tmp_path / "scores.png")
    plot_timeline([r for r in records if r.seed == 1][:3], tmp_path / "timeline.png")
    for name in ("scores.png", "timeline.png"):
        assert matplotlib.image.imread(tmp_path / name).std() > 0.05
