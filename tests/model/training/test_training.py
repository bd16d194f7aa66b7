"""Training learns, agrees with transformers and torch, and goes on where it stopped."""

import dataclasses
import json
import math
import os
import signal
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from shapetrace.model import ModelConfig, ModelError, build, from_pretrained
from shapetrace.model.training import (
    MaskedText,
    Pairs,
    Text,
    Trainer,
    TrainingSettings,
    load_state,
    mean_loss,
    save_checkpoint,
    take_steps,
)
from shapetrace.model.training.checkpoint import check_checkpoint_place
from shapetrace.model.training.data import IGNORED, TrainingBatch
from shapetrace.model.training.settings import TrainingOptions, learning_rate

SIZES = {"layers": 2, "d_model": 32, "h": 4, "vocab_size": 24, "max_positions": 64}


def model_of(kind, **values):
    torch.manual_seed(0)
    head = {"head": "mlm"} if kind == "encoder" else {}
    return build(ModelConfig(kind=kind, positions="learned", **head, **{**SIZES, **values}))


def stream(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, 24, (count,), generator=generator).tolist()


def data_of(kind):
    if kind == "encoder-decoder":
        rows = [stream(6, seed) for seed in range(60)]
        return Pairs(rows, rows, 1, 2)
    ids = stream(400)
    return Text(ids) if kind == "decoder" else MaskedText(ids, 3, 24)


KINDS = ("decoder", "encoder", "encoder-decoder")


@pytest.mark.parametrize("kind", KINDS)
def test_loss_at_the_start_is_that_of_a_guess(kind):
    trainer = Trainer(model_of(kind), data_of(kind), TrainingSettings(seq=16, batch=8))
    assert trainer.evaluate() == pytest.approx(math.log(24), abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_receives_a_gradient(kind):
    model = model_of(kind, init_std=0.2)
    trainer = Trainer(model, data_of(kind), TrainingSettings(seq=16, batch=8))
    (batch,) = trainer.batches()
    mean_loss(model, batch).backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert not missing
    # A key's bias shifts all scores of a query alike, which softmax does not see.
    for name, parameter in model.named_parameters():
        if not name.endswith(".bk"):
            assert parameter.grad.abs().sum() > 0, name


def test_loss_and_gradients_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(config)
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path).train()
    ids = torch.randint(0, 50, (2, 12))
    their_loss = theirs(ids, labels=ids).loss
    our_loss = mean_loss(ours, TrainingBatch(ids[:, :-1], ids[:, 1:]))
    torch.testing.assert_close(our_loss, their_loss, atol=1e-5, rtol=0)
    their_loss.backward()
    our_loss.backward()
    attention = ours.blocks[1].attention
    qkv = torch.cat([attention.wq.grad, attention.wk.grad, attention.wv.grad])
    theirs_qkv = theirs.transformer.h[1].attn.c_attn.weight.grad.t()
    torch.testing.assert_close(qkv, theirs_qkv, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        ours.embedding.token.weight.grad, theirs.transformer.wte.weight.grad, atol=1e-5, rtol=1e-4
    )


def test_gradients_are_those_of_torch_s_own_layer():
    config = ModelConfig(
        kind="encoder", layers=1, d_model=16, h=2, d_ff=32, vocab_size=11, positions="none",
        norm_position="post", activation="relu", head="none", init_std=0.3,
    )  # fmt: skip
    torch.manual_seed(0)
    ours = build(config)
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    block = ours.blocks[0]
    a, f = block.attention, block.feedforward
    pairs = (
        (theirs.self_attn.in_proj_weight, torch.cat([a.wq, a.wk, a.wv])),
        (theirs.self_attn.in_proj_bias, torch.cat([a.bq, a.bk, a.bv])),
        (theirs.self_attn.out_proj.weight, a.output.wo),
        (theirs.self_attn.out_proj.bias, a.output.bo),
        (theirs.linear1.weight, f.w_up),
        (theirs.linear1.bias, f.b_up),
        (theirs.linear2.weight, f.w_down),
        (theirs.linear2.bias, f.b_down),
    )
    with torch.no_grad():
        for theirs_p, ours_p in pairs:
            theirs_p.copy_(ours_p)
    ids = torch.randint(0, 11, (2, 7))
    weight = torch.randn(2, 7, 16)
    (ours(ids) * weight).sum().backward()
    x = ours.embedding.token.weight.detach()[ids].requires_grad_()
    (theirs(x) * weight).sum().backward()
    torch.testing.assert_close(f.w_up.grad, theirs.linear1.weight.grad, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        torch.cat([a.wq.grad, a.wk.grad, a.wv.grad]),
        theirs.self_attn.in_proj_weight.grad,
        atol=1e-5,
        rtol=1e-4,
    )


@torch.no_grad()
def test_padding_is_not_learned_from():
    model = model_of("encoder-decoder").eval()
    short = Pairs([stream(3)], [stream(4, 1)], 1, 2).batch(1, 16, torch.Generator())
    long = Pairs([stream(9)], [stream(11, 1)], 1, 2).batch(1, 16, torch.Generator())
    both = Pairs([stream(3), stream(9)], [stream(4, 1), stream(11, 1)], 1, 2, held_out=0.0)
    batch = both.batch(8, 16, torch.Generator().manual_seed(1))
    lengths = (batch.labels != IGNORED).sum(-1)
    losses = [float(mean_loss(model, one)) for one in (short, long)]
    wanted = sum(losses[int(n > 5)] * int(n) for n in lengths) / int(lengths.sum())
    assert float(mean_loss(model, batch)) == pytest.approx(wanted, abs=1e-5)
    assert set(lengths.tolist()) == {5, 12}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_task_is_learned(kind):
    """Each kind learns to say again what it has read: a period of the text, or the source."""
    how = TrainingSettings(steps=250, batch=16, seq=24, lr=5e-3, warmup=10, weight_decay=0.0)
    if kind == "encoder-decoder":
        rows = [stream(4, seed) for seed in range(400)]
        data, limit = Pairs(rows, rows, 1, 2), 0.1
    else:
        ids = stream(6) * 70
        data, limit = (Text(ids), 0.1) if kind == "decoder" else (MaskedText(ids, 3, 24), 0.15)
    model = model_of(kind, init_std=0.1)
    losses = take_steps(Trainer(model, data, how))
    best = min(losses[-20:])
    # Before the first period is over, a decoder cannot know what comes.
    assert best < (limit if kind != "decoder" else math.log(20) * 6 / 24 / 4 + limit), best


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_has_the_losses_of_an_uninterrupted_one(tmp_path, kind):
    how = TrainingSettings(steps=8, batch=4, seq=12, warmup=2, evaluate_every=3)
    whole = take_steps(Trainer(model_of(kind, dropout=0.2), data_of(kind), how))
    first = Trainer(model_of(kind, dropout=0.2), data_of(kind), how)
    torch.manual_seed(0)
    losses = [first.step() for _ in range(3)]
    save_checkpoint(tmp_path / "c", first.model, record={"step": 3}, state=first.state())
    torch.manual_seed(99)  # what else ran meanwhile does not matter
    _, state = load_state(tmp_path / "c")
    second = Trainer(from_pretrained(tmp_path / "c").train(), data_of(kind), how)
    second.restore(state)
    losses += take_steps(second)
    assert losses == pytest.approx(whole, abs=1e-6)


def test_accumulated_passes_make_the_step_of_one_large_batch():
    class Fixed:
        def batch(self, B, n, generator, *, held_out=False):
            ids = torch.tensor([stream(13, 1 + (generator.initial_seed() + i)) for i in range(B)])
            return TrainingBatch(ids[:, :-1], ids[:, 1:])

    small = Trainer(model_of("decoder"), Fixed(), TrainingSettings(seq=12, batch=1, accumulate=2))
    large = Trainer(model_of("decoder"), Fixed(), TrainingSettings(seq=12, batch=2))
    assert small.step() == pytest.approx(large.step(), abs=1e-5)
    for a, b in zip(small.model.parameters(), large.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_bf16_runs_and_learns():
    how = TrainingSettings(steps=15, batch=4, seq=12, bf16=True, lr=5e-3)
    losses = take_steps(Trainer(model_of("decoder", attention="explicit"), data_of("decoder"), how))
    assert losses[-1] < losses[0]


def test_learning_rate_rises_then_falls_as_a_cosine():
    how = TrainingSettings(steps=110, warmup=10, lr=1.0, last_lr=0.1)
    rates = [learning_rate(how, step) for step in range(111)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1.0
    assert rates[60] == pytest.approx(0.55)  # half-way down from 1 to 0.1
    assert rates[110] == pytest.approx(0.1)
    assert sorted(rates[10:], reverse=True) == rates[10:]


def test_global_state_is_left_alone():
    trainer = Trainer(model_of("decoder"), data_of("decoder"), TrainingSettings(steps=2, seq=8))
    state, handler = torch.get_rng_state(), signal.getsignal(signal.SIGINT)
    take_steps(trainer)
    assert signal.getsignal(signal.SIGINT) is handler
    assert torch.equal(torch.get_rng_state(), state)


def test_ctrl_c_ends_the_step_and_saves():
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    trainer = Trainer(model_of("decoder"), data_of("decoder"), TrainingSettings(steps=50, seq=8))
    saved = []

    def on_step(progress):
        if progress.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        take_steps(trainer, save=lambda: saved.append(trainer.step_number), on_step=on_step)
    signal.signal(signal.SIGINT, handler)
    assert saved == [3]


def test_a_checkpoint_is_whole_or_the_old_one(tmp_path, monkeypatch):
    model = model_of("decoder")
    save_checkpoint(tmp_path / "c", model, files={"tokenizer.json": b"{}"}, record={"step": 1})
    before = {f.name: f.read_bytes() for f in (tmp_path / "c").iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shapetrace.model.training.checkpoint.save_file", full)
    with pytest.raises(ModelError, match="No space left on device; what was saved before"):
        save_checkpoint(tmp_path / "c", model, record={"step": 2})
    assert {f.name: f.read_bytes() for f in (tmp_path / "c").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_a_crash_between_two_checkpoints_is_mended(tmp_path):
    model = model_of("decoder")
    save_checkpoint(tmp_path / "c", model, record={"step": 1}, state={"step": 1, "optimizer": {}})
    (tmp_path / "c").rename(tmp_path / ".c.old")
    record, _ = load_state(tmp_path / "c")
    assert record == {"step": 1}


def test_a_saved_model_is_read_again(tmp_path):
    model = model_of("encoder-decoder")
    save_checkpoint(tmp_path / "c", model)
    again = from_pretrained(tmp_path / "c")
    assert again.config == model.config
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_places_that_are_no_checkpoint_are_refused(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.jpg").write_bytes(b"x")
    with pytest.raises(ModelError, match="no checkpoint; choose another directory"):
        save_checkpoint(tmp_path / "photos", model_of("decoder"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="is a file; a checkpoint is a directory"):
        save_checkpoint(tmp_path / "file", model_of("decoder"))
    with pytest.raises(ModelError, match="it has no config"):
        load_state(tmp_path / "photos")


def test_masking_hides_what_the_paper_says():
    data = MaskedText(stream(4000) * 3, 3, 24)
    batch = data.batch(64, 128, torch.Generator().manual_seed(0))
    chosen = batch.labels != IGNORED
    assert chosen.float().mean() == pytest.approx(0.15, abs=0.01)
    hidden = (batch.token_ids == 3) & chosen
    kept = (batch.token_ids == batch.labels) & chosen
    assert hidden.sum() / chosen.sum() == pytest.approx(0.8, abs=0.04)
    assert kept.sum() / chosen.sum() == pytest.approx(0.1 + 0.1 / 24, abs=0.03)
    assert chosen.any(-1).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TrainingSettings(steps=0), "`steps` is 0"),
        (lambda: TrainingSettings(lr=float("nan")), "`lr` is nan"),
        (lambda: TrainingSettings(mask_rate=0.0), "`mask_rate` is 0.0"),
        (lambda: TrainingSettings(warmup=-1), "`warmup` is -1; it must not be negative"),
        (lambda: TrainingSettings(weight_decay=float("nan")), "`weight_decay` is nan"),
        (lambda: TrainingSettings(seed=1 << 64), "seed 18446744073709551616: give a whole number"),
        (lambda: Text([1, 2, 3]).check(8), "3 tokens to train on, and a sequence needs 9"),
        (lambda: Pairs([[1]], [], 1, 2), "1 sources and 0 targets do not line up"),
        (lambda: Pairs([], [], 1, 2), "no pairs"),
        (
            lambda: Trainer(model_of("decoder"), data_of("decoder"), TrainingSettings(seq=65)),
            "65 tokens, but the model has 64 positions",
        ),
        (
            lambda: Trainer(
                build(
                    ModelConfig.from_preset("bert-base").replaced({"layers": "1"}), device="meta"
                ),
                data_of("decoder"),
                TrainingSettings(seq=8),
            ),
            "no head to train",
        ),
    ],
)
def test_bad_input_is_one_clear_line(make, words):
    with pytest.raises(ModelError, match=words):
        make()


def test_cross_entropy_by_hand():
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[1, IGNORED, 2], [0, 4, IGNORED]])

    class Fixed(torch.nn.Module):
        def forward(self, token_ids, mask):
            return logits

    chosen = logits.log_softmax(-1)
    wanted = -(chosen[0, 0, 1] + chosen[0, 2, 2] + chosen[1, 0, 0] + chosen[1, 1, 4]) / 4
    got = mean_loss(Fixed(), TrainingBatch(labels, labels))
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(got, cross_entropy(logits.flatten(0, 1), labels.flatten()))


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_checkpoint_that_could_not_be_put_in_place_leaves_the_old_one(
    tmp_path, monkeypatch, error
):
    model = model_of("decoder")
    save_checkpoint(tmp_path / "c", model, record={"step": 1})
    rename = Path.rename

    def second_fails(self, target):
        if self.name == ".c.new":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises((ModelError, KeyboardInterrupt)):
        save_checkpoint(tmp_path / "c", model, record={"step": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    assert json.loads((tmp_path / "c" / "training.json").read_text()) == {"step": 1}


@pytest.mark.parametrize(
    "state", [[1], {"step": 1}, {"step": "x", "optimizer": {}}, {"step": -4, "optimizer": {}}]
)
def test_a_state_of_another_kind_is_refused(tmp_path, state):
    save_checkpoint(tmp_path / "c", model_of("decoder"), record={}, state={})
    torch.save(state, tmp_path / "c" / "training.pt")
    with pytest.raises(ModelError, match="is no state of a training"):
        load_state(tmp_path / "c")


@pytest.mark.parametrize(
    "record", [{"training": 3}, {"losses": None}, {"losses": ["x"]}, {"held_out": [1]}]
)
def test_a_record_of_another_kind_is_refused(tmp_path, record):
    state = {"step": 1, "optimizer": {}}
    save_checkpoint(tmp_path / "c", model_of("decoder"), record=record, state=state)
    with pytest.raises(ModelError, match="is no record of a training"):
        load_state(tmp_path / "c")


def test_an_optimizer_of_another_model_is_refused():
    trainer = Trainer(model_of("decoder"), data_of("decoder"), TrainingSettings(seq=8))
    with pytest.raises(ModelError, match="damaged, or of another model"):
        trainer.restore({"step": 3, "optimizer": {}})
    assert trainer.step_number == 0


def test_a_training_that_diverges_says_so_and_saves_nothing():
    model = model_of("decoder")
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    trainer = Trainer(model, data_of("decoder"), TrainingSettings(seq=8, steps=2))
    with pytest.raises(ModelError, match="the loss of step 1 is nan: the training diverged"):
        take_steps(trainer, save=lambda: pytest.fail("it saved"))


def test_a_place_that_cannot_be_written_to_is_refused_before_training():
    if not Path("/proc/self").exists():
        pytest.skip("no /proc here, where nobody can make a directory")
    with pytest.raises(ModelError, match="/proc cannot be written to"):
        check_checkpoint_place("/proc/no-such/place")


def test_the_options_of_train_are_the_fields_of_its_settings():
    settings = {field.name: field.type for field in dataclasses.fields(TrainingSettings)}
    options = {name: hint.__forward_arg__ for name, hint in TrainingOptions.__annotations__.items()}
    assert options == settings
