"""Whether a run fits, told before it starts."""

import pytest

import shapetrace
from shapetrace.api.transformer.memory import (
    activation_bytes,
    available_bytes,
    check_fits,
    kept_bytes,
)
from shapetrace.cost import summarise
from shapetrace.cost.training import training_of
from shapetrace.errors import ShapetraceError
from shapetrace.free_memory import free_of_group
from shapetrace.units import format_bytes


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("name", ["tiny-encoder", "tiny-decoder"])
@pytest.mark.parametrize("seq", [8, 200])
def test_the_estimate_is_near_what_a_run_holds(name, attention, seq):
    config = shapetrace.choose_config(name, attention=attention)
    trace = shapetrace.forward(name, batch=2, seq=seq, attention=attention)
    peak = summarise(trace).peak_activation_bytes
    assert 0.5 * peak < activation_bytes(config, 2, seq, 4) < 2 * peak


@pytest.mark.parametrize("attention", ["explicit", "fused"])
@pytest.mark.parametrize("name", ["tiny-encoder", "tiny-decoder", "tiny-encoder-decoder"])
@pytest.mark.parametrize("seq", [16, 200])
def test_the_estimate_of_a_backward_pass_is_near_what_it_holds(name, attention, seq):
    config = shapetrace.choose_config(name, attention=attention)
    trace = shapetrace.forward(name, batch=4, seq=seq, attention=attention, backward=True)
    summary = training_of(trace)
    peak = summary.peak.nbytes - summary.gradient_bytes
    sides = 2 if config.kind == "encoder-decoder" else 1
    assert 0.5 * peak < sides * kept_bytes(config, 4, seq, 4) < 2 * peak


def test_what_fits_passes():
    check_fits("tiny", 1, 1, "cpu")


def test_what_does_not_fit_names_bytes_and_the_way_out():
    available = available_bytes("cpu")
    with pytest.raises(ShapetraceError) as caught:
        check_fits("huge", available, 10_000_000, "cpu")
    text = str(caught.value)
    assert f"huge needs {available + 10_000_000:,} bytes" in text
    assert format_bytes(10_000_000) in text
    assert "--device meta" in text


def test_a_containers_limit_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("800\n")
    (tmp_path / "memory.stat").write_text("anon 500\nfile 300\nfile_mapped 7\n")
    assert free_of_group(tmp_path) == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert free_of_group(tmp_path) is None
    assert free_of_group(tmp_path / "missing") is None
