"""Annotations from runs, beside those of RightTyper: right, named, enforceable.

    python -m tests.benchmarks.annotating --righttyper PYTHON

PYTHON is an interpreter of version 3.12 or later that has RightTyper: ``python3.12 -m venv rt
&& rt/bin/pip install righttyper torch numpy jaxtyping beartype``. Both tools see the same
models in calls of the same sizes. Every annotation of a tensor's shape is then checked, each
by itself, at sizes that no tool has seen:

- right: it holds there, once whatever it needs is imported;
- named: of its axes, those with a name that means something, not a number or ``D1``;
- enforceable: it holds there in the file as it was written, checked as jaxtyping would.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapetrace.annotation import Wishes, write_in_place
from shapetrace.api.annotating.annotate import annotate_target
from shapetrace.api.preparing.request import Request
from shapetrace.capture.proof.checked_source import definitions_in
from shapetrace.capture.proof.messages import ProofCase
from shapetrace.capture.proof.proof import Proof
from shapetrace.capture.target.inputs import from_specs
from shapetrace.capture.target.target import resolve
from shapetrace.dims.specs import parse_specs
from tests.api.annotating.enforced import forgetting

SOURCES = Path(__file__).parents[1] / "api/annotating"
INSTALL = "; make one: python3.12 -m venv rt && rt/bin/pip install righttyper torch numpy jaxtyping beartype"
_DIMS = re.compile(r"""Tensor, *\\*["']([^"'\\]*)""")
_NOTHING = re.compile(r"D?\d+|_|\.\.\.|[a-z]+_\d+|\w+_\d+_or_.*")


@dataclass(frozen=True)
class Case:
    """A model, its inputs, and sizes that no tool has seen."""

    name: str
    file: str
    inputs: tuple[str, ...]
    unseen: Mapping[str, int]


CASES = (
    Case("Model", "small_gpt", ("ids:int64[B=2,n=7]<50",), {"B": 5, "n": 11}),
    Case("Tagger", "others", ("words:int64[B=2,n=5]<40",), {"B": 7, "n": 9}),
    Case("GCN", "others", ("x:float32[N=7,features=6]", "adjacency:float32[N,N]"), {"N": 11}),
)
DRIVE = """
import torch
from {file} import {name}
model = {name}().eval()
with torch.no_grad():
    for args, kwargs in torch.load("calls.pt"):
        model(*args, **kwargs)
"""


def by_shapetrace(case: Case, file: Path) -> list[tuple[object, ...]]:
    """Annotate a file in place.

    Returns:
        The positional and keyword arguments of the model's calls.
    """
    with forgetting(file.parent):
        result = annotate_target(Request(f"{file}:{case.name}", case.inputs), Wishes())
    write_in_place(result.files)
    specs = parse_specs(case.inputs)
    calls = [from_specs(specs.resized(dict(sizes))) for sizes in result.runs]
    return [(call.args, call.kwargs) for call in calls]


def by_righttyper(case: Case, file: Path, calls: Sequence[object], python: str) -> None:
    """Annotate a file in place from the same calls, each looked at."""
    import torch  # noqa: PLC0415 - after the command line is read

    torch.save(calls, file.with_name("calls.pt"))
    drive = file.with_name("drive.py")
    drive.write_text(DRIVE.format(file=case.file, name=case.name), encoding="utf-8")
    options = ["--infer-shapes", "--overwrite", "--output-files", "--no-sampling"]
    options += ["--use-top-pct", "100", "--python-version", "3.11", "--include-files", file.name]
    command = [python, "-m", "righttyper", *options, drive.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"RightTyper failed:\n{done.stderr[-2000:]}")


def annotations(source: bytes) -> Iterator[tuple[int, str, str]]:
    """The annotations of shapes: number of the function, place, text."""
    for number, node in enumerate(definitions_in(ast.parse(source))):
        places = [
            (one.arg, one.annotation) for one in ast.walk(node.args) if isinstance(one, ast.arg)
        ]
        for name, annotation in (*places, ("return", node.returns)):
            text = "" if annotation is None else ast.unparse(annotation)
            if _DIMS.search(text):
                yield number, name, text


def resolved(source: bytes) -> bytes:
    """A file with what its annotations need at run time, and type variables written out."""
    tree = ast.parse(source.replace(b"if TYPE_CHECKING:", b"if True:"))
    variables = {
        node.targets[0].id: " | ".join(ast.literal_eval(one) for one in node.value.args[1:])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "TypeVar" in ast.unparse(node.value)
    }
    for node in definitions_in(tree):
        for one in (*(n for n in ast.walk(node.args) if isinstance(n, ast.arg)), node):
            field = "annotation" if isinstance(one, ast.arg) else "returns"
            old = getattr(one, field)
            text = "" if old is None else ast.unparse(old)
            for name, union in variables.items():
                text = (
                    ast.unparse(ast.Constant(re.sub(rf"\b{name}\b", f"({union})", _bare(text))))
                    if name in text
                    else text
                )
            setattr(one, field, old if old is None else ast.parse(text, mode="eval").body)
    return ast.unparse(tree).encode()


def _bare(text: str) -> str:
    return ast.literal_eval(text) if text.startswith(("'", '"')) else text


def holding(case: Case, file: Path, source: bytes) -> int:
    """How many annotations hold at sizes that no tool has seen."""
    places = list(annotations(source))
    names: dict[tuple[str, int], set[str]] = {}
    for number, name, _ in places:
        names.setdefault((str(file), number), set()).add(name)
    inputs = from_specs(parse_specs(case.inputs).resized(case.unseen))
    target = (f"{file}:{case.name}", (), ())
    with forgetting(file.parent):
        proof = Proof(resolve(*target).build(), [ProofCase([inputs], target)])
        wanted = {place: frozenset(found) for place, found in names.items()}
        verdict = proof.of({str(file): source}, wanted, {})
    if verdict.error:
        sys.exit(f"{case.name}: {verdict.error}")
    return len(places) - len(verdict.failed)


def line(case: Case, tool: str, file: Path) -> str:
    """One line of the table."""
    source = file.read_bytes()
    clear = resolved(source)
    found = list(annotations(clear))
    axes = [axis for *_, text in found for dims in _DIMS.findall(text) for axis in dims.split()]
    named = sum(not _NOTHING.fullmatch(axis) for axis in axes)
    right, kept = holding(case, file, clear), holding(case, file, source)
    return (
        f"{case.name:8} {tool:11}{len(found):11}{right:7}{f'{named}/{len(axes)}':>9}"
        f"{named / max(1, len(axes)):6.0%}{kept:13}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__ or ""))
    parser.add_argument("--righttyper", required=True, help="a Python >= 3.12 with RightTyper")
    python = parser.parse_args().righttyper
    if shutil.which(python) is None:
        sys.exit(f"there is no {python}{INSTALL}")
    if subprocess.run(
        [python, "-c", "import righttyper"], capture_output=True, check=False
    ).returncode:
        sys.exit(f"{python} has no RightTyper{INSTALL}")
    print("model    tool        annotated  right       named       enforceable")
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            ours, theirs = (Path(name) / tool / f"{case.file}.py" for tool in ("ours", "theirs"))
            for file in (ours, theirs):
                file.parent.mkdir()
                shutil.copy(SOURCES / f"{case.file}.py.txt", file)
            by_righttyper(case, theirs, by_shapetrace(case, ours), python)
            print(line(case, "shapetrace", ours))
            print(line(case, "RightTyper", theirs))


if __name__ == "__main__":
    main()
