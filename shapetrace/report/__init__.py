"""From a trace to what people and programs read: rows decided once, one file per format.

Which formats and languages there are is known without the rest: the options say so.
"""

from shapetrace.report.formats.reporters import REPORTERS, Canvas, Reporter, choose_format
from shapetrace.report.language.words import LANGUAGES, Language

__all__ = ["LANGUAGES", "REPORTERS", "Canvas", "Language", "Reporter", "choose_format"]
