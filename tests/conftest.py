"""What every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: the machine is shared, and a slow example is no wrong one. Derandomised:
# a change is judged by its own faults. For a hunt: pytest --hypothesis-profile=hunt.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("hunt", deadline=None, max_examples=2000)
settings.load_profile("suite")

ROW = "coverage"
"""A test's property that holds its line of the table of covered models."""


def pytest_terminal_summary(terminalreporter):
    """Print the table; here, because a parallel run's own process loads no other conftest."""
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
