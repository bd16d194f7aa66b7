"""The examples in the docstrings run, and give what they say."""

from __future__ import annotations

import doctest

import pytest

from shapetrace.api.traced import Traced
from shapetrace.api.watching import record, trace


@pytest.mark.parametrize("documented", [Traced, record, trace], ids=lambda it: it.__name__)
def test_examples_run(documented):
    (example,) = (t for t in doctest.DocTestFinder(recurse=False).find(documented) if t.examples)
    example.globs = {}
    assert doctest.DocTestRunner().run(example).failed == 0
