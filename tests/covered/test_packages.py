"""Models of other packages are traced whole."""

from __future__ import annotations

import pytest

from tests.covered.package_cases import PACKAGES
from tests.covered.study import check


@pytest.mark.parametrize("case", PACKAGES, ids=lambda case: case.name)
def test_a_model_of_a_package_is_traced_whole(case, tell):
    tell(check(case))
