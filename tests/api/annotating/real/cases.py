"""Models that nobody here wrote, in tiny configurations, and the files to annotate in each."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A model whose source is copied and annotated.

    Attributes:
        name: What the table calls it; module names are made from it.
        modules: The package's modules to be copied.
        make: Source of the function that makes the model; `{0}`, `{1}` are the copies' names.
        inputs: Input specs.
        sizes: Of the inputs' named axes, for the run that the annotations have not seen.
    """

    name: str
    modules: tuple[str, ...]
    make: str
    inputs: tuple[str, ...]
    sizes: dict[str, int]

    @property
    def package(self) -> str:
        return self.modules[0].partition(".")[0]


def hugging_face(name: str, model: str, config: str, inputs: tuple[str, ...], **sizes: int) -> Case:
    """A model of transformers: its modeling file alone is copied."""
    make = f"""
from transformers import {model.partition("For")[0].removesuffix("Model").removesuffix("LMHead")}Config
from {{0}} import {model}
def make():
    config = {model.partition("For")[0].removesuffix("Model").removesuffix("LMHead")}Config({config})
    config._attn_implementation = "eager"
    return {model}(config)
"""
    return Case(name, (f"transformers.models.{name}.modeling_{name}",), make, inputs, sizes)


IDS = ("input_ids:int64[B=2,n=7]<50",)
SMALL = "vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, "

CASES = (
    hugging_face(
        "gpt2", "GPT2LMHeadModel", "vocab_size=50, n_embd=24, n_layer=2, n_head=4", IDS, B=3, n=11
    ),
    hugging_face(
        "llama",
        "LlamaForCausalLM",
        SMALL + "intermediate_size=36, num_key_value_heads=2",
        IDS,
        B=3,
        n=11,
    ),
    hugging_face(
        "t5",
        "T5ForConditionalGeneration",
        "vocab_size=50, d_model=24, d_kv=5, d_ff=36, num_layers=2, num_heads=4, decoder_start_token_id=0",
        ("input_ids:int64[B=2,m=7]<50", "decoder_input_ids:int64[B,n=5]<50"),
        B=3,
        m=11,
        n=6,
    ),
    hugging_face("bert", "BertModel", SMALL + "intermediate_size=36", IDS, B=3, n=11),
    hugging_face(
        "distilbert",
        "DistilBertForMaskedLM",
        "vocab_size=50, dim=24, hidden_dim=36, n_layers=2, n_heads=4",
        IDS,
        B=3,
        n=11,
    ),
    hugging_face(
        "mixtral",
        "MixtralForCausalLM",
        SMALL + "intermediate_size=36, num_key_value_heads=2, num_local_experts=3",
        IDS,
        B=3,
        n=11,
    ),
    hugging_face(
        "opt",
        "OPTForCausalLM",
        SMALL + "ffn_dim=36, word_embed_proj_dim=24, max_position_embeddings=64",
        IDS,
        B=3,
        n=11,
    ),
    hugging_face(
        "mamba",
        "MambaForCausalLM",
        "vocab_size=50, hidden_size=24, state_size=5, num_hidden_layers=2",
        IDS,
        B=3,
        n=11,
    ),
    hugging_face(
        "vit",
        "ViTModel",
        "image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=2, "
        "num_attention_heads=4, intermediate_size=36",
        ("pixel_values:float32[B=2,3,32,32]",),
        B=5,
    ),
    hugging_face(
        "swin",
        "SwinModel",
        "image_size=32, patch_size=2, embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=4",
        ("pixel_values:float32[B=2,3,32,32]",),
        B=5,
    ),
    hugging_face(
        "whisper",
        "WhisperForConditionalGeneration",
        "vocab_size=50, num_mel_bins=8, d_model=24, encoder_layers=2, decoder_layers=2, "
        "encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=36, "
        "decoder_ffn_dim=40, max_source_positions=20, max_target_positions=64, pad_token_id=0, "
        "bos_token_id=1, eos_token_id=2, decoder_start_token_id=1",
        ("input_features:float32[B=2,8,40]", "decoder_input_ids:int64[B,n=5]<50"),
        B=3,
        n=11,
    ),
    hugging_face(
        "convnext",
        "ConvNextModel",
        "hidden_sizes=[6, 8, 10, 12], depths=[1, 1, 2, 1]",
        ("pixel_values:float32[B=2,3,H=64,96]",),
        B=3,
        H=96,
    ),
    Case(
        "simple_vit",
        ("vit_pytorch.simple_vit",),
        "from {0} import SimpleViT\ndef make():\n    return SimpleViT(image_size=(32, 48), "
        "patch_size=8, num_classes=9, dim=24, depth=2, heads=3, mlp_dim=36, dim_head=10)\n",
        ("img:float32[B=2,3,32,48]",),
        {"B": 5},
    ),
    Case(
        "gcn",
        ("torch_geometric.nn.conv.gcn_conv",),
        "from torch import nn\nfrom {0} import GCNConv\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width=8):\n"
        "        super().__init__()\n"
        "        self.one, self.two = GCNConv(6, width), GCNConv(width, 3)\n"
        "    def forward(self, x, edges):\n"
        "        return self.two(self.one(x, edges).relu(), edges)\n"
        "def make():\n    return Net()\n",
        ("x:float32[N=7,6]", "edges:int64[2,E=12]<7"),
        {"N": 9, "E": 20},
    ),
)


def copied(case: Case, folder: Path) -> Path:
    """Copy a case's modules to a folder, with what they import spelt out.

    Returns:
        The file with the function that makes the model.
    """
    names = {module: f"{case.name}_{module.rpartition('.')[2]}" for module in case.modules}
    for module, name in names.items():
        source = _file_of(module).read_text(encoding="utf-8")
        text = _absolute(source, module)
        for other, new in names.items():
            text = re.sub(rf"\bfrom {re.escape(other)} import", f"from {new} import", text)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    file = folder / f"make_{case.name}.py"
    file.write_text(case.make.format(*names.values()).lstrip(), encoding="utf-8")
    return file


def _file_of(module: str) -> Path:
    """A module's file, without importing its package, which may need more than it does."""
    package, *inside = module.split(".")
    folder = Path(importlib.util.find_spec(package).origin).parent
    return folder.joinpath(*inside).with_suffix(".py")


def _absolute(source: str, module: str) -> str:
    """Source whose relative imports are spelt out."""
    package = module.split(".")[:-1]

    def spelt(found: re.Match) -> str:
        above = package[: len(package) - len(found[2]) + 1]
        return f"{found[1]}from {'.'.join([*above, *([found[3]] if found[3] else [])])} import"

    return re.sub(r"^([ \t]*)from (\.+)([\w.]*) import", spelt, source, flags=re.MULTILINE)


def findable(folder: Path) -> None:
    """Make the packages of `make models` importable, from a folder of links.

    Without torchvision, which transformers would import, and which needs operators that only
    a process that declares them has.
    """
    models = Path(sys.prefix) / "models/site-packages"
    if models.is_dir():
        for package in models.iterdir():
            if not package.name.startswith(("torchvision", "timm", "_", "bin")):
                (folder / package.name).symlink_to(package)
    sys.path.append(str(folder))
