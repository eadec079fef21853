package llama

import (
	_ "embed" // for the shapes
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/rules"
)

//go:embed hf.rules
var hfShapes string

// shapes are assignments whose flags say what shape each parameter has, under
// Meta's names or Hugging Face's.
type shapes struct {
	cfg    Config
	list   []*rules.Assign
	params rules.Params
}

func shapesOf(cfg Config, names string) (*shapes, error) {
	name, text := "join.rules", joinRules
	if names == HuggingFace {
		name, text = "hf.rules", hfShapes
	}
	set, err := rules.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return &shapes{cfg, assigns(set), cfg.params()}, nil
}

func assigns(set *rules.Set) []*rules.Assign {
	var list []*rules.Assign
	for _, st := range set.Statements {
		if a, ok := st.(*rules.Assign); ok {
			list = append(list, a)
		}
	}
	return list
}

// check fails, naming both sides, unless a state dict can be of the model that
// the config describes.
func (s *shapes) check(x *rules.Index) error {
	layers := map[int]bool{}
	for i := range x.Entries {
		if err := s.entry(&x.Entries[i], layers); err != nil {
			return err
		}
	}
	return s.complete(x, layers)
}

// entry checks one parameter, and notes its layer.
func (s *shapes) entry(e *rules.Entry, layers map[int]bool) error {
	for _, a := range s.list {
		captures, ok := a.Target.Match(e.Name)
		if !ok {
			continue
		}
		if text, ok := captures["i"]; ok {
			i, err := strconv.Atoi(text)
			if err != nil || i < 0 || s.cfg.Layers > 0 && i >= s.cfg.Layers {
				return s.other("layer "+text+", counted from 0", e.Name, s.layers()).InRecord(e.File())
			}
			layers[i] = true
		}
		t := e.Tensor()
		if t == nil {
			return nil
		}
		want, err := a.Flags.WantShape(t.Shape(), s.params)
		if want != "" {
			return s.other(t.String(), e.Name, want).InRecord(e.File())
		}
		return err
	}
	return nil
}

// complete fails on a whole model that lacks a layer of the config's. Without an
// embedding or a last norm it is taken for a part of one.
func (s *shapes) complete(x *rules.Index, layers map[int]bool) error {
	for _, a := range s.list {
		if len(a.Target.Captures()) == 0 && !a.Flags.Optional && len(x.Lookup(a.Target.String())) == 0 {
			return nil
		}
	}
	for i := range s.cfg.Layers {
		if !layers[i] {
			name := s.list[1].Target.Expand(map[string]string{"i": strconv.Itoa(i)})
			return s.other("no such tensor", name, s.layers())
		}
	}
	return nil
}

func (s *shapes) layers() string {
	if s.cfg.Layers == 1 {
		return "1 layer"
	}
	return strconv.Itoa(s.cfg.Layers) + " layers"
}

func (s *shapes) other(found, name, need string) *fault.Error {
	return fault.New(fault.Mismatch, found).OnPath(name).Needs(need+", says "+s.cfg.File, "look for another model's config, or for weights that were left out")
}
