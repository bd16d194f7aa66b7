"""From a trace to what people and programs read: rows decided once, one file per format."""

from shapetrace.report.document import Report, build_report
from shapetrace.report.formats.reporter import Canvas, Reporter
from shapetrace.report.formats.reporters import REPORTERS, choose
from shapetrace.report.language.words import LANGUAGES, Language
from shapetrace.report.rows import LEVELS, Level, Row

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
