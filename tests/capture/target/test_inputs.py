"""Inputs: made from specs, read from files, and checked against the signature."""

import pickle
from collections import UserDict

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from shapetrace.capture.target.inputs import CallInputs, check_signature, from_file, from_specs
from shapetrace.dims.specs import parse_specs
from shapetrace.errors import ShapetraceError


def _made(*texts, **options):
    return from_specs(parse_specs(texts), **options)


def test_values_by_dtype():
    made = _made("x:float32[200,50]", "ids:int64[1000]<7", "mask:bool[2,3]", "flags:int8[1000]")
    assert made.kwargs["x"].mean().abs() < 0.05
    assert abs(made.kwargs["x"].std() - 1) < 0.05
    assert made.kwargs["ids"].unique().tolist() == list(range(7))
    assert made.kwargs["mask"].all()
    assert made.kwargs["flags"].unique().tolist() == [0, 1]


def test_the_seed_decides_and_the_global_state_is_left_alone():
    state = torch.get_rng_state()
    first, second, other = _made("float32[9]"), _made("float32[9]"), _made("float32[9]", seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.args[0], second.args[0])
    assert not torch.equal(first.args[0], other.args[0])


def test_positions_keywords_and_nesting():
    made = _made("float32[1]", "batch.ids:int64[2]", "images.0:bool[3]", "images.1:bool[4]", "k=3")
    assert made.args[0].shape == (1,)
    assert made.kwargs["batch"]["ids"].shape == (2,)
    assert [image.shape for image in made.kwargs["images"]] == [(3,), (4,)]
    assert made.kwargs["k"] == 3


def test_on_meta_and_under_a_fake_mode():
    assert _made("complex64[2]", device="meta").args[0].device.type == "meta"
    specs = parse_specs(["ids:int64[B=2,n=3]<5"])
    with torch.device("meta"):
        assert from_specs(specs, weightless=True).kwargs["ids"].is_meta
    with FakeTensorMode():
        assert type(from_specs(specs, weightless=True).kwargs["ids"]).__name__ == "FakeTensor"


def test_a_bound_larger_than_the_dtype_holds():
    assert _made("uint8[1000]<1000").args[0].max() < 255


def test_files(tmp_path):
    x = torch.arange(3.0)
    torch.save({"x": x, "batch": {"ids": [x]}}, tmp_path / "named.pt")
    torch.save((x, x), tmp_path / "pair.pt")
    torch.save(x, tmp_path / "one.pt")
    torch.save(((x,), {"y": x}), tmp_path / "both.pt")
    save_file({"x": x}, tmp_path / "x.safetensors")
    (tmp_path / "make.py").write_text(
        "import torch\ndef make_inputs():\n    return torch.ones(4)\n"
    )
    assert torch.equal(from_file(f"{tmp_path}/named.pt").kwargs["batch"]["ids"][0], x)
    assert len(from_file(f"{tmp_path}/pair.pt").args) == 2
    assert torch.equal(from_file(f"{tmp_path}/one.pt").args[0], x)
    both = from_file(f"{tmp_path}/both.pt", device="meta")
    assert both.args[0].is_meta
    assert both.kwargs["y"].is_meta
    assert torch.equal(from_file(f"{tmp_path}/x.safetensors").kwargs["x"], x)
    assert from_file(f"{tmp_path}/make.py:make_inputs").args[0].shape == (4,)


class _Evil:
    def __reduce__(self):
        return print, ("loaded",)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.pt", UserDict(x=1), "holds more than tensors"),
        ("b.pt", _Evil(), "holds more than tensors"),
        ("c.pt", None, "not a file that torch.save wrote"),
        ("d.safetensors", None, "not a safetensors file"),
        ("e.txt", None, "give file.py:make_inputs, a .pt file or a .safetensors file"),
    ],
)
def test_files_that_are_refused(tmp_path, capsys, name, content, says):
    path = tmp_path / name
    if content is None:
        path.write_bytes(b"")
    else:
        torch.save(content, path)
    with pytest.raises(ShapetraceError) as caught:
        from_file(str(path))
    assert says in str(caught.value)
    assert "loaded" not in capsys.readouterr().out


def test_a_plain_pickle_is_not_run(tmp_path, capsys):
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(_Evil()))
    with pytest.raises(ShapetraceError, match="--inputs"):
        from_file(f"{tmp_path}/plain.pt")
    assert "loaded" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "says"),
    [("make_inputs = 3", "it is an int, not a function"), ("def make_inputs(): 1/0", "division")],
)
def test_functions_that_make_nothing(tmp_path, source, says):
    path = tmp_path / f"maker_{abs(hash(source))}.py"
    path.write_text(source)
    with pytest.raises(ShapetraceError, match=says):
        from_file(f"{path}:make_inputs")


class _Model(nn.Module):
    def forward(self, x, mask, scale: float = 1.0):
        return x


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (CallInputs((1,)), "missing a required argument: 'mask'"),
        (CallInputs((1, 2), {"maks": 3}), "got an unexpected keyword argument 'maks'"),
        (CallInputs((1, 2, 3, 4)), "too many positional arguments"),
    ],
)
def test_inputs_that_do_not_match_the_signature(inputs, says):
    with pytest.raises(ShapetraceError) as caught:
        check_signature(_Model(), inputs)
    text = str(caught.value)
    assert text == f"the inputs do not match _Model.forward: {says}; it takes (x, mask, scale=1.0)"


def test_inputs_that_match():
    check_signature(_Model(), CallInputs((1,), {"mask": 2}))
