"""The legend of shades gives the limits by which they are drawn."""

from __future__ import annotations

import pytest

from shapetrace.report import attention


@pytest.mark.parametrize("place", range(len(attention.LIMITS)))
def test_a_shade_begins_where_the_legend_says(place):
    limit = attention.LIMITS[place]

    class Canvas:
        unicode = True

    class Layer:
        visible = ((True,),)
        weights = (((limit,),),)

    below = Layer()
    below.weights = (((limit - 1e-9,),),)
    drawn = attention._cell(Layer(), 0, (0, 0), Canvas(), 3)
    before = attention._cell(below, 0, (0, 0), Canvas(), 3)
    assert drawn == " " + attention.SHADES[place + 1] * 2
    assert before == " " + attention.SHADES[place] * 2
