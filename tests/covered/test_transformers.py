"""Transformer families: everything holds, and every dim of the model's own file has evidence."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.covered.study import EVIDENCE, check, kind_of
from tests.covered.transformer_cases import FAMILIES


@pytest.mark.parametrize("case", FAMILIES, ids=lambda case: case.name)
def test_a_family_is_traced_whole_and_every_dim_is_named_by_evidence(case, tell):
    seen = check(case)
    tell(seen)
    trace = seen.trace
    unnamed = Counter(
        (trace.sites[r.site].function, trace.sites[r.site].name, r.shape, dim.name, dim.detail)
        for r, dim in seen.dims
        if case.own in trace.sites[r.site].file and kind_of(dim) not in EVIDENCE
    )
    assert not unnamed
    assert any(case.own in site.file for site in trace.sites)
