"""Tokenizers, and what the gguf package of PyPI says that a GGUF file of pytorch-tests/llama/meta-q8 must hold.

Run with the packages gguf, transformers 4.46, tokenizers and sentencepiece, after llama/generate.py:

tokenizer-llama2     tokenizer.json and tokenizer_config.json that transformers makes of meta-q8's tokenizer.model
tokenizer-llama3     byte-level pair encoding that splits text as Llama 3 does, made by tokenizers, with a chat template
tokenizer-tiktoken   the same as Llama 3's tokenizer.model has it: the bytes of each token and its rank
expected.json        q8: blocks of numbers and their Q8_0 form; files: for each dtype the tensors and the header;
                     vocabularies: for each folder the tokens, merges and special tokens; rope_factors: by what a
                     rope_scaling of Llama 3.1 divides each of 32 frequencies
"""
import base64, json, pathlib, shutil, sys

try:
    import gguf
    from gguf.vocab import BpeVocab, LlamaHfVocab, SentencePieceVocab, SpecialVocab
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaTokenizerFast
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    import transformers.models.llama.convert_llama_weights_to_hf

    import reference
except ImportError as err:
    sys.exit(print(f"gguf: nothing is made without gguf and transformers 4.46: {err}", file=sys.stderr))

HERE = pathlib.Path(__file__).parent
META = HERE.parent / "llama" / "meta-q8"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def fresh(name):
    shutil.rmtree(HERE / name, ignore_errors=True)
    (HERE / name).mkdir()
    return HERE / name


def llama2():
    folder = fresh("tokenizer-llama2")
    LlamaTokenizerFast(vocab_file=str(META / "tokenizer.model")).save_pretrained(folder)
    for extra in ("tokenizer.model", "special_tokens_map.json"):
        (folder / extra).unlink()
    return folder


def llama3():
    folder = fresh("tokenizer-llama3")
    tok = Tokenizer(models.BPE(ignore_merges=True))
    split = pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated", invert=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    words = ["the weights of a model are read once and written once; rows, heads and layers keep their order. Grüße, 12345!"] * 4
    tok.train_from_iterator(words, trainers.BpeTrainer(vocab_size=290, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tok.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    begin = tok.token_to_id("<|begin_of_text|>")
    tok.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B", special_tokens=[("<|begin_of_text|>", begin)])
    tok.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>"}, "chat_template": "{{ messages[0]['content'] }}", "add_eos_token": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    return folder


def bytes_of(text):
    back = {c: b for b, c in gguf.vocab.bytes_to_unicode().items()}
    return bytes(back[c] for c in text)


def tiktoken(source):
    """The ranks of a byte-level vocabulary: single bytes first, then what is merged, in its order."""
    folder = fresh("tokenizer-tiktoken")
    vocab = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    lines = [base64.b64encode(bytes_of(t)) + b" %d\n" % i for t, i in sorted(vocab.items(), key=lambda x: x[1])]
    (folder / "tokenizer.model").write_bytes(b"".join(lines))
    return folder


def vocabulary(vocab, folder, merges=False):
    special = SpecialVocab(folder, load_merges=merges)
    # BpeVocab gives text where the others give bytes.
    tokens = [{"text": t if isinstance(t, str) else t.decode(), "score": s, "type": int(k)} for t, s, k in vocab.all_tokens()]
    return {"tokens": tokens, "merges": special.merges, "ids": special.special_token_ids, "add": special.add_special_token, "chat": special.chat_template}


def rope_factors():
    """By what Llama 3.1's rope_scaling divides each frequency, as transformers computes it."""
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    config = LlamaConfig(hidden_size=256, num_attention_heads=4, head_dim=64, rope_theta=500000.0, rope_scaling=scaling, max_position_embeddings=131072)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain, _ = ROPE_INIT_FUNCTIONS["default"](config, "cpu")
    return (plain / scaled).tolist()


def main():
    two, three = llama2(), llama3()
    tiktoken(three)
    spm = SentencePieceVocab(META)
    params, sd = reference.joined(META)
    size, ffn = sd["tok_embeddings.weight"].shape[0], sd["layers.0.feed_forward.w1.weight"].shape[0]
    files = {}
    for dtype in ("float32", "float16", "bfloat16", "q8_0"):
        special = SpecialVocab(META)
        special.special_token_ids = {"bos": 1, "eos": 2, "unk": 0}
        head = reference.header(params, "out", size, ffn, dtype, 4096, ("llama", "default", list(spm.all_tokens())), special, True)
        files[dtype] = {"tensors": reference.rows(reference.tensors(META, dtype)), "header": head}
    vocabularies = {"meta-q8": vocabulary(spm, META), "tokenizer-llama2": vocabulary(LlamaHfVocab(two), two), "tokenizer-llama3": vocabulary(BpeVocab(three), three, True)}
    text = json.dumps({"q8": reference.blocks(), "files_of_meta_q8": files, "vocabularies": vocabularies, "rope_factors": rope_factors()})
    (HERE / "expected.json").write_text(text + "\n")


main()
