"""The command from start to end, on a small decoder in a file of its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shapetrace.cli.app import main
from tests.api.annotating.enforced import imported

HERE = Path(__file__).parents[2] / "api/annotating"
INPUT = ("--input", "ids:int64[B=2,n=7]<50")


@pytest.fixture
def gpt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "small_gpt.py"
    shutil.copy(HERE / "small_gpt.py.txt", file)
    return file


def run(capfdbinary, *arguments):
    """Exit code, standard output, standard error; as in a process of its own."""
    for name in ("small_gpt", "shapetrace_target_small_gpt", "broken"):
        sys.modules.pop(name, None)
    with pytest.raises(SystemExit) as ended:
        main(["annotate", *map(str, arguments)])
    said = capfdbinary.readouterr()
    return ended.value.code or 0, said.out.decode(), said.err.decode()


def refusal(capfdbinary, *arguments, code=2):
    """The one line that a refused command says."""
    found, out, err = run(capfdbinary, *arguments)
    assert (found, out) == (code, "")
    assert err.count("\n") == 1
    return err


def outputs(folder, enforced=()):
    """What the model in a folder returns, where asked for with every annotation enforced."""
    with imported(folder, "small_gpt", enforced) as small_gpt:
        torch.manual_seed(0)
        model = small_gpt.Model().eval()
        return model(torch.arange(33).reshape(3, 11) % 50).logits


TINY = """from torch import nn


class Tiny(nn.Module):
    def forward(self, x):
        return x + 1
"""


def test_uncommitted_changes_are_not_overwritten(capfdbinary, tmp_path):
    file = tmp_path / "tiny.py"
    file.write_text(TINY)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    file.write_text(TINY + "# mine\n")
    said = refusal(capfdbinary, f"{file}:Tiny", "--input", "x:float32[B=2]", "--write")
    assert said.endswith("tiny.py has uncommitted changes; commit them, or use --force\n")
    assert file.read_text() == TINY + "# mine\n"
    assert not list(tmp_path.glob("*.bak*"))


LEAVING = """import sys
from torch import nn


class Tiny(nn.Module):
    def forward(self, x):
        if x.shape[0] {}:
            sys.exit(3)
        return x + 1
"""


def test_a_model_that_leaves_the_process_is_refused(capfdbinary, tmp_path):
    file = tmp_path / "tiny.py"
    file.write_text(LEAVING.format("== 2"))
    said = refusal(capfdbinary, f"{file}:Tiny", "--input", "x:float32[B=2]", code=1)
    assert "the model does not run on these inputs: " in said
    assert "sys.exit(3)" in said


def test_a_size_at_which_the_model_leaves_the_process_tells_nothing(capfdbinary, tmp_path):
    file = tmp_path / "tiny.py"
    file.write_text(LEAVING.format("!= 2"))
    code, _, err = run(capfdbinary, f"{file}:Tiny", "--input", "x:float32[B=2]")
    assert code == 0
    assert "1 function annotated" in err


LOOP = """import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(2 * width, width)

    def forward(self, state, item):
        return self.mix(torch.cat([state, item], -1))


class Net(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.step = Step(width)

    def forward(self, xs):
        state = torch.zeros_like(xs[:, 0])
        grown = xs[:, :0]
        for i in range(xs.shape[1]):
            state = self.step(state, xs[:, i])
            grown = self.grow(grown, state)
        return grown

    def grow(self, so_far, one):
        return torch.cat([so_far, one[:, None]], 1)
"""


def test_a_loop_as_long_as_an_input_has_names_at_every_turn(capfdbinary, tmp_path):
    file = tmp_path / "loop.py"
    file.write_text(LOOP)
    code, out, _ = run(capfdbinary, f"{file}:Net", "--input", "xs:float32[B=3,n=4,6]")
    assert code == 0
    for line in (
        '+        state: Float[torch.Tensor, "B width"],',
        '+        item: Float[torch.Tensor, "B width"],',
        '+        so_far: Float[torch.Tensor, "B so_far_1 width"],',
        '+        one: Float[torch.Tensor, "B width"],',
    ):
        assert line in out.splitlines()


@pytest.mark.slow
def test_written_proven_and_stable(gpt, capfdbinary, tmp_path):
    original = gpt.read_bytes()
    words = (f"{gpt}:Model", *INPUT, "--locals", "first", "--write")
    code, out, err = run(capfdbinary, *words)
    assert (code, out) == (0, "")
    assert "9 functions annotated in 1 file: 9 parameters, 9 returns, 8 variables" in err
    assert "values checked by jaxtyping and beartype" in err
    assert "Attention.forward `k` is bound to tensors of several shapes" in err
    annotated = gpt.read_text()
    assert gpt.with_name("small_gpt.py.bak").read_bytes() == original
    for line in (
        'x: Float[torch.Tensor, "B n n_embd"],',
        'mask: Bool[torch.Tensor, "n n"] | None = None,',
        ') -> tuple[Float[torch.Tensor, "B n n_embd"], Float[torch.Tensor, "B n_head n n"]]:',
        ') -> Float[torch.Tensor, "B n_kv_or_n_head n head_dim"]:',
        'def forward(self, ids: Int[torch.Tensor, "B n"], targets=None) -> Output:',
        'def norm(x: Float[torch.Tensor, "B *rest"], eps=1e-5) -> Float[torch.Tensor, "B *rest"]:',
        'scores: Float[torch.Tensor, "B n_head n n"] = q @ k.transpose(-2, -1)',
    ):
        assert line in annotated

    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "small_gpt.py").write_bytes(original)
    assert torch.equal(outputs(tmp_path, ["small_gpt"]), outputs(plain))

    code, out, err = run(capfdbinary, f"{gpt}:Model", *INPUT, "--locals", "first")
    assert (code, out) == (0, "")
    assert "0 functions annotated in 0 files" in err


HALF = """import torch
from jaxtyping import Float
from torch import Tensor, nn


class Half(nn.Module):
    def __init__(self, width: int = 6, wide: int = 9):
        super().__init__()
        self.up = nn.Linear(width, wide)

    def grown(self, x: Float[Tensor, "batch t c"]):
        return self.up(x), x.mean(1)

    def forward(self, x):
        return self.grown(x)[0].mT
"""


def test_what_is_written_follows_the_names_of_what_stays(capfdbinary, tmp_path):
    file = tmp_path / "half.py"
    file.write_text(HALF)
    words = (f"{file}:Half", "--input", "x:float32[B=2,n=5,width=6]")
    code, out, err = run(capfdbinary, *words)
    assert code == 0
    assert '+    ) -> tuple[Float[Tensor, "batch t wide"], Float[Tensor, "batch c"]]:\n' in out
    assert (
        '+    def forward(self, x: Float[Tensor, "batch t c"]) -> Float[Tensor, "batch wide t"]:'
        in out
    )
    assert "left out" not in err  # what stays says the same as what would be written
    code, out, _ = run(capfdbinary, *words, "--replace")
    assert '+        x: Float[Tensor, "B n width"],\n' in out


FEED = """import torch


def grown(batch=2, length=5):
    return torch.randn(batch, length, 6)


def fixed():
    return grown()


def picky(batch=2):
    return grown(2)[:, : 5 // (batch == 2)]
"""


@pytest.mark.parametrize(("make", "runs"), [("grown", 6), ("fixed", 1), ("picky", 1)])
def test_inputs_of_a_function_at_the_sizes_that_it_can_make(capfdbinary, tmp_path, make, runs):
    (tmp_path / "half.py").write_text(HALF)
    (tmp_path / "feed.py").write_text(FEED)
    target, inputs = f"{tmp_path / 'half.py'}:Half", f"{tmp_path / 'feed.py'}:{make}"
    code, out, err = run(capfdbinary, target, "--inputs", inputs)
    assert code == 0
    assert 'Float[Tensor, "batch wide t"]' in out
    assert f"outputs equal to the bit in {runs} run" in err
    assert ("at one size of the inputs alone" in err) == (runs == 1)


@pytest.mark.slow
def test_linters_find_nothing_new(gpt, capfdbinary, tmp_path):
    folder = tmp_path / "copies"
    code, _, err = run(capfdbinary, f"{gpt}:Model", *INPUT, "-o", folder, "--only", "Attention.*")
    assert code == 0
    assert f"wrote {folder / 'small_gpt.py'}" in err
    text = (folder / "small_gpt.py").read_text()
    assert 'x: Float[torch.Tensor, "B n_kv n head_dim"],' in text
    assert "def split_heads(x, heads):" in text  # not asked for
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E4,E7,E9,F,I,UP"]
    done = subprocess.run(
        [*ruff, "--ignore", "F722", "--target-version", "py311", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    shutil.copy(gpt, folder / "before.py")
    found = type_errors(folder, "before.py", "small_gpt.py")
    assert found["small_gpt.py"] <= found["before.py"]


def type_errors(folder, *files):
    """What mypy says of each file, without the line."""
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-error-summary"]
    done = subprocess.run(
        [*command, "--cache-dir", "/dev/null", "--follow-imports=skip", *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    lines = [line.partition(":") for line in done.stdout.splitlines()]
    return {
        name: {said.partition(" ")[2] for file, _, said in lines if file == name} for name in files
    }


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pyright"), reason="needs pyright: npm install -g pyright")
def test_pyright_finds_nothing_new(gpt, capfdbinary, tmp_path):
    folder = tmp_path / "copies"
    words = (f"{gpt}:Model", *INPUT, "-o", folder, "--locals", "first")
    assert run(capfdbinary, *words)[0] == 0
    shutil.copy(gpt, folder / "before.py")
    done = subprocess.run(
        ["pyright", "--pythonpath", sys.executable, "--outputjson", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == 2
    found = {"before.py": set(), "small_gpt.py": set()}
    for one in told["generalDiagnostics"]:
        found[Path(one["file"]).name].add((one.get("rule"), one["message"]))
    assert found["small_gpt.py"] <= found["before.py"]


BAD = [
    (["nowhere.py:Model", *INPUT], "there is no file nowhere.py"),
    (["small_gpt.py:Modle", *INPUT], "has no 'Modle': did you mean 'Model'"),
    (["broken.py:f", *INPUT], r"broken.py:2: "),
    (["small_gpt.py:Model"], "no input is given for small_gpt.py:Model; give --input"),
    (["small_gpt.py:Model", *INPUT, "--write", "-o", "d"], "--write and -o are both given"),
    (["small_gpt.py:Model", *INPUT, "--diff", "--write"], "--diff and --write are both given"),
    (["small_gpt.py:Model", *INPUT, "--force"], "--force goes with --write"),
    (
        ["small_gpt.py:Model", *INPUT, "--inputs", "a.pt"],
        "give --input specs or an --inputs file, not both",
    ),
    (["small_gpt.py:Model", *INPUT, "-o", "small_gpt.py"], "it is a file, not a folder"),
    (["small_gpt.py:Model", *INPUT, "--alias", "x"], "--alias 'x' is not of the form"),
    (["small_gpt.py:Model", *INPUT, "--only", "nothing.*"], "nothing to annotate"),
    (["small_gpt.py:Model", "--input", "ids:float32[B=2,n=7]"], "the model does not run on these"),
    (
        [
            "torch.nn:Linear",
            "--arg",
            "in_features=3",
            "--arg",
            "out_features=4",
            "--input",
            "input:float32[B=2,3]",
        ],
        "nothing to annotate",
    ),
    (["generated:Model", "--input", "x:float32[B=2,3]"], "has no source file"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_one_line(gpt, capfdbinary, tmp_path, arguments, said, monkeypatch):
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    generated = type(sys)("generated")
    exec(
        "from torch import nn\nclass Model(nn.Module):\n  def forward(self, x): return x",
        vars(generated),
    )
    monkeypatch.setitem(sys.modules, "generated", generated)
    code = 1 if said.startswith("the model does not run") else 2
    assert said in refusal(capfdbinary, *arguments, code=code)
