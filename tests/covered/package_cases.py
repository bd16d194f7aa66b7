"""Models of other packages, as tiny as they come."""

from __future__ import annotations

import torch

from tests.covered.study import Case

IMAGE = ("0:float32[B=2,3,H=32,W=32]",)


def segmentation():
    from torchvision.models.segmentation import fcn_resnet50  # noqa: PLC0415 - may be absent

    return fcn_resnet50(weights=None, weights_backbone=None, num_classes=4, aux_loss=True)


def timm(model: str, **options: object):
    def make():
        from timm import create_model  # noqa: PLC0415 - may be absent

        return create_model(model, **options)

    return make


def images(batch: int = 2, size: int = 32):
    return lambda: (torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0)),)


def openai_whisper():
    from whisper.model import ModelDimensions, Whisper  # noqa: PLC0415 - may be absent

    model = Whisper(ModelDimensions(8, 20, 24, 4, 2, 50, 12, 24, 3, 2))
    torch.nn.init.normal_(model.decoder.positional_embedding)  # left as memory had it
    return model


def speech():
    generator = torch.Generator().manual_seed(0)
    mel = torch.randn(2, 8, 40, generator=generator)
    return mel, torch.randint(50, (2, 5), generator=generator)


def x_transformer():
    from x_transformers import Decoder, TransformerWrapper  # noqa: PLC0415 - may be absent

    layers = Decoder(dim=24, depth=2, heads=3, attn_dim_head=8, rotary_pos_emb=True)
    return TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers)


def tokens():
    return (torch.randint(50, (2, 12), generator=torch.Generator().manual_seed(0)),)


def gcn():
    from torch_geometric.nn import GCN  # noqa: PLC0415 - may be absent

    return GCN(in_channels=6, hidden_channels=10, num_layers=2, out_channels=4)


def graph():
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    return torch.randn(5, 6, generator=torch.Generator().manual_seed(0)), edges


PACKAGES = [
    Case(
        "timm vit",
        timm(
            "vit_tiny_patch16_224",
            img_size=32,
            patch_size=8,
            embed_dim=24,
            depth=2,
            num_heads=3,
            num_classes=10,
        ),
        images(),
        package="timm",
        dims={"B": 2},
        facts={("VisionTransformer.forward", "x"): "B num_classes"},
    ),
    Case(
        "timm swin",
        timm(
            "swin_tiny_patch4_window7_224",
            img_size=32,
            window_size=4,
            embed_dim=12,
            depths=(2, 2),
            num_heads=(2, 3),
            num_classes=10,
        ),
        images(),
        package="timm",
        dims={"B": 2},
        facts={("SwinTransformer.forward", "x"): "B num_classes"},
    ),
    Case(
        "timm convnext",
        timm("convnext_tiny", depths=(1, 1, 1, 1), dims=(8, 12, 16, 20), num_classes=10),
        images(),
        package="timm",
        dims={"B": 2, "C": 3, "H": 32, "W": 32},
        facts={("ConvNeXt.forward", "x"): "B num_classes"},
    ),
    Case(
        "torchvision resnet",
        "torchvision.models:resnet18",
        ("0:float32[B=2,3,H=64,W=64]",),
        ("num_classes=10",),
        package="torchvision",
        facts={("ResNet.forward", "x"): "B 3 H W", ("ResNet._forward_impl", "x"): "B num_classes"},
    ),
    Case(
        "torchvision fcn (dict)",
        segmentation,
        images(size=64),
        package="torchvision",
        dims={"B": 2, "C": 3, "H": 64, "W": 64},
        facts={("_SimpleSegmentationModel.forward", "x"): "B 4 H W"},
    ),
    Case(
        "openai whisper",
        openai_whisper,
        speech,
        package="whisper",
        dims={"B": 2, "n": 5},
        facts={("Whisper.forward", "tokens"): "B n"},
    ),
    Case(
        "vit-pytorch",
        "vit_pytorch.vit:ViT",
        ("0:float32[B=2,3,H=32,W=32]",),
        (
            "image_size=32",
            "patch_size=8",
            "num_classes=10",
            "dim=24",
            "depth=2",
            "heads=3",
            "dim_head=10",
            "mlp_dim=40",
        ),
        package="vit_pytorch",
        facts={
            ("ViT.forward", "return"): "B num_classes",
        },
    ),
    Case(
        "x-transformers",
        x_transformer,
        tokens,
        package="x_transformers",
        dims={"B": 2, "n": 12},
        facts={("TransformerWrapper.forward", "x"): "B n"},
    ),
    Case(
        "torch-geometric gcn",
        gcn,
        graph,
        package="torch_geometric",
        dims={"nodes": 5, "edges": 6},
        facts={("GCNConv.forward", "x"): "nodes hidden_channels"},
    ),
    Case(
        "smp unet",
        "segmentation_models_pytorch:Unet",
        ("0:float32[B=2,3,H=64,W=64]",),
        ("encoder_name=resnet18", "encoder_weights=None", "classes=3"),
        package="segmentation_models_pytorch",
    ),
]
