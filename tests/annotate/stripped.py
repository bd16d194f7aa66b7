"""Our own model without its annotations, and what stood in each place before."""

from __future__ import annotations

import shutil
from pathlib import Path

import libcst as cst

import shapetrace.model

Place = tuple[str, str, str]
"""File, function, and parameter, variable (its first annotation) or ``return``."""

MAKE = """
from own_model import ModelConfig, build


def decoder(
    vocab_size: int = 50,
    d_model: int = 24,
    h: int = 4,
    h_kv: int = 2,
    d_k: int = 10,
    d_ff: int = 36,
):
    given = dict(locals(), positions="rope", gated=True, norm="rmsnorm", attention="explicit")
    return build(ModelConfig.from_preset("tiny-decoder").replaced(given))


def encoder_decoder(
    vocab_size: int = 50, d_model: int = 24, h: int = 4, d_ff: int = 36
):
    given = dict(locals(), attention="explicit")
    return build(ModelConfig.from_preset("tiny-encoder-decoder").replaced(given))
"""


def strip(folder: Path) -> Path:
    """Copy our model without its jaxtyping annotations.

    Returns:
        The file with the functions that make one.
    """
    source = Path(shapetrace.model.__file__).parent
    package = folder / "own_model"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8").replace("shapetrace.model", "own_model")
        file.write_text(cst.parse_module(text).visit(_Stripper()).code, encoding="utf-8")
    make = folder / "make_own.py"
    make.write_text(MAKE.lstrip(), encoding="utf-8")
    return make


def annotations(package: Path) -> dict[Place, str]:
    """Every jaxtyping annotation of a package's functions, in one spelling."""
    found: dict[Place, str] = {}
    for file in sorted(package.rglob("*.py")):
        reader = _Reader(file.relative_to(package).as_posix(), found)
        cst.parse_module(file.read_text(encoding="utf-8")).visit(reader)
    return found


def _shaped(annotation: cst.Annotation | None) -> bool:
    return annotation is not None and "Tensor, " in _code(annotation.annotation)


def _code(node: cst.CSTNode) -> str:
    text = " ".join(cst.Module([]).code_for_node(node).split()).replace("torch.Tensor", "Tensor")
    return text.replace("[ ", "[").replace(", ]", "]").replace(" ]", "]")


class _Stripper(cst.CSTTransformer):
    def leave_Param(self, original_node, updated_node):
        changed = _shaped(updated_node.annotation)
        return updated_node.with_changes(annotation=None) if changed else updated_node

    def leave_FunctionDef(self, original_node, updated_node):
        changed = _shaped(updated_node.returns)
        return updated_node.with_changes(returns=None) if changed else updated_node

    def leave_AnnAssign(self, original_node, updated_node):
        if not _shaped(updated_node.annotation) or updated_node.value is None:
            return updated_node
        return cst.Assign([cst.AssignTarget(updated_node.target)], updated_node.value)


class _Reader(cst.CSTVisitor):
    def __init__(self, file: str, found: dict[Place, str]) -> None:
        self._file, self._found, self._scope = file, found, []

    def visit_ClassDef(self, node):
        self._scope.append(node.name.value)

    def leave_ClassDef(self, original_node):
        self._scope.pop()

    def visit_FunctionDef(self, node):
        self._scope.append(node.name.value)
        self._add("return", node.returns)

    def leave_FunctionDef(self, original_node):
        self._scope.pop()

    def visit_Param(self, node):
        self._add(node.name.value, node.annotation)

    def visit_AnnAssign(self, node):
        if isinstance(node.target, cst.Name):
            self._add(node.target.value, node.annotation)

    def _add(self, name, annotation):
        if _shaped(annotation):
            place = (self._file, ".".join(self._scope), name)
            self._found.setdefault(place, _code(annotation.annotation))
