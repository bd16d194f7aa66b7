"""Transformer families of transformers, as tiny as they come.

Sizes are such that every name has one of its own where the family allows it.
"""

from __future__ import annotations

from tests.covered.study import Case

IDS = ("input_ids:int64[B=2,n=12]<50",)
PAIRS = ("input_ids:int64[B=2,m=7]<50", "decoder_input_ids:int64[B,n=5]<50")
SPECIAL = ("vocab_size=50", "eos_token_id=0", "pad_token_id=0")
START = ("bos_token_id=0",)


def mixtral_flops(tokens=24, width=32, heads=24, shared=12, hidden=40, experts=5, chosen=3):
    """Closed form, since FlopCounterMode has no grouped product: 2 layers, batch 2, n 12."""
    attention = 2 * tokens * width * (2 * heads + 2 * shared) + 2 * 2 * tokens * 12 * heads
    routed = 2 * tokens * width * experts + 2 * tokens * chosen * 3 * width * hidden
    return 2 * (attention + routed) + 2 * tokens * width * 50


def family(name, model, inputs, settings, facts, own=None):
    own = own or f"models/{name}/modeling_{name}.py"
    target = f"transformers:{model}"
    special = () if name in ("vit", "clip") else SPECIAL if name == "t5" else SPECIAL + START
    # The experts' forward is replaced by a function of another file: a scope of that name.
    hidden = frozenset({"MixtralExperts"} if name == "mixtral" else ())
    settings = (*settings, *special)
    flops = mixtral_flops() if name == "mixtral" else None
    return Case(name, target, inputs, settings, "transformers", facts, flops, own, hidden=hidden)


FAMILIES = [
    family(
        "gpt2",
        "GPT2LMHeadModel",
        IDS,
        ("n_embd=24", "n_layer=2", "n_head=3", "n_positions=16"),
        {
            ("GPT2Attention.forward", "query_states"): "B n_head n head_dim",
            ("GPT2MLP.forward", "hidden_states"): "B n 4*n_embd",
            ("GPT2LMHeadModel.forward", "logits"): "B n vocab_size",
        },
    ),
    family(
        "bert",
        "BertForMaskedLM",
        IDS,
        (
            "hidden_size=24",
            "num_hidden_layers=2",
            "num_attention_heads=3",
            "intermediate_size=40",
            "max_position_embeddings=16",
        ),
        {
            ("BertIntermediate.forward", "hidden_states"): "B n intermediate_size",
            ("BertForMaskedLM.forward", "prediction_scores"): "B n vocab_size",
        },
    ),
    family(
        "llama",
        "LlamaForCausalLM",
        IDS,
        (
            "hidden_size=32",
            "num_hidden_layers=2",
            "num_attention_heads=4",
            "num_key_value_heads=2",
            "head_dim=6",
            "intermediate_size=40",
            "max_position_embeddings=16",
        ),
        {
            ("LlamaAttention.forward", "query_states"): "B num_attention_heads n head_dim",
            ("LlamaAttention.forward", "key_states"): "B num_key_value_heads n head_dim",
            ("LlamaForCausalLM.forward", "logits"): "B n vocab_size",
        },
    ),
    family(
        "mixtral",
        "MixtralForCausalLM",
        IDS,
        (
            "hidden_size=32",
            "num_hidden_layers=2",
            "num_attention_heads=4",
            "num_key_value_heads=2",
            "head_dim=6",
            "intermediate_size=40",
            "max_position_embeddings=16",
            "num_local_experts=5",
            "num_experts_per_tok=3",
        ),
        {
            ("MixtralAttention.forward", "key_states"): "B num_key_value_heads n head_dim",
            ("MixtralTopKRouter.forward", "router_logits"): "B*n num_local_experts",
        },
    ),
    family(
        "t5",
        "T5ForConditionalGeneration",
        PAIRS,
        (
            "d_model=24",
            "d_kv=32",
            "d_ff=40",
            "num_layers=2",
            "num_heads=3",
            "relative_attention_num_buckets=32",
        ),
        {
            ("T5Attention.forward", "query_states"): "B num_heads n d_kv",
            ("T5ForConditionalGeneration.forward", "lm_logits"): "B n vocab_size",
        },
    ),
    family(
        "bart",
        "BartForConditionalGeneration",
        PAIRS,
        (
            "d_model=24",
            "encoder_ffn_dim=40",
            "decoder_ffn_dim=44",
            "encoder_layers=2",
            "decoder_layers=2",
            "encoder_attention_heads=4",
            "decoder_attention_heads=3",
            "max_position_embeddings=20",
        ),
        {("BartForConditionalGeneration.forward", "lm_logits"): "B n vocab_size"},
    ),
    family(
        "albert",
        "AlbertForMaskedLM",
        IDS,
        (
            "hidden_size=24",
            "embedding_size=10",
            "num_hidden_layers=3",
            "num_attention_heads=4",
            "intermediate_size=40",
            "max_position_embeddings=16",
        ),
        {
            ("AlbertLayer.ff_chunk", "ffn_output"): "B n intermediate_size",
            ("AlbertEmbeddings.forward", "embeddings"): "B n embedding_size",
        },
    ),
    family(
        "vit",
        "ViTForImageClassification",
        ("pixel_values:float32[B=2,3,H=16,W=16]",),
        (
            "hidden_size=24",
            "num_hidden_layers=2",
            "num_attention_heads=4",
            "intermediate_size=40",
            "image_size=16",
            "patch_size=4",
        ),
        {
            (
                "ViTEmbeddings.forward",
                "embeddings",
            ): "B (H//patch_size)*(W//patch_size)+1 hidden_size",
        },
    ),
    family(
        "clip",
        "CLIPModel",
        ("input_ids:int64[B=2,n=6]<50", "pixel_values:float32[B,3,H=16,W=16]"),
        (
            "projection_dim=12",
            "text_config.hidden_size=24",
            "text_config.num_hidden_layers=2",
            "text_config.num_attention_heads=4",
            "text_config.intermediate_size=40",
            "text_config.vocab_size=50",
            "text_config.max_position_embeddings=16",
            "text_config.bos_token_id=0",
            "text_config.eos_token_id=1",
            "vision_config.hidden_size=20",
            "vision_config.num_hidden_layers=2",
            "vision_config.num_attention_heads=2",
            "vision_config.intermediate_size=36",
            "vision_config.image_size=16",
            "vision_config.patch_size=4",
        ),
        {
            ("CLIPModel.forward", "text_embeds"): "B projection_dim",
            (
                "CLIPVisionEmbeddings.forward",
                "embeddings",
            ): "B num_positions vision_config_hidden_size",
        },
    ),
    family(
        "whisper",
        "WhisperForConditionalGeneration",
        ("input_features:float32[B=2,mel=8,t=40]", "decoder_input_ids:int64[B,n=5]<50"),
        (
            "d_model=24",
            "encoder_ffn_dim=40",
            "decoder_ffn_dim=44",
            "encoder_layers=2",
            "decoder_layers=2",
            "encoder_attention_heads=4",
            "decoder_attention_heads=3",
            "num_mel_bins=8",
            "max_source_positions=20",
            "max_target_positions=12",
            "decoder_start_token_id=1",
        ),
        {
            ("WhisperEncoder.forward", "input_features"): "B mel t",
            ("WhisperForConditionalGeneration.forward", "lm_logits"): "B n vocab_size",
        },
    ),
    family(
        "mamba",
        "MambaForCausalLM",
        IDS,
        ("hidden_size=24", "num_hidden_layers=2", "state_size=5", "time_step_rank=3"),
        {("MambaForCausalLM.forward", "logits"): "B n vocab_size"},
    ),
]
