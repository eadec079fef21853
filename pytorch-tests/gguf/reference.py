"""What a GGUF file of a Llama must hold, said by the gguf package of PyPI, torch and the tokenizers of Hugging Face."""
import hashlib, json, pathlib, tempfile

import gguf
import numpy as np
import torch
from gguf.quants import quantize

TYPES = {"float32": gguf.GGMLQuantizationType.F32, "float16": gguf.GGMLQuantizationType.F16,
         "bfloat16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPES = {"float32": gguf.LlamaFileType.ALL_F32, "float16": gguf.LlamaFileType.MOSTLY_F16,
              "bfloat16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
ROW = {"wo": 1, "w2": 1}


def joined(folder):
    """The state dict that Meta's shards in a folder were cut from, under Meta's names."""
    params = json.loads((folder / "params.json").read_text())
    shards = [torch.load(f, weights_only=True) for f in sorted(folder.glob("consolidated.*.pth"))]
    out = {}
    for name, first in shards[0].items():
        kind = name.split(".")[-2]
        if len(shards) == 1 or first.dim() == 1:
            out[name] = first
        elif kind == "tok_embeddings":
            out[name] = torch.cat([s[name] for s in shards], 0 if first.shape[1] == params["dim"] else 1)
        else:
            out[name] = torch.cat([s[name] for s in shards], ROW.get(kind, 0))
    if all(s["output.weight"].data_ptr() == s["tok_embeddings.weight"].data_ptr() for s in shards):
        del out["output.weight"]
    out.pop("rope.freqs", None)
    return params, out


def tensors(folder, dtype):
    """name → (type, shape, bytes); Meta's order of q and k is llama.cpp's."""
    params, sd = joined(folder)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, params["n_layers"])
    out = {}
    for name, t in sd.items():
        new = names.get_name(name, try_suffixes=(".weight",))
        qtype = TYPES[dtype] if dtype else TYPES[str(t.dtype).removeprefix("torch.")]
        if t.dim() == 1:
            qtype = gguf.GGMLQuantizationType.F32
        elif qtype == gguf.GGMLQuantizationType.Q8_0 and t.shape[-1] % 32:
            qtype = gguf.GGMLQuantizationType.F16
        data = quantize(t.float().contiguous().numpy(), qtype)
        out[new] = (qtype.name, list(t.shape), np.ascontiguousarray(data).tobytes())
    return out


def header(params, name, rows, ffn, dtype, context, vocabulary=None, special=None, add_space=None):
    """The key-value pairs, by way of the package's own writer and reader: key → value."""
    with tempfile.TemporaryDirectory() as d:
        path = f"{d}/header.gguf"
        w = gguf.GGUFWriter(path, "llama")
        w.add_type("model")
        w.add_name(name)
        w.add_file_type(FILE_TYPES[dtype])
        w.add_quantization_version(gguf.GGML_QUANT_VERSION)
        w.add_block_count(params["n_layers"])
        w.add_context_length(context)
        w.add_embedding_length(params["dim"])
        w.add_feed_forward_length(ffn)
        w.add_head_count(params["n_heads"])
        w.add_head_count_kv(params.get("n_kv_heads") or params["n_heads"])
        w.add_layer_norm_rms_eps(params["norm_eps"])
        w.add_rope_freq_base(params.get("rope_theta", 10000.0))
        w.add_rope_dimension_count(params["dim"] // params["n_heads"])
        w.add_vocab_size(rows)
        if vocabulary:
            kind, pre, tokens = vocabulary
            w.add_tokenizer_model(kind)
            w.add_tokenizer_pre(pre)
            w.add_token_list([t for t, _, _ in tokens])
            if kind == "llama":
                w.add_token_scores([s for _, s, _ in tokens])
            w.add_token_types([int(k) for _, _, k in tokens])
        if special:
            special.add_to_gguf(w, quiet=True)
        if add_space is not None:
            w.add_add_space_prefix(add_space)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        return fields(gguf.GGUFReader(path))


def fields(reader):
    """A reader's key-value pairs as plain values, without those about the file itself."""
    return {k: plain(f.contents()) for k, f in reader.fields.items() if not k.startswith("GGUF.")}


def plain(v):
    return [plain(x) for x in v] if isinstance(v, list) else v


def rows(ts):
    return {k: {"type": q, "shape": s, "sha256": hashlib.sha256(b).hexdigest()} for k, (q, s, b) in sorted(ts.items())}


def blocks():
    """Blocks of 32 numbers and their Q8_0 form: usual ones, ties, zeros, tiny, huge, and numbers at the ends of float16."""
    rng = np.random.default_rng(8)
    cases = [rng.standard_normal(32) * 10.0**e for e in range(-45, 38, 2)]
    cases += [np.zeros(32), np.arange(32) - 15.5, np.linspace(-127, 127, 32).round(), (np.arange(32) - 16) * 127 / 16]
    cases += [np.concatenate([[127], np.arange(31) + 0.5]), np.concatenate([[-127], -np.arange(31) - 0.5]), np.full(32, -0.0), np.full(32, 65504.0 * 127)]
    cases += [np.full(32, 1e-45), np.concatenate([[3e38], np.zeros(31)])]
    out = []
    for c in cases:
        x = c.astype(np.float32).reshape(1, 32)
        with np.errstate(all="ignore"):
            out.append({"in": x.astype("<f4").tobytes().hex(), "out": quantize(x, gguf.GGMLQuantizationType.Q8_0).tobytes().hex()})
    return out
