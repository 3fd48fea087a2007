"""README.md and docs/interfaces.md show what tests/integrations/ runs, and nothing else."""

import ast
import re
from pathlib import Path

import pytest

PAGES = ("README.md", "docs/interfaces.md")
FOLDER = Path("tests/integrations")
RUNS = ast.literal_eval(
    re.search(r"^RUNS = (\(.*?^\))", (FOLDER / "run.py").read_text(), re.S | re.M)[1]
    .replace("NEWEST", "'newest'")
    .replace("RLLIB", "'rllib'")
)
SCRIPTS = sorted({script for script, _ in RUNS})


def shown(script):
    text = (FOLDER / f"{script}.py").read_text(encoding="utf-8")
    (part,) = re.findall(r"^# shown\n(.*?)^# end\n", text, re.S | re.M)
    # No string or block around it: it is run as it stands.
    statements = [ast.dump(node) for node in ast.parse(part).body]
    whole = [ast.dump(node) for node in ast.parse(text).body]
    starts = range(len(whole) - len(statements) + 1)
    assert any(whole[i : i + len(statements)] == statements for i in starts)
    return part.strip()


def test_all_scripts_are_run():
    scripts = {path.stem for path in FOLDER.glob("*.py")} - {"run"}
    assert scripts == set(SCRIPTS)
    for _, venv in RUNS:
        assert (FOLDER / f"{venv}.txt").is_file()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_registration_is_short(script):
    lines = [line for line in shown(script).splitlines() if line.strip()]
    assert 0 < len(lines) <= 10


def test_the_pages_show_them():
    text = "\n".join(Path(page).read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"```python\n(.*?)\n```", text, re.S)
    assert sorted(blocks) == sorted(shown(script) for script in SCRIPTS)
