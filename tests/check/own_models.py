"""The typed Transformer by the sizes that it is free to have."""

from shapetrace.model import ModelConfig, build


def _made(preset, **changes):
    return build(ModelConfig.from_preset(preset).replaced(changes))


def encoder(d_model: int = 64, h: int = 4, d_ff: int = 128, vocab_size: int = 512):
    return _made("tiny-encoder", **locals(), attention="explicit")


def decoder(d_model: int = 64, h: int = 4, d_ff: int = 128, vocab_size: int = 512):
    return _made("tiny-decoder", **locals(), attention="explicit")


def grouped_decoder(d_model: int = 64, h: int = 4, h_kv: int = 2, d_k: int = 24, d_ff: int = 128):
    return _made("tiny-decoder", **locals(), positions="rope", gated=True, norm="rmsnorm")


def encoder_decoder(d_model: int = 64, h: int = 4, d_ff: int = 128, vocab_size: int = 512):
    return _made("tiny-encoder-decoder", **locals(), attention="explicit")
