"""Run every variant with beartype on each argument and return, and look at each local.

A program of its own, because the import hook must come before the import. Locals are read
when a function returns: each tensor must have an annotation in its function's source, and
satisfy it together with the arguments.
"""

import ast
import inspect
import itertools
import sys
import textwrap
import types
import typing

import pytest
from jaxtyping import TypeCheckError, install_import_hook, jaxtyped

hook = install_import_hook("shapetrace.model", "beartype.beartype")

import torch  # noqa: E402 - after the hook

from shapetrace.model import ModelConfig, build  # noqa: E402
from shapetrace.model.generation import GenerationInput, Sampling, generate_tokens  # noqa: E402
from shapetrace.model.training import (  # noqa: E402
    MaskedText,
    Pairs,
    Text,
    Trainer,
    TrainingSettings,
)

seen: dict[types.CodeType, dict[str, object]] = {}
checked: set[tuple[str, str]] = set()


def annotations_of(code, namespace):
    """The annotation of each argument and local, evaluated."""
    if code not in seen:
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0]))).body[0]
        found = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.annotation is not None:
                found[node.arg] = node.annotation
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.setdefault(node.target.id, node.annotation)
        seen[code] = {
            name: eval(compile(ast.Expression(body), code.co_filename, "eval"), namespace)
            for name, body in found.items()
        }
    return seen[code]


def look(frame, event, value):
    if event == "return" and frame.f_code.co_name.isidentifier():
        declared = annotations_of(frame.f_code, frame.f_globals)
        where = frame.f_code.co_qualname
        with jaxtyped("context"):
            for name, local in frame.f_locals.items():
                if not isinstance(local, torch.Tensor):
                    continue
                assert name in declared, f"{where}: `{name}` has no annotation"
                kinds = typing.get_args(declared[name]) or (declared[name],)
                assert any(isinstance(local, kind) for kind in kinds), (
                    f"{where}: `{name}` {tuple(local.shape)} is not {declared[name]}"
                )
                checked.add((where, name))
    return look


def watch(frame, event, value):
    in_model = "/shapetrace/model/" in frame.f_code.co_filename
    made = frame.f_code.co_name in ("__init__", "__getattr__", "<module>", "build", "frame")
    return look if event == "call" and in_model and not made else None


def variants():
    heads = ({}, {"h_kv": 2}, {"h_kv": 1}, {"d_k": 6}, {"h_kv": 2, "d_k": 6})
    kinds = ("encoder", "decoder", "encoder-decoder")
    for kind, attention, head in itertools.product(kinds, ("explicit", "fused"), heads):
        yield {"kind": kind, "attention": attention, **head}
    for positions in ("sinusoidal", "learned", "rope", "none"):
        yield {"kind": "encoder-decoder", "positions": positions, "norm_position": "post"}
    for kind in kinds:
        yield {"kind": kind, "norm": "rmsnorm", "gated": True, "dropout": 0.1, "biases": "none"}
        yield {"kind": kind, "attention": "explicit", "dropout": 0.1, "scale_embedding": True}
    yield {"kind": "decoder", "window": 3, "positions": "rope", "attention": "explicit"}
    yield {"kind": "encoder", "token_types": 2, "embedding_norm": True, "pooler": True}
    yield {"kind": "encoder", "token_types": 2, "head": "mlm", "norm_position": "post"}


def run(values):
    config = ModelConfig(layers=1, d_model=32, h=4, vocab_size=50, **values)
    model = build(config)
    ids, target = torch.randint(0, 50, (2, 9)), torch.randint(0, 50, (2, 7))
    mask, target_mask = torch.ones(2, 9).bool(), torch.ones(2, 7).bool()
    sys.settrace(watch)
    if config.kind == "encoder-decoder":
        model(ids, target)
        model(ids, target, mask, target_mask)
    else:
        x = model(ids)
        model(ids, mask)
        if config.token_types:
            model(ids, mask, torch.ones_like(ids))
        if config.pooler:
            model.pooled(x)
    if config.kind != "encoder":
        write(model)
    if config.head != "none":
        learn(model)
    sys.settrace(None)


def write(model):
    model.eval()
    prompts = [[1, 2, 3, 4, 5], [6, 7]]
    drawn = Sampling(temperature=0.9, top_k=20, top_p=0.9)
    for cache, sampling in ((True, Sampling()), (False, drawn), (True, drawn)):
        request = GenerationInput(prompts=prompts, max_new_tokens=3, sampling=sampling, cache=cache)
        generate_tokens(model, request)
    generate_tokens(model, GenerationInput(prompts=[[1]], max_new_tokens=3))


def learn(model):
    rows = [[5, 6, 7], [8, 9, 10, 11]]
    data = {
        "decoder": lambda: Text([*range(50)] * 2),
        "encoder": lambda: MaskedText([*range(50)] * 2, 3, 50),
        "encoder-decoder": lambda: Pairs(rows, rows, 1, 2),
    }[model.config.kind]()
    trainer = Trainer(model, data, TrainingSettings(batch=2, seq=8))
    with torch.enable_grad():
        trainer.step()
    trainer.evaluate(1)


if __name__ == "__main__":
    with hook, torch.no_grad():
        for values in variants():
            run(values)
        wrong = build(ModelConfig(kind="decoder", layers=1, d_model=32, h=4, vocab_size=50))
        # Floats are no ids: the hook must be at work.
        with pytest.raises(TypeCheckError, match="token_ids"):
            wrong(torch.zeros(2, 3))
    print(len(checked), "tensors")
    assert {name for _, name in checked} >= {
        *("token_ids", "x", "q", "k", "v", "scores", "weights"),
        *("head_output", "concat", "ffn_hidden", "logits"),
        *("new_k", "new_v", "heads", "visible", "next_ids", "loss", "labels", "up_to_here"),
    }
