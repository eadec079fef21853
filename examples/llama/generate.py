"""Writes testdata: folders as transformers saves them, of tiny models of the Llama architecture, and what transformers
computes with them. Needs torch and transformers: $(scripts/find-torch transformers) examples/llama/generate.py"""

import json
import os
import random
import shutil

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
testdata = os.path.join(here, "testdata")
CONVERTED = os.path.join(here, "..", "..", "pytorch-tests", "llama", "hf-2shards")

# Grouped-query attention: four heads of queries share two of keys and values.
COMMON = dict(vocab_size=96, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
MODELS = {
    # As small ones of Llama 3.2 are: tied embeddings, rotary frequencies scaled, more dimensions in the heads than
    # hidden_size / heads.
    "tied": (dict(tie_word_embeddings=True, head_dim=12,
                  rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0, "original_max_position_embeddings": 32}), torch.float32, "1GB"),
    # As Llama 2: an output matrix of its own. In several shards.
    "sharded": (dict(tie_word_embeddings=False), torch.float32, "40KB"),
    # Its text has an end.
    "half": (dict(tie_word_embeddings=True, eos_token_id=49), torch.bfloat16, "1GB"),
}
PROMPT = [1, 17, 42, 5, 63, 8, 91, 30, 30, 2, 77, 12]
STEPS = 12


def spread(model):
    """Weights with more variety than the start of a training has, so that logits are far apart and norms are not all
    one."""
    for name, p in model.named_parameters():
        if name.endswith("norm.weight"):
            torch.nn.init.uniform_(p, 0.5, 1.5)
        else:
            torch.nn.init.normal_(p, 0, 0.2)


def computed(model, prompt):
    """What float32 arithmetic makes of the prompt: logits at every position, and the likeliest tokens after it."""
    model.eval()
    tokens = torch.tensor([prompt])
    with torch.no_grad():
        logits = model(tokens).logits[0].float()
        greedy = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=STEPS,
                                do_sample=False, eos_token_id=None, pad_token_id=0)[0, len(prompt):]
    return {"prompt": prompt, "logits": logits.flatten().tolist(), "greedy": greedy.tolist()}


def tokens():
    """What tokenizers makes of texts, by a tokenizer that splits them as Llama 3's does."""
    tokenizer = Tokenizer.from_file(os.path.join(here, "..", "..", "pytorch-tests", "gguf", "tokenizer-llama3", "tokenizer.json"))
    random.seed(20)
    texts = ["the weights of a model are read once", "  two  spaces   and\ttab\n\nnew", "naïve café \u2615\ufe0f 日本語 🤗🤗", "it's I'LL don't 1234567 x=1;",
             " trailing ", "e\u0301\u00a0combining", "a<|end_of_text|>b<|eot_id|>\n", "<s>hi</s>"]
    texts += ["".join(random.choice("ab ct.,'1\n\t é日🤗X_") for _ in range(random.randint(1, 40))) for _ in range(60)]
    with open(os.path.join(testdata, "tokens.json"), "w") as f:
        json.dump([{"text": t, "ids": tokenizer.encode(t).ids} for t in texts], f)
        f.write("\n")


def main():
    shutil.rmtree(testdata, ignore_errors=True)
    expected = {}
    for name, (options, dtype, shard) in MODELS.items():
        torch.manual_seed(20)
        model = LlamaForCausalLM(LlamaConfig(**{**COMMON, **options}))
        with torch.no_grad():
            spread(model)
            folder = os.path.join(testdata, name)
            model.to(dtype).save_pretrained(folder, max_shard_size=shard)
            os.remove(os.path.join(folder, "generation_config.json"))
            for file in os.listdir(folder):
                os.chmod(os.path.join(folder, file), 0o644)
        expected[name] = computed(LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32), PROMPT)
        if dtype != torch.float32:
            native = LlamaForCausalLM.from_pretrained(folder, dtype=dtype)
            expected[name]["native"] = computed(native, PROMPT)["logits"]
    # A model that Meta's own layout has too: transformers converted it to the folder that it is loaded from here.
    model = LlamaForCausalLM.from_pretrained(CONVERTED, dtype=torch.float32)
    expected["converted"] = computed(model, [t % model.config.vocab_size for t in PROMPT])
    with open(os.path.join(testdata, "expected.json"), "w") as f:
        json.dump(expected, f)
        f.write("\n")
    tokens()


if __name__ == "__main__":
    main()
