"""Inferred annotations into source: infer, rewrite, amend what does not hold, write."""

from shapetrace.annotation.inference.infer import Inferred, Wishes, infer
from shapetrace.annotation.plan.plans import (
    FilePlan,
    FunctionPlan,
    LeftOut,
    LocalPlan,
    Rewritten,
    Written,
)
from shapetrace.annotation.report import annotation_summary, diff
from shapetrace.annotation.rewriting.rewrite import rewrite
from shapetrace.annotation.writing import check_source_writable, write_copies, write_in_place

__all__ = [
    "FilePlan",
    "FunctionPlan",
    "Inferred",
    "LeftOut",
    "LocalPlan",
    "Rewritten",
    "Wishes",
    "Written",
    "annotation_summary",
    "check_source_writable",
    "diff",
    "infer",
    "rewrite",
    "write_copies",
    "write_in_place",
]
