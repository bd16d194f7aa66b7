"""From a trace to what people and programs read: rows decided once, one file per format."""

from shapetrace.report.building import build_report
from shapetrace.report.document import Report
from shapetrace.report.reporter import Canvas, Reporter
from shapetrace.report.reporters import REPORTERS, choose
from shapetrace.report.rows import LEVELS, Level, Row
from shapetrace.report.words import LANGUAGES, Language

__all__ = [
    "LANGUAGES",
    "LEVELS",
    "REPORTERS",
    "Canvas",
    "Language",
    "Level",
    "Report",
    "Reporter",
    "Row",
    "build_report",
    "choose",
]
