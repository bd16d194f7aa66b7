"""The pytest plugin: ``--shapetrace``, and the ``shapetrace`` fixture.

Neither imports torch; what needs it is imported once a test has.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from shapetrace.api.assertions import Shapes
    from shapetrace.api.checks.tally import Checked
    from shapetrace.check.findings import Finding

_KEY = "shapetrace"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shapetrace``."""
    parser.getgroup("shapetrace").addoption(
        "--shapetrace",
        action="store_true",
        help="Check the jaxtyping annotations of the project's packages while the tests run.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch, where it is asked for.

    Raises:
        pytest.UsageError: For settings in pyproject.toml that cannot be.
    """
    if not config.getoption("--shapetrace"):
        return
    from shapetrace.api.checks.check_tests import ProjectCheck  # noqa: PLC0415 - only when asked for
    from shapetrace.api.project import read_settings  # noqa: PLC0415 - as above
    from shapetrace.check.rules import chosen  # noqa: PLC0415 - as above
    from shapetrace.errors import ShapetraceError  # noqa: PLC0415 - as above

    try:
        settings = read_settings(config.rootpath)
    except ShapetraceError as error:
        raise pytest.UsageError(str(error)) from error
    codes = chosen(settings.select, settings.ignore)
    project = ProjectCheck(config.rootpath, settings.packages, codes)
    config.pluginmanager.register(Watcher(config, project), "shapetrace-watcher")


@pytest.fixture
def shapetrace() -> Shapes:
    """Traces a model and asserts on its shapes by name; see `Shapes`."""
    from shapetrace.api.assertions import Shapes  # noqa: PLC0415 - only when asked for

    return Shapes()


class Watcher:
    """Checks annotations around each test, and reports at the end.

    Under pytest-xdist each worker checks its own tests and sends what it found.
    """

    def __init__(self, config: pytest.Config, project: Any) -> None:
        self._config = config
        self._project = project
        self._worker = hasattr(config, "workerinput")
        self._found: dict[str, tuple[Finding, str]] = {}
        self._annotations = self._silenced = 0
        self._notes: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Watch one test, its fixtures included."""
        self._project.begin()
        try:
            return (yield)
        finally:
            self._project.end(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Gather what was found; a session that went well but for it fails."""
        result: Checked = self._project.finish()
        shown = self._project.shown_by
        for one in result.findings:
            self._keep(one, shown.get((one.file, one.line, one.code), ""))
        self._annotations = max(self._annotations, result.annotations)
        self._silenced = max(self._silenced, result.silenced)
        self._notes += result.notes
        if self._worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_KEY] = {
                "findings": [[asdict(one), test] for one, test in self._found.values()],
                "annotations": self._annotations,
                "silenced": self._silenced,
                "notes": self._notes,
            }
        elif self._found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker found."""
        from shapetrace.check.findings import Finding  # noqa: PLC0415 - only when asked for

        sent = getattr(node, "workeroutput", {}).get(_KEY)
        if sent is None:
            return
        for fields, test in sent["findings"]:
            plain = {key: _tupled(value) for key, value in fields.items()}
            self._keep(Finding(**plain), test)
        self._annotations = max(self._annotations, sent["annotations"])
        self._silenced = max(self._silenced, sent["silenced"])
        self._notes += sent["notes"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the findings, or how much was checked."""
        from shapetrace.report.findings import counted  # noqa: PLC0415 - only when asked for

        say = terminalreporter
        say.section("shapetrace", "=", red=bool(self._found), green=not self._found)
        for one, test in self._found.values():
            say.line(one.text)
            if test:
                say.line(f"  in {test}")
            say.line("")
        for note in dict.fromkeys(self._notes):
            say.line(f"note: {note}")
        silenced = f", {self._silenced} silenced" if self._silenced else ""
        say.line(
            f"{counted(len(self._found), 'finding')}{silenced}; "
            f"{counted(self._annotations, 'annotation')} checked"
        )

    def _keep(self, one: Finding, test: str) -> None:
        place = f"{one.file}:{one.line}:{one.code}:{one.name}"
        self._found.setdefault(place, (one, test))


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list | tuple) else value
