"""Files that are written: whole or not at all, for every part of the program that writes some."""

import contextlib
import os
import resource
import stat
import tempfile
from pathlib import Path

import pytest
import torch

import shapetrace
from shapetrace.annotation.plan.plans import Rewritten
from shapetrace.annotation.writing import write_copies, write_in_place
from shapetrace.cli.output import check_outputs, write
from shapetrace.errors import ShapetraceError
from shapetrace.model import ModelConfig, ModelError, build
from shapetrace.model.training.checkpoint import save_checkpoint
from shapetrace.records.trace import Trace
from shapetrace.writing import check_place, write_all, write_whole

OLD = b"what was there before\n"


def output(path):
    """As ``-o`` does."""
    write("new\n" * 5000, path)


def save(path):
    """As ``--save`` does; random names, which do not pack."""
    names = tuple(os.urandom(16).hex() for _ in range(2000))
    shapetrace.save(Trace("Net", notes=names), path)


def in_place(path):
    """As ``--write`` does."""
    write_in_place([Rewritten(str(path), OLD, b"new\n" * 5000)], force=True)


def copy(path):
    """As ``annotate -o`` does."""
    write_copies([Rewritten(str(path), OLD, b"new\n" * 5000)], path.parent, path.parent)


def whole(path):
    write_whole(path, b"new\n" * 5000)


WRITERS = (output, save, in_place, copy, whole)
REFUSED = (ShapetraceError, OSError)


@pytest.fixture(params=WRITERS, ids=lambda writer: writer.__name__)
def writer(request):
    return request.param


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "place" / "file.py"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@contextlib.contextmanager
def disk_of(most):
    """No file can grow beyond so many bytes: what is written meets an error of the disk midway."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def below(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_is_kept(writer, file, mode):
    file.chmod(mode)
    writer(file)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_bytes() != OLD


@pytest.mark.parametrize("mask", [0o022, 0o077])
@pytest.mark.parametrize("writer", [output, save, copy, whole], ids=lambda one: one.__name__)
def test_a_new_file_is_as_the_umask_says(writer, tmp_path, mask):
    path = tmp_path / "file.py"
    before = os.umask(mask)
    try:
        writer(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(writer, file):
    os.chown(file, 12345, 23456)
    file.chmod(0o4640)
    writer(file)
    found = file.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o4640)


def test_a_link_stays_a_link(writer, file, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(file)
    writer(link)
    assert link.is_symlink()
    assert file.read_bytes() != OLD


def test_a_link_to_nothing_makes_its_file(tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "file.txt")
    write_whole(link, b"new")
    assert (tmp_path / "file.txt").read_bytes() == b"new"


@pytest.mark.parametrize("most", [0, 100, 4096])
def test_an_error_of_the_disk_midway_leaves_all_as_it_was(writer, file, most):
    with disk_of(most), pytest.raises(REFUSED) as caught:
        writer(file)
    assert file.read_bytes() == OLD
    assert below(file.parent) == ["file.py"]
    assert "File too large" in str(caught.value)


def test_several_files_are_all_written_or_none(file):
    other = file.with_name("other.py")
    other.write_bytes(OLD)
    with disk_of(100), pytest.raises(OSError, match="too large"):
        write_all({file: b"small", other: b"large" * 100})
    assert file.read_bytes() == other.read_bytes() == OLD
    files = [Rewritten(str(one), OLD, new) for one, new in ((file, b"s"), (other, b"l" * 999))]
    with disk_of(100), pytest.raises(ShapetraceError, match=r"too large; nothing was changed"):
        write_in_place(files, force=True)
    assert file.read_bytes() == other.read_bytes() == OLD
    assert below(file.parent) == ["file.py", "other.py"]


def refused_to_a_stranger(writer, path):
    """What a user who is not root is told; in a process of its own, which stops being root."""
    reader, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            writer(path)
        except REFUSED as error:
            os.write(pipe, str(error).encode())
        finally:
            os._exit(0)
    os.close(pipe)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        return told.read()


@pytest.mark.parametrize("locked", ["folder", "file"])
def test_what_may_not_be_written_is_refused(writer, locked):
    with tempfile.TemporaryDirectory() as name:  # below a folder that everybody may enter
        file = Path(name) / "file.py"
        file.write_bytes(OLD)
        file.chmod(0o444 if locked == "file" else 0o666)
        file.parent.chmod(0o777 if locked == "file" else 0o555)
        told = refused_to_a_stranger(writer, file)
        file.parent.chmod(0o755)
        reason = "it is write-protected" if locked == "file" else "Permission denied"
        assert reason in told
        assert file.read_bytes() == OLD
        assert below(file.parent) == ["file.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of two users")
def test_a_file_of_somebody_else_is_not_taken_over(writer):
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "file.py"
        file.write_bytes(OLD)
        file.chmod(0o666)
        file.parent.chmod(0o777)
        assert "it belongs to somebody else" in refused_to_a_stranger(writer, file)
        assert (file.read_bytes(), file.stat().st_uid) == (OLD, 0)
        assert below(file.parent) == ["file.py"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "it is a directory"),
        ("missing/file", "No such file or directory"),
        ("file.py/below", "Not a directory"),
        ("a" * 300, "File name too long"),
        ("circle", "circle|Too many levels"),
        ("a\0b", "null"),
    ],
)
def test_places_that_cannot_be(file, name, reason):
    (file.parent / "folder").mkdir()
    (file.parent / "circle").symlink_to(file.parent / "circle")
    before = below(file.parent)
    path = file.parent / name
    for attempt in (check_place, whole, check_outputs, output, save):
        with pytest.raises(REFUSED, match=reason):
            attempt(path)
    assert below(file.parent) == before


def test_a_name_as_long_as_a_name_may_be(tmp_path):
    path = tmp_path / ("n" * 255)
    for _ in range(2):
        check_place(path)
        write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_device_or_a_pipe_is_written_to(tmp_path):
    check_place(Path("/dev/null"))
    write_whole(Path("/dev/null"), OLD)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, OLD)
    assert os.read(reader, 100) == OLD
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_copy_that_is_kept_is_as_private_as_the_file(file):
    file.chmod(0o600)
    in_place(file)
    assert stat.S_IMODE(file.with_name("file.py.bak").stat().st_mode) == 0o600


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "model"
    save_checkpoint(folder, build(ModelConfig.from_preset("tiny-decoder")))
    return folder


def test_a_checkpoint_keeps_modes_and_owners(checkpoint):
    weights = checkpoint / "model.safetensors"
    checkpoint.chmod(0o750)
    weights.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(weights, 12345, 23456)
    then, old = weights.stat(), weights.read_bytes()
    torch.manual_seed(1)
    save_checkpoint(checkpoint, build(ModelConfig.from_preset("tiny-decoder")))
    now = weights.stat()
    assert weights.read_bytes() != old
    assert (now.st_mode, now.st_uid, now.st_gid) == (then.st_mode, then.st_uid, then.st_gid)
    assert stat.S_IMODE(checkpoint.stat().st_mode) == 0o750


def test_a_checkpoint_is_replaced_whole_or_not_at_all(checkpoint):
    old = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    with disk_of(2000), pytest.raises(ModelError, match="what was saved before is intact"):
        save_checkpoint(checkpoint, build(ModelConfig.from_preset("tiny-decoder")))
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == old
    assert below(checkpoint.parent) == ["model"]
