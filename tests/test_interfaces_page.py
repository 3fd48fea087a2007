"""docs/interfaces.md shows what tests/integrations/ runs."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path("docs/interfaces.md").read_text(encoding="utf-8")
FOLDER = Path("tests/integrations")
RUNS = ast.literal_eval(
    re.search(r"^RUNS = (\(.*?^\))", (FOLDER / "run.py").read_text(), re.S | re.M)[1]
    .replace("NEWEST", "'newest'")
    .replace("RLLIB", "'rllib'")
)
SCRIPTS = sorted({script for script, _ in RUNS})


def shown(script):
    text = (FOLDER / f"{script}.py").read_text(encoding="utf-8")
    return re.search(r"^# shown\n(.*?)^# end\n", text, re.S | re.M)[1].strip()


def test_all_scripts_are_run():
    scripts = {path.stem for path in FOLDER.glob("*.py")} - {"run"}
    assert scripts == set(SCRIPTS)
    for _, venv in RUNS:
        assert (FOLDER / f"{venv}.txt").is_file()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_registration_is_short(script):
    lines = [line for line in shown(script).splitlines() if line.strip()]
    assert 0 < len(lines) <= 10


def test_the_page_shows_them():
    blocks = re.findall(r"```python\n(.*?)\n```", PAGE, re.S)
    assert sorted(blocks) == sorted(shown(s) for s in SCRIPTS if s != "sb3_check")
