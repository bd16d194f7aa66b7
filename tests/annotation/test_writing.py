"""Writing: whole or not at all, the old file beside, nothing that is not ours."""

import pytest

from shapetrace.annotation.plan.plans import Rewritten
from shapetrace.annotation.writing import write_copies, write_in_place
from shapetrace.errors import ShapetraceError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def test_the_old_file_stays_beside(file):
    write_in_place([Rewritten(str(file), b"old", b"new")])
    assert (file.read_bytes(), file.with_name("a.py.bak").read_bytes()) == (b"new", b"old")
    assert file.stat().st_mode & 0o777 == 0o640
    write_in_place([Rewritten(str(file), b"new", b"newer")])
    assert file.with_name("a.py.bak").read_bytes() == b"old"
    assert file.with_name("a.py.bak2").read_bytes() == b"new"


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "b.py"
    link.symlink_to(file)
    write_in_place([Rewritten(str(link), b"old", b"new")])
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_unchanged_files_are_not_touched(file):
    assert write_in_place([Rewritten(str(file), b"old", b"old")]) == []
    assert sorted(path.name for path in file.parent.iterdir()) == ["a.py"]


def test_a_file_that_changed_meanwhile(file):
    with pytest.raises(ShapetraceError, match="has changed since it was run; run again"):
        write_in_place([Rewritten(str(file), b"older", b"new")])
    assert file.read_bytes() == b"old"


def test_installed_packages_only_by_force(tmp_path):
    file = tmp_path / "site-packages" / "p" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"old")
    rewritten = [Rewritten(str(file), b"old", b"new")]
    with pytest.raises(ShapetraceError, match="installed package; write a copy with -o DIR"):
        write_in_place(rewritten)
    assert file.read_bytes() == b"old"
    write_copies(rewritten, tmp_path / "out", tmp_path / "site-packages")
    assert (tmp_path / "out" / "p" / "a.py").read_bytes() == b"new"
    write_in_place(rewritten, force=True)
    assert file.read_bytes() == b"new"


def test_all_files_or_none(file, tmp_path):
    gone = Rewritten(str(tmp_path / "gone.py"), b"old", b"new")
    with pytest.raises(ShapetraceError, match="cannot read"):
        write_in_place([Rewritten(str(file), b"old", b"new"), gone])
    assert file.read_bytes() == b"old"


def test_a_folder_that_cannot_be(file):
    rewritten = [Rewritten(str(file), b"old", b"new")]
    with pytest.raises(ShapetraceError, match="choose another -o"):
        write_copies(rewritten, file / "below", file.parent)
