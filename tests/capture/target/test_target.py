"""Targets: what they mean, what they are made from, and what is wrong with them."""

import sys
import textwrap

import pytest
import torch
from torch import nn

from shapetrace.capture.target.inputs import from_specs
from shapetrace.capture.target.target import resolve
from shapetrace.dims.specs import parse_specs
from shapetrace.errors import ShapetraceError

SOURCE = """
from dataclasses import dataclass, field
import torch
from torch import nn

@dataclass
class Config:
    width: int = 8
    depth: int = 2
    sizes: tuple = (3, 5)

class Plain(nn.Module):
    def __init__(self, d_in, d_out=4, bias=True, widths=(6, 7)):
        super().__init__()
        self.fc = nn.Linear(d_in, d_out, bias=bias)
        self.rest = nn.ModuleList(nn.Linear(d_out, w) for w in widths)
    def forward(self, x, scale=1.0):
        return self.fc(x) * scale

class FromConfig(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(config.depth))
    def forward(self, x):
        return x

class Unannotated(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.width, config.depth)

def factory(d=3, **kwargs):
    return Plain(d, **kwargs)

def wrong():
    return {"a": 1}

def fails():
    raise ValueError("h must divide d_model")

def leaves():
    import sys
    sys.exit(3)

class Outer:
    class Inner(nn.Linear):
        pass

class NotAModule:
    pass

ready = Plain(2)
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "target_models.py"
    path.write_text(textwrap.dedent(SOURCE))
    yield str(path)
    sys.modules.pop("target_models", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def test_a_class_with_arguments(file):
    target = resolve(f"{file}:Plain", ["d_in=5", "bias=False"])
    assert target.rebuilds
    assert target.integers() == {"d_in": 5, "d_out": 4, "widths.0": 6, "widths.1": 7}
    assert target.config() == {"d_in": 5, "d_out": 4, "bias": False}
    model = target.build()
    assert model.fc.weight.shape == (4, 5)
    assert model.fc.bias is None


def test_rebuilt_with_one_integer_changed(file):
    target = resolve(f"{file}:Plain", ["d_in=5"])
    assert target.build({"d_out": 8}).fc.weight.shape == (8, 5)
    assert [m.out_features for m in target.build({"widths.1": 14}).rest] == [6, 14]


def test_the_same_seed_makes_the_same_weights_and_leaves_the_state(file):
    target = resolve(f"{file}:Plain", ["d_in=5"])
    state = torch.get_rng_state()
    first, second, other = target.build(seed=1), target.build(seed=1), target.build(seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.fc.weight, second.fc.weight)
    assert not torch.equal(first.fc.weight, other.fc.weight)


def test_on_meta_nothing_has_weights(file):
    model = resolve(f"{file}:Plain", ["d_in=100_000_000", "d_out=1_000_000"]).build(device="meta")
    assert {p.device.type for p in model.parameters()} == {"meta"}


@pytest.mark.parametrize("name", ["FromConfig", "Unannotated"])
def test_dots_make_the_configuration_object(file, name):
    target = resolve(f"{file}:{name}", ["config.width=6"])
    assert target.integers() == {
        "config.width": 6,
        "config.depth": 2,
        "config.sizes.0": 3,
        "config.sizes.1": 5,
    }
    shapes = [tuple(p.shape) for p in target.build({"config.width": 12}).parameters()]
    assert shapes[0] == ((12, 12) if name == "FromConfig" else (2, 12))


def test_factories_instances_and_inner_classes(file):
    assert resolve(f"{file}:factory", ["d_out=9"]).build().fc.weight.shape == (9, 3)
    ready = resolve(f"{file}:ready")
    assert not ready.rebuilds
    assert ready.build() is ready.build()
    inner = resolve(f"{file}:Outer.Inner", ["in_features=2", "out_features=3"])
    assert inner.build().weight.shape == (3, 2)


def test_a_module_by_its_dotted_name():
    target = resolve("torch.nn:Linear", ["in_features=2", "out_features=3"])
    assert isinstance(target.build(), nn.Linear)


def test_a_subject_for_the_probes(file):
    specs = parse_specs(["x:float32[B=2,5]"])
    target = resolve(f"{file}:Plain", ["d_in=5"])
    subject = target.subject(from_specs(specs))
    assert subject.dims == {"B": 2}
    assert subject.build({"d_in": 10, "B": 2}).fc.in_features == 10
    kwargs = subject.arguments({"B": 4}, {}).kwargs
    assert kwargs["x"].shape == (4, 5)


@pytest.mark.parametrize(
    ("target", "arguments", "says"),
    [
        ("{file}", [], "names no object; write package.module:Class"),
        ("{file}:Plian", [], "has no 'Plian': did you mean 'Plain'?"),
        ("{file}:zzzzzzz", [], "has no 'zzzzzzz': it has Config, FromConfig"),
        ("nowhere.py:Plain", [], "there is no file nowhere.py"),
        ("no_such_package.models:Plain", [], "No module named 'no_such_package'"),
        ("{file}:Plain", [], "needs d_in: give --arg d_in=...; it takes (d_in, d_out=4"),
        ("{file}:Plain", ["d_in=3", "d_uot=2"], "--arg d_uot: "),
        ("{file}:Plain", ["d_in=3", "d_uot=2"], "did you mean 'd_out'"),
        ("{file}:Plain", ["d_in"], "--arg 'd_in' is not of the form key=value"),
        ("{file}:Plain", ["d_in=3", "d_in=4"], "--arg: d_in is given twice"),
        ("{file}:number", [], "is an int, neither an nn.Module nor"),
        ("{file}:NotAModule", [], "is the class NotAModule, neither"),
        ("{file}:ready", ["d=3"], "exists already and takes no --arg"),
    ],
)
def test_what_cannot_be_a_target(file, target, arguments, says):
    with pytest.raises(ShapetraceError) as caught:
        resolve(target.format(file=file), arguments)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wrong", "made a dict, not an nn.Module"),
        ("fails", "raised ValueError: h must divide d_model"),
        ("leaves", "calls sys.exit(3)"),
    ],
)
def test_what_makes_no_model(file, name, says):
    with pytest.raises(ShapetraceError) as caught:
        resolve(f"{file}:{name}").build()
    assert says in str(caught.value)
    assert caught.value.__cause__ is None or not isinstance(caught.value.__cause__, ShapetraceError)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_thing", "No module named 'no_such_thing'; install no_such_thing"),
        ("def f(:\n  pass", "broken_model.py:1: invalid syntax"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import sys; sys.exit('bye')", "calls sys.exit('bye') when imported"),
    ],
)
def test_a_file_that_cannot_be_imported_keeps_its_own_error(tmp_path, source, says):
    path = tmp_path / "broken_model.py"
    path.write_text(source)
    with pytest.raises(ShapetraceError) as caught:
        resolve(f"{path}:Model")
    assert says in str(caught.value)
    assert caught.value.__cause__ is not None
    assert "broken_model" not in sys.modules


class TestHuggingFace:
    transformers = pytest.importorskip("transformers")
    TINY = ("n_embd=8", "n_head=2", "n_layer=2", "vocab_size=11")

    def test_fields_by_key(self):
        target = resolve("transformers:GPT2Model", hf_config=self.TINY)
        assert target.config() == {"n_embd": 8, "n_head": 2, "n_layer": 2, "vocab_size": 11}
        assert target.integers()["n_embd"] == 8
        assert target.integers()["n_positions"] == 1024
        model = target.build({"n_embd": 16}, device="meta")
        assert model.wte.weight.shape == (11, 16)

    def test_fields_by_file(self, tmp_path):
        target = resolve("transformers:GPT2Model", hf_config=self.TINY)
        (tmp_path / "config.json").write_text(target.recipe._config({}).to_json_string())
        again = resolve("transformers:GPT2Model", hf_config=[str(tmp_path), "n_layer=1"])
        assert len(again.build(device="meta").h) == 1

    def test_derived_fields_follow_what_changes(self):
        keys = ["hidden_size=8", "num_attention_heads=2", "num_key_value_heads=2"]
        keys += ["intermediate_size=8", "vocab_size=5", "num_hidden_layers=1"]
        target = resolve("transformers:LlamaModel", hf_config=keys)
        attention = target.build({"hidden_size": 16}, device="meta").layers[0].self_attn
        assert attention.head_dim == 8

    def test_an_auto_class(self):
        keys = ["model_type=gpt2", *self.TINY]
        model = resolve("transformers:AutoModelForCausalLM", hf_config=keys).build(device="meta")
        assert type(model).__name__ == "GPT2LMHeadModel"

    @pytest.mark.parametrize(
        ("name", "keys", "says"),
        [
            ("transformers:GPT2Model", ["n_emdb=8"], "did you mean 'n_embd'"),
            ("transformers:GPT2Model", ["nowhere.json"], "cannot read it as a configuration"),
            ("transformers:AutoModel", [], "--hf-config model_type=gpt2"),
            ("torch.nn:Linear", ["a=1"], "has no config_class; use --arg"),
        ],
    )
    def test_what_is_no_configuration(self, name, keys, says):
        with pytest.raises(ShapetraceError) as caught:
            resolve(name, hf_config=keys)
        assert says in str(caught.value)


def test_a_file_of_a_package_is_told_how_it_is_named(tmp_path):
    (tmp_path / "net.py").write_text("from .layers import Block\n")
    with pytest.raises(ShapetraceError, match=r"part of a package: .* package\.module:Class"):
        resolve(f"{tmp_path / 'net.py'}:Net")
