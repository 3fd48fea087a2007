"""Names suspects in a timeline of counters: what is broken, or who is overloaded, and why."""

from __future__ import annotations

from roce_gym.diagnose.rules import RULES
from roce_gym.diagnose.suspect import Rule, Suspect
from roce_gym.diagnose.timeline import Place, Recorder, Timeline, read_timeline
from roce_gym.diagnose.view import View

__all__ = ["RULES", "Place", "Recorder", "Rule", "Suspect", "Timeline", "diagnose", "read_timeline"]


def diagnose(timeline: Timeline) -> list[Suspect]:
    """What the rules find, in their order: broken things first."""
    view = View(timeline)
    return [suspect for rule in RULES.values() for suspect in rule(view)]
