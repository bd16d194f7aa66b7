"""Inferred annotations into source: infer, rewrite, amend what does not hold, write."""

from shapetrace.annotate.infer import Inferred, Wishes, infer
from shapetrace.annotate.plan import FilePlan, FunctionPlan, LeftOut, LocalPlan, Rewritten, Written
from shapetrace.annotate.report import diff, summary
from shapetrace.annotate.rewrite import rewrite
from shapetrace.annotate.writing import check_writable, write_copies, write_in_place

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
