"""Finding functions: before, inside and after a block that searches once."""

import gc

import pytest

from shapetrace.capture.source.live_functions import functions_of, living_functions, searched_once


def made():
    return lambda: None


def test_old_and_new_functions_are_found_the_youngest_first():
    old, code = made(), made.__code__
    with searched_once():
        new = made()
        assert functions_of({__file__})[0] is new
        assert {old, new, made} <= set(functions_of([__file__]))
        assert {old, new, made} <= set(living_functions())
        assert code.co_filename == __file__
        assert functions_of({"nowhere.py"}) == []
    assert gc.get_freeze_count() == 0
    assert {old, new, made} <= set(functions_of({__file__}))


def test_inside_another_and_where_objects_are_set_aside_already():
    old = made()
    with searched_once(), searched_once():
        assert functions_of({__file__}).count(old) == 1
        assert gc.get_freeze_count() > 0
    gc.freeze()
    try:
        with searched_once():
            assert old not in functions_of({__file__})
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_garbage_is_collected_again_after_an_error():
    with pytest.raises(KeyError), searched_once():
        {}["nothing"]
    assert gc.get_freeze_count() == 0
