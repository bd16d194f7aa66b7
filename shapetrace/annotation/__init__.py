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
from shapetrace.annotation.report import diff, summary
from shapetrace.annotation.rewriting.rewrite import rewrite
from shapetrace.annotation.writing import check_writable, write_copies, write_in_place

__all__ = [
    "FilePlan",
    "FunctionPlan",
    "Inferred",
    "LeftOut",
    "LocalPlan",
    "Rewritten",
    "Wishes",
    "Written",
    "check_writable",
    "diff",
    "infer",
    "rewrite",
    "summary",
    "write_copies",
    "write_in_place",
]
