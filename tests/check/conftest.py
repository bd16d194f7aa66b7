"""Models written for a test, checked in this process."""

import itertools

import pytest

from shapetrace.api.checks.check_target import check_target
from shapetrace.api.preparing.request import Request
from shapetrace.check.rules import chosen

NUMBER = itertools.count()
HEAD = """
import torch
from beartype import beartype
from jaxtyping import Bool, Float, Int, jaxtyped
from torch import Tensor, nn
"""


@pytest.fixture
def checked(tmp_path):
    """Checks a model's source; every file has a module name of its own."""

    def run(source, *inputs, select=(), target="Net", **options):
        file = tmp_path / f"wrong_{next(NUMBER)}.py"
        file.write_text(HEAD + source, encoding="utf-8")
        request = Request(f"{file}:{target}", inputs=inputs, **options)
        return check_target(request, chosen(select))

    return run


@pytest.fixture
def texts(checked):
    """The findings' texts, with the file's changing name as `FILE`."""

    def run(source, *inputs, **options):
        result = checked(source, *inputs, **options)
        assert result.error is None
        return [_plain(one) for one in result.findings]

    return run


def _plain(one):
    return one.text.replace("/".join(one.file.rsplit("/", 2)[-2:]), "FILE")
