"""What must not import torch, and how fast it starts."""

import subprocess

import pytest

WATCH = """
import sys
try:
    from shapetrace.__main__ import main
    sys.argv = ["shapetrace", *sys.argv[1:]]
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
heavy = {"torch", "numpy", "transformers", "tokenizers", "jaxtyping"} & sys.modules.keys()
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("forward", "--help"), ("configs",), ("report", "TRACE")],
    ids=" ".join,
)
def test_no_torch(python, saved, arguments):
    words = [str(saved) if word == "TRACE" else word for word in arguments]
    done = subprocess.run(
        [python, "-c", WATCH, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_importing_the_package_imports_next_to_nothing(python):
    code = (
        "import sys, shapetrace; "
        "assert not {'torch', 'rich', 'typer', 'jaxtyping'} & sys.modules.keys(); "
        "assert 'forward' in dir(shapetrace)"
    )
    subprocess.run([python, "-c", code], check=True)


def cpu_seconds(arguments):
    """CPU time of a child process."""
    import resource  # noqa: PLC0415

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_commands_start_within_twice_their_libraries(python, saved):
    """Up to where a command's own work begins; a whole report is printed beside it."""
    commands = {
        "base": [python, "-c", "import typer, rich"],
        "help": [python, "-m", "shapetrace", "--help"],
        "report --help": [python, "-m", "shapetrace", "report", "--help"],
        "report": [python, "-m", "shapetrace", "report", str(saved)],
    }
    limits = {"help": 2, "report --help": 2, "report": 4}
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(15):  # the least of many: a busy machine only ever adds
        for name, arguments in commands.items():
            best[name] = min(best[name], cpu_seconds(arguments))
        ratios = {name: best[name] / best["base"] for name in limits}
        if all(ratios[name] < 0.9 * limits[name] for name in limits):
            break
    print({name: round(ratio, 2) for name, ratio in ratios.items()})
    assert all(ratios[name] < limits[name] for name in limits), ratios
