"""Traces on disk: whole, by version, and told from what they are not."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shapetrace.dims import Declaration, DeclaredShape, Dim
from shapetrace.errors import ShapetraceError
from shapetrace.records import (
    FORMAT_VERSION,
    Failure,
    Operand,
    OpRecord,
    ParameterRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
    Trace,
    load,
    save,
    storage,
)
from shapetrace.records.trace import Fold

GOLD = Path(__file__).parent / "data"

SMALL = Trace(
    "Decoder",
    config=(("d_model", 64), ("norm", "rms"), ("dropout", 0.0), ("bias", False), ("d_ff", None)),
    sizes=(("B", 2), ("n", 3)),
    sites=(Site("model.py", 7, "Attention.forward", "q", "local"),),
    scopes=(Scope(None, "", "module", "Decoder", "model.py", 1, 0, 9),),
    tensors=(
        TensorRecord(
            site=0,
            scope=0,
            since=1,
            at=2,
            shape=(2, 4, 3, 16),
            dtype="float32",
            device="cpu",
            nbytes=1536,
            storage=0,
            declared=Declaration(
                'Float[Tensor, "B h n d_k"]', (DeclaredShape("Float", "B h n d_k"),)
            ),
            holds=True,
            dims=tuple(Dim(name, "declared") for name in ("B", "h", "n", "d_k")),
        ),
    ),
    storages=(StorageRecord(1536, "activation", "cpu", 1, 8),),
    tokens=((("你", 5), ("▁好", 6)),),
    notes=("one note",),
    wall_time=0.25,
)


def test_a_trace_comes_back(tmp_path):
    save(SMALL, tmp_path / "a trace")
    assert load(tmp_path / "a trace") == SMALL
    assert [path.name for path in tmp_path.iterdir()] == ["a trace"]


def test_equal_traces_make_equal_files_at_any_time(tmp_path, monkeypatch):
    save(SMALL, tmp_path / "one")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    save(SMALL, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_file_is_gzip_with_json_that_says_what_it_is(tmp_path):
    save(SMALL, tmp_path / "trace")
    body = json.loads(gzip.decompress((tmp_path / "trace").read_bytes()))
    assert body["format"] == "shapetrace trace"
    assert body["trace"]["format_version"] == FORMAT_VERSION
    assert body["trace"]["target"] == "Decoder"


def test_every_released_version_loads():
    """One gold file a version: all that SMALL held when that version was current."""
    versions = {path.name: load(path) for path in sorted(GOLD.iterdir())}
    assert list(versions) == [f"version-{n}.trace" for n in range(1, FORMAT_VERSION + 1)]
    assert versions["version-1.trace"] == SMALL


def test_migrations_run_one_after_another(tmp_path, monkeypatch):
    """The file of today, read by the program of the day after tomorrow."""
    save(SMALL, tmp_path / "old")

    def rename(trace):
        return trace | {"target": trace["target"].upper()}

    def annotate(trace):
        return trace | {"notes": [*trace["notes"], f"was {trace['target']}"]}

    monkeypatch.setattr(storage, "FORMAT_VERSION", FORMAT_VERSION + 2)
    steps = {FORMAT_VERSION: rename, FORMAT_VERSION + 1: annotate}
    monkeypatch.setattr(storage, "MIGRATIONS", storage.MIGRATIONS | steps)
    trace = load(tmp_path / "old")
    assert trace.notes == ("one note", "was DECODER")
    assert trace.format_version == FORMAT_VERSION + 2


def test_each_older_version_has_its_migration():
    assert sorted(storage.MIGRATIONS) == list(range(1, FORMAT_VERSION))


def write(path, body, version=FORMAT_VERSION):
    if isinstance(body, dict):
        body = json.dumps(
            {"format": "shapetrace trace", "trace": {"format_version": version} | body}
        ).encode()
    path.write_bytes(gzip.compress(body))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not json", "is not a saved trace; give a file written with --save"),
        (b"[1, 2]", "is not a saved trace; give a file written with --save"),
        (b'{"rows": []}', "is not a saved trace; give a file written with --save"),
        (b"\xff\xfe", "is not a saved trace; give a file written with --save"),
        (
            b'{"format": "shapetrace trace"}',
            "is a damaged trace: it holds no trace; trace again with --save",
        ),
        (
            {"format_version": None},
            "is a damaged trace: it has no format version; trace again with --save",
        ),
        (
            {"format_version": 0},
            "is a damaged trace: no shapetrace ever wrote format 0; trace again with --save",
        ),
        ({}, "is a damaged trace: Trace.target is missing; trace again with --save"),
        ({"target": 3}, "is a damaged trace: 3 is not one of ['str']; trace again with --save"),
        (
            {"target": "x", "colour": 1},
            "is a damaged trace: Trace has no field colour; trace again with --save",
        ),
        (
            {"format_version": FORMAT_VERSION + 1},
            (
                f"is a trace of format {FORMAT_VERSION + 1}, newer than this shapetrace reads "
                f"({FORMAT_VERSION}); upgrade shapetrace, or trace again with this one"
            ),
        ),
    ],
)
def test_a_file_that_is_no_trace_of_ours(tmp_path, body, message):
    path = tmp_path / "t"
    write(path, body)
    with pytest.raises(ShapetraceError) as caught:
        load(path)
    assert str(caught.value) == f"{path} {message}"


def misled(**fields):
    """The small trace with its one tensor's fields replaced."""
    return replace(SMALL, tensors=(replace(SMALL.tensors[0], **fields),))


CALLED = SMALL.scopes[0]
FAILED = Failure("RuntimeError", "no", 0, "model.py", 7, 3)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (misled(site=10**20), "tensors.site points at 100000000000000000000, and it has 1 sites"),
        (misled(scope=-1), "tensors.scope points at -1, and it has 1 scopes"),
        (misled(storage=1), "tensors.storage points at 1, and it has 1 storages"),
        (misled(dims=(Dim("B", "input"),)), "4 axes have 1 names"),
        (
            replace(SMALL, ops=(OpRecord("aten.mm.default", 4, 1, (), (), "float32"),)),
            "ops.scope points at 4",
        ),
        (
            replace(SMALL, parameters=(ParameterRecord("w", (2,), "float32", 8, 7),)),
            "parameters.storage points at 7",
        ),
        (
            replace(SMALL, parameters=(ParameterRecord("w", (2,), "float32", 8, 0, gradient=-2),)),
            "parameters.gradient points at -2",
        ),
        (replace(SMALL, scopes=(replace(CALLED, parent=0),)), "call 0 is made by call 0"),
        (
            replace(SMALL, scopes=(CALLED, replace(CALLED, parent=2), replace(CALLED, parent=1))),
            "call 1 is made by call 2, which is not before it",
        ),
        (replace(SMALL, failure=replace(FAILED, scope=10**20)), "failure.scope points at 1000"),
        (
            replace(SMALL, failure=replace(FAILED, operands=(Operand("x", storage=5),))),
            "failure.operands.storage points at 5",
        ),
        (replace(SMALL, folds=(Fold(1, 0, 3),)), "cannot be put back"),
        (replace(SMALL, folds=(Fold(1, 2, 10**20),)), "cannot be put back"),
    ],
)
def test_a_record_that_points_at_nothing_is_refused(tmp_path, trace, message):
    path = tmp_path / "misled.trace"
    save(trace, path)
    with pytest.raises(ShapetraceError) as caught:
        load(path)
    assert f"{path} is a damaged trace: " in str(caught.value)
    assert message in str(caught.value)


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "t"
    whole = storage.dumps(SMALL)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ShapetraceError, match=r"is empty|is cut off|is a damaged trace"):
            load(path)


def test_a_byte_changed_anywhere_is_refused_or_changes_nothing(tmp_path):
    """All but the header's fields and lengths of codes that nothing uses is under the checksum."""
    path = tmp_path / "t"
    whole = storage.dumps(SMALL)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(ShapetraceError):
            assert load(path) == SMALL


def test_bytes_after_the_end_are_refused(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(storage.dumps(SMALL) + b"more")
    with pytest.raises(ShapetraceError, match="is a damaged trace: 4 bytes follow its end"):
        load(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(ShapetraceError) as caught:
        load(tmp_path / "none")
    assert str(caught.value) == (
        f"cannot read trace {tmp_path / 'none'}: No such file or directory; give a file written with --save"
    )


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("missing/t", "No such file or directory"),
        (".", "it is a directory"),
        ("pipe", "it is not a regular file"),
    ],
)
def test_a_place_that_cannot_be_written(tmp_path, place, reason):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ShapetraceError) as caught:
        save(SMALL, tmp_path / place)
    assert str(caught.value) == (
        f"cannot save the trace to {tmp_path / place}: {reason}; choose another file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t"
    save(SMALL, path)

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(Trace("other"), path)
    assert load(path) == SMALL
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(SMALL, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real") == SMALL


def test_saving_and_loading_need_no_torch(tmp_path):
    code = (
        "import sys; from shapetrace.records import Trace, load, save\n"
        "save(Trace('x'), sys.argv[1]); assert load(sys.argv[1]).target == 'x'\n"
        "assert not {'torch', 'numpy', 'jaxtyping'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t")], check=True)


def test_a_hundred_thousand_tensors_are_small_and_quick():
    names = [tuple(Dim(name, "declared") for name in ("B", "n", f"d_{i}")) for i in range(20)]
    tensors = tuple(
        TensorRecord(
            i % 300,
            i // 20,
            3 * i,
            3 * i + 2,
            (2, i % 50, 768),
            "float32",
            "cpu",
            6144,
            i,
            dims=names[i % 20],
        )
        for i in range(100_000)
    )
    trace = Trace(
        "big",
        sites=SMALL.sites * 300,
        scopes=SMALL.scopes * 5_000,
        storages=SMALL.storages * 100_000,
        tensors=tensors,
    )
    start = time.process_time()
    data = storage.dumps(trace)
    assert storage.loads(data) == trace
    assert time.process_time() - start < 15  # about 1 s; the bound is for a busy machine
    assert len(data) < 12 * len(tensors)
