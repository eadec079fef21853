package llama

import (
	"errors"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// Whose names a state dict of Llama can have.
const (
	Meta        = "meta" // tok_embeddings.weight, layers.0.attention.wq.weight …
	HuggingFace = "hf"   // model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight …
	GGUF        = "gguf" // llama.cpp's: token_embd.weight, blk.0.attn_q.weight …; q and k lie as Meta's
)

// Names returns root, a state dict of c or one joined from it, under the names
// of "hf", "meta" or "gguf": [Rename] with the config beside the weights.
func Names(c *checkpoint.Checkpoint, root nested.Value, names string) (nested.Value, error) {
	return Rename(root, c.Beside, names)
}

// Rename returns a state dict that has Meta's or Hugging Face's names under those
// of "hf", "meta" or "gguf", with the rotary permutation that goes with them. A
// tree that has the names already is returned as it is. No tensor is read: all are
// views. Beside is asked for the config, see [ReadConfig].
//
// An output layer that is the embedding, tied in the file, is left out of the
// names that know it as absent (hf, gguf), as transformers leaves it out; Meta's
// names always have it.
//
// Rename fails with [fault.ErrNotFound] without a config, with [fault.ErrUsage]
// on other names, and naming the parameter and its file with [fault.ErrMismatch]
// on one that no rule knows or that the config's layers, width or heads do not
// go with, and with [fault.ErrUnsupported] where the names of llama.cpp would become
// others. A tree without an embedding or a last norm is a part of a model, and
// may lack layers.
func Rename(root nested.Value, beside checkpoint.Beside, names string) (nested.Value, error) {
	sets, err := RenameRules(root, beside, names)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if root, _, err = set.Apply(root); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// RenameRules returns the sets of rules that [Rename] applies, in their order: none
// for a tree that has the names already. Some of their statements match nothing in
// a model without biases, or in a part of one.
func RenameRules(root nested.Value, beside checkpoint.Beside, names string) ([]*rules.Set, error) {
	if names != Meta && names != HuggingFace && names != GGUF {
		return nil, fault.New(fault.Usage, "no names of a Llama are called "+names).Needs("hf, meta or gguf", "")
	}
	x, err := rules.NewIndex(root)
	if err != nil {
		return nil, err
	}
	have, err := namesOf(x)
	if err != nil || have == names {
		return nil, err
	}
	if have == GGUF {
		return nil, fault.New(fault.Unsupported, "the names of llama.cpp").OnPath(x.Entries[0].Name).
			Needs("those of Meta or Hugging Face", "take the checkpoint that this was made of")
	}
	cfg, err := fitting(x, beside, have)
	if err != nil {
		return nil, err
	}
	var sets []*rules.Set
	for _, name := range path(x, have, names) {
		set, err := rules.Named(name)
		if err != nil {
			return nil, err
		}
		set = set.With(cfg.params())
		set.Name = "" // in an error the checkpoint's name shall stand
		sets = append(sets, set)
	}
	return sets, nil
}

// fitting reads the config, which the shapes of all tensors must go with.
func fitting(x *rules.Index, beside checkpoint.Beside, have string) (Config, error) {
	cfg, err := ReadConfig(beside)
	if err != nil {
		return cfg, wanting(err, x)
	}
	shapes, err := shapesOf(cfg, have)
	if err != nil {
		return cfg, err
	}
	return cfg, shapes.check(x)
}

// wanting says in an error about an absent config which parameter is the first
// that nothing can be made of without it.
func wanting(err error, x *rules.Index) error {
	var e *fault.Error
	if errors.Is(err, fault.ErrNotFound) && errors.As(err, &e) && len(x.Entries) > 0 {
		e.Need += ", for " + x.Entries[0].Name
		if file := x.Entries[0].File(); file != "" {
			e.Need += " in " + file
		}
	}
	return err
}

// path is the sets of rules that lead from one kind of names to another.
func path(x *rules.Index, have, want string) []string {
	var sets []string
	switch {
	case want != Meta && (tied(x, "tok_embeddings.weight", "output.weight") || tied(x, "model.embed_tokens.weight", "lm_head.weight")):
		sets = append(sets, "llama-untie")
	case want == Meta && len(x.Lookup("lm_head.weight")) == 0 && len(x.Lookup("model.embed_tokens.weight")) > 0:
		sets = append(sets, "llama-tied")
	}
	if have == HuggingFace {
		sets = append(sets, "llama-hf-to-meta")
	}
	if want != Meta {
		sets = append(sets, "llama-meta-to-"+want)
	}
	return sets
}

// tied reports whether the output layer is the embedding, in the file.
func tied(x *rules.Index, first, last string) bool {
	embed, out := x.Lookup(first), x.Lookup(last)
	if len(embed) != 1 || len(out) != 1 {
		return false
	}
	a, b := x.Entries[embed[0]].Tensor(), x.Entries[out[0]].Tensor()
	return a != nil && b != nil && a.Same(b)
}

// namesOf tells whose names a state dict has.
func namesOf(x *rules.Index) (string, error) {
	for i := range x.Entries {
		name := x.Entries[i].Name
		switch {
		case strings.HasPrefix(name, "model."), name == "lm_head.weight":
			return HuggingFace, nil
		case strings.HasPrefix(name, "tok_embeddings."), strings.HasPrefix(name, "layers."), name == "norm.weight":
			return Meta, nil
		case strings.HasPrefix(name, "blk."), name == "token_embd.weight":
			return GGUF, nil
		}
	}
	e := fault.New(fault.Mismatch, "no name that a Llama has").Needs("the names of Meta or Hugging Face", "convert with rules of your own")
	for i := range x.Entries {
		e.Path = x.Entries[i].Name
		if wrapped(e.Path) {
			return "", e.InRecord(x.Entries[i].File()).Needs("the names of Meta or Hugging Face", "the set of rules torch-prefixes takes off what wrappers put before them")
		}
		if strings.HasPrefix(e.Path, "consolidated.") {
			return "", e.Needs("one state dict", "leave out wick.KeepShards()")
		}
	}
	if n := len(x.Entries); n > 0 {
		e.Record = x.Entries[n-1].File() // of the one that e names
	}
	return "", e
}

// wrapped reports whether a wrapper of torch has put something before a name.
func wrapped(name string) bool {
	for _, p := range []string{"module.", "_orig_mod.", "_fsdp_wrapped_module."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
