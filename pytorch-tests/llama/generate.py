"""Tiny Llama checkpoints as Meta ships them, with the conversion by Hugging Face's own script.

The script, transformers/models/llama/convert_llama_weights_to_hf.py, was part of transformers up to 4.x:
run this with transformers 4.46 (pip install 'transformers==4.46.3' sentencepiece).

meta-2shards      Llama 2: two model-parallel shards, grouped-query attention, embeddings cut along the width
meta-3style       Llama 3: the same with embeddings cut along the vocabulary
meta-1shard       one shard
meta-tied         Llama 3.2: one shard whose output layer is the embedding, the same storage
meta-tied-2shards the same in two shards
meta-q8           two shards of float32, with rows that GGUF's blocks of 32 divide and a tokenizer.model of sentencepiece
broken-shards     shards that do not go with those of meta-2shards, see broken()
hf-2shards        meta-2shards as the script writes it, with its config.json
expected.json     for each Meta folder the tensors under Meta's names joined, and under Hugging Face's names as its script
                  gives them
"""
import hashlib, io, json, pathlib, shutil, sys, tempfile

import torch

try:
    import sentencepiece as spm
    from safetensors.torch import load_file
    from transformers.models.llama.convert_llama_weights_to_hf import write_model
except ImportError as err:
    sys.exit(print(f"llama: nothing is made without transformers 4.46: {err}", file=sys.stderr))

HERE = pathlib.Path(__file__).parent
DIM, LAYERS, HEADS, KV, VOCAB, FFN = 16, 2, 4, 2, 32, 48
PARAMS = {"dim": DIM, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KV, "vocab_size": VOCAB, "multiple_of": 8, "norm_eps": 1e-05}


def full(seed, params, ffn, dtype, tied):
    torch.manual_seed(seed)
    DIM, LAYERS, HEADS, KV, VOCAB, FFN = *(params[k] for k in ("dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size")), ffn
    w = lambda *shape: torch.randn(*shape).to(dtype)
    embed = w(VOCAB, DIM)
    sd = {"tok_embeddings.weight": embed, "norm.weight": w(DIM), "output.weight": embed if tied else w(VOCAB, DIM)}
    kv = DIM // HEADS * KV
    for i in range(LAYERS):
        p = f"layers.{i}."
        sd.update({p + "attention.wq.weight": w(DIM, DIM), p + "attention.wk.weight": w(kv, DIM), p + "attention.wv.weight": w(kv, DIM),
                   p + "attention.wo.weight": w(DIM, DIM), p + "feed_forward.w1.weight": w(FFN, DIM), p + "feed_forward.w2.weight": w(DIM, FFN),
                   p + "feed_forward.w3.weight": w(FFN, DIM), p + "attention_norm.weight": w(DIM), p + "ffn_norm.weight": w(DIM)})
    sd["rope.freqs"] = torch.arange(DIM // HEADS // 2).to(dtype)
    return sd


def axis(name, embeddings):
    if name == "tok_embeddings.weight":
        return embeddings
    if name.endswith(("wo.weight", "w2.weight")):
        return 1
    return None if "norm" in name or name == "rope.freqs" else 0


def digest(t):
    return hashlib.sha256(t.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def rows(tensors):
    return {k: {"dtype": str(v.dtype).split(".")[1], "shape": list(v.shape), "sha256": digest(v)} for k, v in sorted(tensors.items())}


def cut(v, shards, axis, i):
    """One shard's part; a part that is all of a tensor is that tensor, so that tied ones stay tied."""
    return v if shards == 1 or axis is None else v.chunk(shards, axis)[i].clone()


def make(name, shards, embeddings, version, seed, params=PARAMS, ffn=FFN, dtype=torch.bfloat16, tied=False, keep=None):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sd = full(seed, params, ffn, dtype, tied)
    for i in range(shards):
        part = {k: cut(v, shards, axis(k, embeddings), i) for k, v in sd.items()}
        if tied:
            part["output.weight"] = part["tok_embeddings.weight"]
        torch.save(part, folder / f"consolidated.{i:02d}.pth")
    (folder / "params.json").write_text(json.dumps(params) + "\n")
    with tempfile.TemporaryDirectory() as out:
        write_model(out, str(folder), safe_serialization=True, llama_version=version, vocab_size=params["vocab_size"], num_shards=shards)
        hf = load_file(f"{out}/model.safetensors")
        config = json.loads(pathlib.Path(f"{out}/config.json").read_text())
        if keep:
            shutil.rmtree(HERE / keep, ignore_errors=True)
            (HERE / keep).mkdir()
            for f in ("model.safetensors", "config.json"):
                shutil.copy(f"{out}/{f}", HERE / keep / f)
    fields = ("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "vocab_size", "model_type", "tie_word_embeddings")
    # The script itself loads into bfloat16.
    return {"meta": rows(sd), "hf": rows({k: v.to(torch.bfloat16) for k, v in hf.items()}), "hf_dtype": "bfloat16", "config": {k: config[k] for k in fields}}


def sentencepiece_model(folder, size):
    """A byte-fallback BPE of sentencepiece, as Llama 2 has, of size pieces."""
    words = "the weights of a model are read once and written once; rows, heads and layers keep their order.".split()
    corpus = (" ".join(words[i:] + words[:i]) for i in range(len(words)))
    model = io.BytesIO()  # a model that is written to a file keeps the paths of this machine
    spm.SentencePieceTrainer.train(sentence_iterator=corpus, model_writer=model, model_type="bpe", vocab_size=size, byte_fallback=True,
                                   character_coverage=1.0, num_threads=1, minloglevel=2, normalization_rule_name="identity", add_dummy_prefix=True)
    (folder / "tokenizer.model").write_bytes(model.getvalue())


Q8 = {"dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 300, "multiple_of": 32, "norm_eps": 1e-05, "rope_theta": 10000.0}
expected = {
    "meta-2shards": make("meta-2shards", 2, 1, "2", 1, keep="hf-2shards"),
    "meta-3style": make("meta-3style", 2, 0, "3", 2),
    "meta-1shard": make("meta-1shard", 1, 1, "2", 3),
    "meta-tied": make("meta-tied", 1, 0, "3.2", 4, tied=True),
    "meta-tied-2shards": make("meta-tied-2shards", 2, 0, "3.2", 5, tied=True),
    "meta-q8": make("meta-q8", 2, 1, "2", 6, params=Q8, ffn=96, dtype=torch.float32),
}


def broken():
    """Shards that do not go with those of meta-2shards, one fault each, and a model cut into three uneven parts."""
    folder = HERE / "broken-shards"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shard = lambda i: torch.load(HERE / f"meta-2shards/consolidated.0{i}.pth", weights_only=True)
    def save(name, i, **changes):
        sd = shard(i)
        sd.update({k.replace("__", "."): v for k, v in changes.items()})
        torch.save({k: v for k, v in sd.items() if v is not None}, folder / name)
    norm = shard(1)["layers.1.ffn_norm.weight"].clone()
    norm[3] += 1
    save("norm.01.pth", 1, layers__1__ffn_norm__weight=norm)
    save("dtype.01.pth", 1, layers__0__feed_forward__w1__weight=shard(1)["layers.0.feed_forward.w1.weight"].half())
    save("lacks.01.pth", 1, layers__1__attention__wo__weight=None)
    save("lacks.00.pth", 0, layers__1__attention__wo__weight=None)
    for i in range(2):
        save(f"unknown.0{i}.pth", i, layers__0__attention__gate__weight=torch.zeros(4, 4))
    sd = full(1, PARAMS, FFN, torch.bfloat16, False)
    for i in range(3):
        torch.save({k: cut(v, 3, axis(k, 1), i) for k, v in sd.items()}, folder / f"uneven.0{i}.pth")


broken()
sentencepiece_model(HERE / "meta-q8", Q8["vocab_size"])
(HERE / "expected.json").write_text(json.dumps({"folders": expected}, indent=1) + "\n")
