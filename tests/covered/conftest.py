"""What the tests of covered models share."""

from __future__ import annotations

import pytest

from tests.conftest import ROW


@pytest.fixture
def tell(record_property):
    """Add a model to the table that is printed at the end."""
    from tests.covered.summary import row  # noqa: PLC0415 - torch, only where it is needed

    return lambda seen: record_property(ROW, row(seen))
