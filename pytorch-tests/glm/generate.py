"""A tiny GLM-4, whose q, k and v are one matrix and one bias, and the conversion by transformers' own script.

Run with transformers 4.46, whose models/glm/convert_glm_weights_to_hf.py this is held against.

glm-torchX.pt   the names and the fused matrices of THUDM's original checkpoint; grouped-query attention, biases
expected.json   original: its tensors; converted: what transformers' script makes of them
glm.rules       written by hand: the same conversion as rules, for `wick convert --rules`
glm-back.rules  written by hand: the way back
"""
import hashlib, json, pathlib, sys

import torch

try:
    from transformers import GlmConfig
    from transformers.models.glm.convert_glm_weights_to_hf import convert_state_dict
except ImportError as err:
    sys.exit(print(f"glm: nothing is made without transformers 4.46: {err}", file=sys.stderr))

HERE = pathlib.Path(__file__).parent
DIM, LAYERS, HEADS, KV, HEAD, FFN, VOCAB = 16, 2, 4, 2, 4, 24, 32


def original():
    torch.manual_seed(9)
    w = lambda *shape: torch.randn(*shape).to(torch.bfloat16)
    fused = (HEADS + 2 * KV) * HEAD
    sd = {"transformer.embedding.word_embeddings.weight": w(VOCAB, DIM), "transformer.rotary_pos_emb.inv_freq": w(HEAD // 2)}
    for i in range(LAYERS):
        p = f"transformer.encoder.layers.{i}."
        sd.update({p + "input_layernorm.weight": w(DIM), p + "self_attention.query_key_value.weight": w(fused, DIM),
                   p + "self_attention.query_key_value.bias": w(fused), p + "self_attention.dense.weight": w(DIM, HEADS * HEAD),
                   p + "post_attention_layernorm.weight": w(DIM), p + "mlp.dense_h_to_4h.weight": w(2 * FFN, DIM), p + "mlp.dense_4h_to_h.weight": w(DIM, FFN)})
    sd.update({"transformer.encoder.final_layernorm.weight": w(DIM), "transformer.output_layer.weight": w(VOCAB, DIM)})
    return sd


def rows(tensors):
    digest = lambda t: hashlib.sha256(t.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
    return {k: {"dtype": str(v.dtype).split(".")[1], "shape": list(v.shape), "sha256": digest(v)} for k, v in sorted(tensors.items())}


sd = original()
config = GlmConfig(hidden_size=DIM, num_attention_heads=HEADS, num_key_value_heads=KV, head_dim=HEAD, intermediate_size=FFN, num_hidden_layers=LAYERS, vocab_size=VOCAB)
name = f"glm-torch{'.'.join(torch.__version__.split('.')[:2])}.pt"
torch.save(sd, HERE / name)
text = json.dumps({"file": name, "original": rows(sd), "converted": rows(convert_state_dict(dict(sd), config))}, indent=1)
(HERE / "expected.json").write_text(text + "\n")
