"""Published results: what was claimed, what this simulator gives, and the verdict."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from eval.validate.published import (
    balance,
    buffers,
    drain,
    fairness,
    queues,
    recovery,
    spread,
)
from eval.validate.published.claim import Claim, Verdict

REPORT = Path("runs/validate/published.json")
_PARTS = (buffers, fairness, spread, recovery, queues, balance, drain)
CLAIMS: list[Claim] = [claim for part in _PARTS for claim in part.CLAIMS]


def validate_published(only: str) -> bool:
    """Checks all claims whose name contains `only`, prints the table and writes the report.

    Returns:
        Whether every binding verdict is fine.
    """
    chosen = [claim for claim in CLAIMS if only in claim.name]
    if not chosen:
        return True
    print("Published results: what was claimed, what we get, what counts as the same.")
    rows, fine = [], True
    for claim in chosen:
        print(f"{claim.name}  ({claim.source})", flush=True)
        for verdict in claim.check():
            print("  " + _describe(verdict), flush=True)
            rows.append({"name": claim.name, "source": claim.source, **asdict(verdict)})
            fine = fine and (verdict.ok or not verdict.binding)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {REPORT}", file=sys.stderr)
    return fine


def _describe(verdict: Verdict) -> str:
    word = "ok" if verdict.ok else "FAILED" if verdict.binding else f"DIFFERS: {verdict.note}"
    return f"{verdict.claimed:<74} {verdict.ours:<28} {verdict.limit:<24} {word}"
