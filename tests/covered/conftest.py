"""The table of what was covered, after the tests."""

from __future__ import annotations

import pytest

ROW = "coverage"


@pytest.fixture
def tell(record_property):
    """Add a model to the table that is printed at the end."""
    from tests.covered.summary import row  # noqa: PLC0415 - torch, only where it is needed

    return lambda seen: record_property(ROW, row(seen))


def pytest_terminal_summary(terminalreporter):
    found = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in getattr(report, "user_properties", ())
        if name == ROW
    ]
    if found:
        from tests.covered.summary import table  # noqa: PLC0415

        terminalreporter.write_sep("-", "models covered")
        terminalreporter.write_line(table([tuple(row) for row in found]))
