"""The examples run, and print what their first lines promise."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def printed(name, *arguments):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"},
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_every_example_is_tested():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"watch_your_model.py", "grouped_heads.py", "guard_a_budget.py"}


def test_a_model_of_ones_own_is_listed_by_name():
    """Its own sizes too: the model, made again at others, shows which axes they move."""
    code, out = printed("watch_your_model.py")
    assert code == 0
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert any(row.startswith("features B n width 2 7 24 ") for row in rows)
    assert any(row.startswith("widened B n hidden 2 7 40 ") for row in rows)


def test_fewer_key_value_heads_keep_fewer_bytes():
    code, out = printed("grouped_heads.py")
    assert code == 0
    kept = {line.split()[0]: line.split()[-2:] for line in out.splitlines()[1:]}
    # 2 layers x (keys + values) x 256 tokens x h_kv heads x 16 wide x 4 bytes
    assert kept == {"8": ["512", "KiB"], "2": ["128", "KiB"], "1": ["64", "KiB"]}


def test_a_budget_is_kept_or_not(tmp_path):
    report = tmp_path / "tiny.json"
    subprocess.run(
        [sys.executable, "-m", "shapetrace", "forward", "--config=tiny-decoder", "-o", report],
        check=True,
    )
    for budget, code in ((41_728, 0), (41_727, 1)):
        ended, out = printed("guard_a_budget.py", report, budget)
        assert ended == code
        assert out.startswith(f"41,728 of {budget:,} parameters")
