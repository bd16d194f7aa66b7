"""The command from start to end, on a small decoder in a file of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.cli.app import main

HERE = Path(__file__).parent
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


def refusal(capfdbinary, *arguments):
    """The one line that a refused command says."""
    code, out, err = run(capfdbinary, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def outputs(folder, sizes=(3, 11)):
    """What the model in a folder returns, with every annotation enforced by jaxtyping."""
    code = (
        "import jaxtyping, torch\n"
        "with jaxtyping.install_import_hook('small_gpt', 'beartype.beartype'):\n"
        "    import small_gpt\n"
        "torch.manual_seed(0)\nmodel = small_gpt.Model().eval()\n"
        f"out = model(torch.arange({sizes[0] * sizes[1]}).reshape{sizes} % 50)\n"
        "print(out.logits.double().sum().item().hex(), out.logits.flatten()[:50].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_written_proven_and_stable(gpt, capfdbinary, tmp_path):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    gpt.write_text(gpt.read_text() + "# mine\n")
    original = gpt.read_bytes()
    said = refusal(capfdbinary, f"{gpt}:Model", *INPUT, "--write")
    assert said.endswith("small_gpt.py has uncommitted changes; commit them, or use --force\n")
    assert gpt.read_bytes() == original
    assert not list(tmp_path.glob("*.bak*"))

    words = (f"{gpt}:Model", *INPUT, "--locals", "first", "--write", "--force")
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
        "# mine",
    ):
        assert line in annotated

    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "small_gpt.py").write_bytes(original)
    assert outputs(tmp_path) == outputs(plain)

    code, out, err = run(capfdbinary, f"{gpt}:Model", *INPUT, "--locals", "first")
    assert (code, out) == (0, "")
    assert "0 functions annotated in 0 files" in err


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
    found = [type_errors(file) for file in (gpt, folder / "small_gpt.py")]
    assert found[1] <= found[0]


def type_errors(file):
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-error-summary"]
    done = subprocess.run(
        [*command, "--hide-error-codes", "--cache-dir", "/dev/null", "--follow-imports=skip", file],
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.partition(" ")[2] for line in done.stdout.splitlines()}


BAD = [
    (["nowhere.py:Model", *INPUT], "there is no file nowhere.py"),
    (["small_gpt.py:Modle", *INPUT], "has no 'Modle': did you mean 'Model'"),
    (["broken.py:f", *INPUT], r"broken.py:2: "),
    (["small_gpt.py:Model"], "no input is given; give --input"),
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
    assert said in refusal(capfdbinary, *arguments)
