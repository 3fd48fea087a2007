"""Every shipped scenario has a test that fails if it does not do what its head says."""

import re
from pathlib import Path

from roce_gym.scenario_file import available_scenarios

MARK = re.compile(r'^@pytest\.mark\.shows\("(\w+)"\)$', re.MULTILINE)


def test_each_is_shown_by_a_test():
    """`shows` marks such tests: `pytest -m shows` runs them."""
    modules = Path(__file__).parent.rglob("test_*.py")
    shown = {name for path in modules for name in MARK.findall(path.read_text(encoding="utf-8"))}
    assert shown == set(available_scenarios())
