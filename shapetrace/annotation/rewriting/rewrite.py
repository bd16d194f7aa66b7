"""A plan into source: annotations added, everything else left as it is, to the byte.

Comments, formatting, decorators, line endings and encoding stay. What has an annotation
keeps it, unless it is to be replaced.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from shapetrace.annotation.plan.annotation import Annotation, Spelling, render_annotation
from shapetrace.annotation.plan.plans import FilePlan, FunctionPlan, LeftOut, Rewritten, Written
from shapetrace.annotation.rewriting.binders import Binders, declared_first, plain_target
from shapetrace.annotation.rewriting.existing import has_shapes, refined
from shapetrace.annotation.rewriting.imports import add_imports, needs_of, plan_imports
from shapetrace.annotation.rewriting.layout import wrapped
from shapetrace.errors import ShapetraceError

LINE_LENGTH = 88
"""A signature that annotations make longer than this gets a line per parameter."""


def rewrite(
    source: bytes, plan: FilePlan, *, replace: bool = False, line_length: int = LINE_LENGTH
) -> Rewritten:
    """The source with a plan's annotations.

    Args:
        source: The file as it is.
        plan: What to write.
        replace: Whether existing annotations give way.
        line_length: What a signature may reach before it is given a line per parameter.

    Raises:
        ShapetraceError: The source can't be parsed; the message says where.
    """
    if b"\r" in source and b"\n" not in source:  # LibCST loses such a file's last line end
        lines = source.replace(b"\r", b"\n")
        done = rewrite(lines, plan, replace=replace, line_length=line_length)
        return dataclasses.replace(done, old=source, new=done.new.replace(b"\n", b"\r"))
    module = parse(source, plan.file)
    draft = _Draft({function.line: function for function in plan.functions}, replace=replace)
    imports = plan_imports(module, needs_of(plan.annotations))
    new = _apply(module, draft, imports.spelling, line_length)
    if not draft.written:
        return Rewritten(plan.file, source, source, (), tuple(_placed(plan.file, draft.left_out)))
    used = [draft.annotations[key] for key in draft.annotations]
    new = add_imports(new, plan_imports(module, needs_of(used)))
    written, left_out = tuple(draft.written), tuple(_placed(plan.file, draft.left_out))
    return Rewritten(plan.file, source, new.bytes, written, left_out)


def parse(source: bytes, file: str) -> cst.Module:
    """A file's syntax tree, from which the same bytes come back.

    Raises:
        ShapetraceError: For a syntax error, with its line, or an encoding that is not there.
    """
    try:
        compile(source, file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)  # knows the line best
        module = cst.parse_module(source)
    except (UnicodeDecodeError, LookupError) as error:
        raise ShapetraceError(f"{file}: cannot be decoded ({error})") from error
    except SyntaxError as error:
        if not error.lineno:
            raise ShapetraceError(f"{file}: cannot be decoded ({error.msg})") from error
        raise ShapetraceError(
            f"{file}:{error.lineno}: {error.msg}; mend it and run again"
        ) from error
    except cst.ParserSyntaxError as error:
        line = error.raw_line
        raise ShapetraceError(f"{file}:{line}: LibCST can't read this syntax; update it") from error
    if module.bytes != source:
        raise ShapetraceError(f"{file}: LibCST does not give its text back; it is left alone")
    return module


def _placed(file: str, left_out: Sequence[LeftOut]) -> list[LeftOut]:
    return [LeftOut(file, one.line, one.function, one.name, one.reason) for one in left_out]


@dataclass(slots=True)
class _Draft:
    """A rewriting under way."""

    functions: Mapping[int, FunctionPlan]
    replace: bool
    written: list[Written] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    annotations: dict[tuple[int, int, str], Annotation] = field(default_factory=dict)

    def write(
        self, function: FunctionPlan, line: int, name: str, kind: str, annotation: Annotation
    ) -> None:
        self.annotations[function.line, line, name] = annotation
        self.written.append(Written(function.line, function.qualname, name, kind))

    def leave(self, function: FunctionPlan, name: str, reason: str) -> None:
        self.left_out.append(LeftOut("", function.line, function.qualname, name, reason))


def _apply(module: cst.Module, draft: _Draft, spelling: Spelling, line_length: int) -> cst.Module:
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)  # just parsed: no node stands twice
    return wrapper.visit(_Annotator(draft, spelling, line_length))


class _Annotator(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, draft: _Draft, spelling: Spelling, line_length: int) -> None:
        super().__init__()
        self._draft = draft
        self._spelling = spelling
        self._length = line_length
        self._functions: list[FunctionPlan | None] = []
        self._binders: list[Binders] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        plan = self._draft.functions.get(self._line(node.name))
        self._functions.append(plan)
        self._binders.append(Binders.of(node))
        end = self.get_metadata(PositionProvider, node).end.line
        inside = any(self._line(node.name) < line <= end for line in self._draft.functions)
        return inside or (plan is not None and bool(plan.locals))

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        plan = self._functions.pop()
        self._binders.pop()
        if plan is None:
            return updated_node
        before = len(self._draft.written)
        params = self._params(plan, updated_node.params)
        new = updated_node.with_changes(params=params, returns=self._returns(plan, updated_node))
        if len(self._draft.written) == before:
            return updated_node
        column = self.get_metadata(PositionProvider, original_node).start.column
        return wrapped(original_node, new, column, self._length)

    # Signatures.

    def _params(self, plan: FunctionPlan, params: cst.Parameters) -> cst.Parameters:
        wanted = dict(plan.parameters)

        def one(param: cst.Param) -> cst.Param:
            annotation = wanted.get(param.name.value)
            return param if annotation is None else self._param(plan, param, annotation)

        star = params.star_arg
        return params.with_changes(
            posonly_params=[one(param) for param in params.posonly_params],
            params=[one(param) for param in params.params],
            star_arg=one(star) if isinstance(star, cst.Param) else star,
            kwonly_params=[one(param) for param in params.kwonly_params],
            star_kwarg=None if params.star_kwarg is None else one(params.star_kwarg),
        )

    def _param(self, plan: FunctionPlan, param: cst.Param, annotation: Annotation) -> cst.Param:
        name, old = param.name.value, param.annotation
        expression = self._decided(plan, name, old, annotation)
        if expression is None:
            return param
        self._draft.write(plan, 0, name, "argument", annotation)
        if old is not None:
            return param.with_changes(annotation=old.with_changes(annotation=expression))
        new = param.with_changes(annotation=cst.Annotation(expression))
        # a default after an annotation stands between spaces
        return new if param.default is None else new.with_changes(equal=cst.AssignEqual())

    def _returns(self, plan: FunctionPlan, node: cst.FunctionDef) -> cst.Annotation | None:
        if plan.returns is None:
            return node.returns
        expression = self._decided(plan, "return", node.returns, plan.returns)
        if expression is None:
            return node.returns
        self._draft.write(plan, 0, "return", "return", plan.returns)
        if node.returns is not None:
            return node.returns.with_changes(annotation=expression)
        return cst.Annotation(expression)

    def _decided(
        self, plan: FunctionPlan, name: str, old: cst.Annotation | None, new: Annotation
    ) -> cst.BaseExpression | None:
        """What to write, beside or in place of what is there; None to leave that."""
        expression = cst.parse_expression(render_annotation(new, self._spelling))
        if old is None:
            return expression
        if has_shapes(old.annotation) and not self._draft.replace:
            if not old.annotation.deep_equals(expression):
                self._draft.leave(plan, name, "has shapes already, which are kept (--replace)")
            return None
        names = (self._spelling.tensor,)
        wide = refined(expression, old.annotation, tensor=names, replace=self._draft.replace)
        if wide is None:
            self._draft.leave(plan, name, f"has an annotation, which is kept: {_text(old)}")
        return None if wide is None or _text(old) == _text(wide) else wide

    def _expression(self, annotation: Annotation) -> cst.BaseExpression:
        return cst.parse_expression(render_annotation(annotation, self._spelling))

    # Variables.

    def _local(self, line: int, name: str) -> tuple[FunctionPlan, Annotation] | None:
        plan = self._functions[-1] if self._functions else None
        if plan is None:
            return None
        found = (local for local in plan.locals if (local.line, local.name) == (line, name))
        local = next(found, None)
        if local is None:
            return None
        if name in self._binders[-1].unannotatable:
            self._draft.leave(plan, name, "is global or nonlocal, which takes no annotation")
            return None
        return plan, local.annotation

    def leave_Assign(
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.Assign | cst.AnnAssign:
        name = plain_target(original_node)
        found = self._local(self._line(original_node), name) if name else None
        if found is None:
            return updated_node
        plan, annotation = found
        self._draft.write(plan, self._line(original_node), name, "local", annotation)
        target = updated_node.targets[0]
        return cst.AnnAssign(
            target.target,
            cst.Annotation(self._expression(annotation)),
            updated_node.value,
            cst.AssignEqual(target.whitespace_before_equal, target.whitespace_after_equal),
            updated_node.semicolon,
        )

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.AnnAssign:
        target = original_node.target
        found = (
            self._local(self._line(original_node), target.value)
            if isinstance(target, cst.Name)
            else None
        )
        if found is None or not isinstance(target, cst.Name):
            return updated_node
        plan, annotation = found
        expression = self._decided(plan, target.value, original_node.annotation, annotation)
        if expression is None:
            return updated_node
        self._draft.write(plan, self._line(original_node), target.value, "local", annotation)
        new = updated_node.annotation.with_changes(annotation=expression)
        return updated_node.with_changes(annotation=new)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Names that a statement binds in another way are declared on a line before it."""
        if not self._functions or self._functions[-1] is None:
            return updated_node
        body: list[cst.BaseStatement] = []
        for old, new in zip(original_node.body, updated_node.body, strict=True):
            body.extend(self._with_declarations(old, new))
        return updated_node.with_changes(body=body)

    def _with_declarations(
        self, old: cst.BaseStatement, new: cst.BaseStatement
    ) -> list[cst.BaseStatement]:
        lines: list[cst.BaseStatement] = []
        for node, name in declared_first(old):
            found = self._local(self._line(node), name)
            if found is not None and name not in self._binders[-1].declared:
                plan, annotation = found
                self._draft.write(plan, self._line(node), name, "local", annotation)
                lines.append(_declaration(name, self._expression(annotation)))
                self._binders[-1].declared.add(name)
        if not lines:
            return [new]
        leading = new.leading_lines if hasattr(new, "leading_lines") else ()
        lines[0] = lines[0].with_changes(leading_lines=leading)
        return [*lines, new.with_changes(leading_lines=[])]

    def _line(self, node: cst.CSTNode) -> int:
        return int(self.get_metadata(PositionProvider, node).start.line)


def _declaration(name: str, expression: cst.BaseExpression) -> cst.SimpleStatementLine:
    declaration = cst.AnnAssign(cst.Name(name), cst.Annotation(expression), None)
    return cst.SimpleStatementLine([declaration])


def _text(node: cst.Annotation | cst.BaseExpression) -> str:
    """An annotation as it is written."""
    expression = node.annotation if isinstance(node, cst.Annotation) else node
    return cst.Module([]).code_for_node(expression).strip()
