"""Models that run in torch, though they are odd in one way each, on the command line."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["modules", "children", "train", "to", "eval"])
def test_such_a_model_is_made_and_traced_from_the_command_line(name, tmp_path, command):
    file = tmp_path / "hiding.py"
    file.write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width=6):\n"
        "        super().__init__()\n"
        "        self.body = nn.Sequential(nn.Linear(4, width), nn.Dropout())\n"
        f"        self.{name} = [nn.Linear(4, 3)]\n"
        "    def forward(self, x):\n"
        f"        return self.body(x), self.{name}[0](x)\n"
    )
    for device in ("cpu", "meta"):
        args = "trace", f"{file}:Net", "--input", "x:float32[B=2,4]", "--device", device
        code, out, err = command(*args)
        assert code == 0, err
        assert "Traceback" not in err
        assert "B width" in out


@pytest.mark.parametrize("parameters", ["self, x, times=1", "self, *, x, times=1"])
def test_a_model_with_a_call_and_no_forward_is_traced(parameters, tmp_path, command):
    file = tmp_path / "called.py"
    file.write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width=6):\n"
        "        super().__init__()\n"
        "        self.body = nn.Linear(4, width)\n"
        f"    def __call__({parameters}):\n"
        "        return self.body(x) * times\n"
    )
    code, out, err = command("trace", f"{file}:Net", "--input", "x:float32[B=2,4]")
    assert code == 0, err
    assert "B width" in out
    code, _, err = command("trace", f"{file}:Net", "--input", "wrong:float32[B=2,4]")
    assert code == 2
    assert "do not match" in err
