"""Published results and the table made of them."""

import json

import pytest

from eval.validate import published
from eval.validate.__main__ import main
from eval.validate.published import buffers, drain
from eval.validate.published.claim import Claim, Verdict


@pytest.mark.parametrize(
    "claim",
    [claim for claim in published.CLAIMS if claim not in drain.CLAIMS],
    ids=lambda claim: claim.name,
)
def test_claim(claim):
    failed = [v for v in claim.check() if v.binding and not v.ok]
    assert not failed, failed


def test_what_the_dcqcn_paper_does_not_explain_is_said():
    (unexplained,) = [v for v in buffers.dcqcn_arithmetic() if not v.ok]
    assert unexplained.ours == "0.765 KB" and "32 ports" in unexplained.note


def test_more_flows_leave_a_longer_queue():
    few, many = (drain._standing_queue_bytes(40.0, flows) for flows in (80, 240))
    assert few < drain._KMAX_BYTES < many


@pytest.mark.parametrize(
    ("verdict", "code", "word"),
    [
        (Verdict("a", "b", "c", ok=True), 0, "ok"),
        (Verdict("a", "b", "c", ok=False), 1, "FAILED"),
        (Verdict("a", "b", "c", ok=False, binding=False, note="why"), 0, "DIFFERS: why"),
    ],
)
def test_what_differs_fails_unless_it_is_said_why(
    verdict, code, word, monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published, "CLAIMS", [Claim("name", "source", lambda: [verdict])])
    assert main(["published"]) == code
    assert word in capsys.readouterr().out
    (row,) = json.loads((tmp_path / published.REPORT).read_text())
    assert (row["name"], row["ok"]) == ("name", verdict.ok)
