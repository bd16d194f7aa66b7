"""Our own model without its annotations, and what stood in each place before."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
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
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for function, name, annotation in _read(tree.body, ()):
            text = "" if annotation is None else ast.unparse(annotation)
            if "Tensor, " in text:
                place = (file.relative_to(package).as_posix(), function, name)
                found.setdefault(place, text.replace("torch.Tensor", "Tensor"))
    return found


def _shaped(annotation: cst.Annotation | None) -> bool:
    return annotation is not None and "Tensor, " in cst.Module([]).code_for_node(
        annotation.annotation
    )


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


def _read(
    body: list[ast.stmt], scope: tuple[str, ...]
) -> Iterator[tuple[str, str, ast.expr | None]]:
    """Every annotation of the functions in a body: function, name, annotation."""
    for node in body:
        match node:
            case ast.FunctionDef():
                inside = (*scope, node.name)
                for one in ast.walk(node.args):
                    if isinstance(one, ast.arg):
                        yield ".".join(inside), one.arg, one.annotation
                yield ".".join(inside), "return", node.returns
                yield from _read(node.body, inside)
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield ".".join(scope), name, node.annotation
            case ast.ClassDef(name=name):
                yield from _read(node.body, (*scope, name))
            case _:
                for block in ("body", "orelse", "finalbody"):
                    yield from _read(getattr(node, block, []), scope)
