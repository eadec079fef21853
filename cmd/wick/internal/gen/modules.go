package gen

import (
	"slices"
	"strings"
)

// module returns the name of the struct of package nn whose fields are exactly
// those of a module, "" if there is none. Where shapes do not tell two modules
// apart, the module's own name, key, does: an Embedding from a Linear without
// bias, a GroupNorm from a LayerNorm.
func (p *plan) module(key string, fields []*field) string {
	m := members{fields: fields, key: strings.ToLower(key)}
	if !m.uniform() {
		return ""
	}
	for _, try := range []func(*members) string{(*members).weighted, p.batchNorm, (*members).cell, (*members).layer, (*members).attention, (*members).transformer} {
		if mod := try(&m); mod != "" {
			return mod
		}
	}
	return ""
}

// members is what a module has in the file.
type members struct {
	fields []*field
	key    string // the module's name, in small letters
}

// elementOf is the element type of a module's members.
func elementOf(fields []*field) string {
	for _, f := range fields {
		if f.key != trackedBatches {
			return f.typ.elem
		}
	}
	return ""
}

const trackedBatches = "num_batches_tracked"

// uniform reports whether all members can be fields of one struct of package
// nn: tensors and modules with the same elements.
func (m *members) uniform() bool {
	elem := elementOf(m.fields)
	for _, f := range m.fields {
		switch {
		case f.expr != "" || f.optional || f.typ.ptr:
			return false
		case f.key == trackedBatches:
			if f.typ.kind != scalarKind || f.typ.elem != "int64" || f.typ.note != "" {
				return false
			}
		case f.typ.elem != elem || f.typ.kind != tensorKind && f.typ.kind != moduleKind:
			return false
		}
	}
	return elem != ""
}

// has reports whether the members are all of the required ones and some of the
// allowed ones, and nothing else.
func (m *members) has(required, allowed string) bool {
	need, may := strings.Fields(required), strings.Fields(allowed)
	for _, f := range m.fields {
		if i := slices.Index(need, f.key); i >= 0 {
			need = slices.Delete(need, i, i+1)
		} else if !slices.Contains(may, f.key) {
			return false
		}
	}
	return len(need) == 0
}

// dims returns the shape of a member, nil if there is none.
func (m *members) dims(key string) []dim {
	for _, f := range m.fields {
		if f.key == key && f.typ.kind == tensorKind {
			return f.typ.dims
		}
	}
	return nil
}

// called reports whether the module's name holds one of the words.
func (m *members) called(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m.key, w) })
}

// weighted is a module of a weight and perhaps a bias.
func (m *members) weighted() string {
	if !m.has("weight", "bias") {
		return ""
	}
	weight, bias := m.dims("weight"), m.dims("bias")
	hasBias := len(m.fields) == 2
	switch {
	case hasBias && slices.Equal(weight, bias):
		return m.norm()
	case hasBias && len(bias) != 1:
		return ""
	case len(weight) == 1 && !hasBias:
		return m.scale()
	case len(weight) == 2:
		return m.linear(weight, bias, hasBias)
	case len(weight) >= 3 && len(weight) <= 5:
		return m.conv(weight, bias, hasBias)
	}
	return ""
}

func (m *members) norm() string {
	if m.called("gn", "group") && len(m.dims("weight")) == 1 {
		return "GroupNorm"
	}
	return "LayerNorm"
}

func (m *members) scale() string {
	switch {
	case m.called("norm", "ln", "rms"):
		return "RMSNorm"
	case m.called("relu", "act"):
		return "PReLU"
	}
	return ""
}

func (m *members) linear(weight, bias []dim, hasBias bool) string {
	switch {
	case hasBias && weight[0] != bias[0]:
		return ""
	case !hasBias && m.called("emb", "wte", "wpe", "token", "vocab"):
		return "Embedding"
	}
	return "Linear"
}

func (m *members) conv(weight, bias []dim, hasBias bool) string {
	rank := string(rune('0' + len(weight) - 2))
	transposed := m.called("transpose", "deconv", "upconv")
	if hasBias {
		switch forward, backward := weight[0] == bias[0], bias[0].lo%max(1, weight[1].lo) == 0; {
		case m.called("bilinear") && len(weight) == 3 && forward:
			return "Bilinear"
		case !forward && !backward:
			return ""
		case !forward:
			transposed = true
		case !backward:
			transposed = false
		}
	}
	if transposed {
		return "ConvTranspose" + rank + "d"
	}
	return "Conv" + rank + "d"
}

// findConvs notes the ranks of the weights that can be those of convolutions: a
// batch norm does not tell by itself how many dimensions its input has.
func (p *plan) findConvs() {
	for i := range p.index.Entries {
		e := &p.index.Entries[i]
		if t := e.Tensor(); t != nil && len(t.Shape()) >= 3 && len(t.Shape()) <= 5 && strings.HasSuffix("."+e.Name, ".weight") {
			p.convs[len(t.Shape())] = true
		}
	}
}

func (p *plan) batchNorm(m *members) string {
	if !m.has("weight bias running_mean running_var", trackedBatches) {
		return ""
	}
	for _, rank := range []int{3, 4, 5} {
		if len(p.convs) == 1 && p.convs[rank] {
			return "BatchNorm" + string(rune('0'+rank-2)) + "d"
		}
	}
	return "BatchNorm"
}

// gates tells the kinds of recurrent modules by the rows of their weights for
// each hidden unit.
func gates(rows, hidden []dim) string {
	if len(rows) != 2 || len(hidden) != 2 || hidden[1].lo == 0 {
		return ""
	}
	switch n := hidden[1].lo; {
	case rows[0] != hidden[0] || rows[0].lo%n != 0:
		return ""
	default:
		return map[int]string{1: "RNN", 3: "GRU", 4: "LSTM"}[rows[0].lo/n]
	}
}

func (m *members) cell() string {
	if !m.has("weight_ih weight_hh", "bias_ih bias_hh") {
		return ""
	}
	if kind := gates(m.dims("weight_ih"), m.dims("weight_hh")); kind != "" {
		return kind + "Cell"
	}
	return "Cell"
}

func (m *members) layer() string {
	const forward, more = "weight_ih_l0 weight_hh_l0", "bias_ih_l0 bias_hh_l0 weight_hr_l0"
	const back, backMore = "weight_ih_l0_reverse weight_hh_l0_reverse", "bias_ih_l0_reverse bias_hh_l0_reverse weight_hr_l0_reverse"
	if !m.has(forward, more) && !m.has(forward+" "+back, more+" "+backMore) {
		return ""
	}
	if m.dims("weight_hr_l0") != nil {
		return "LSTM" // the only one that projects
	}
	if kind := gates(m.dims("weight_ih_l0"), m.dims("weight_hh_l0")); kind != "" {
		return kind
	}
	return "Layer"
}

// are reports whether members are of one module.
func (m *members) are(mod, keys string) bool {
	for key := range strings.FieldsSeq(keys) {
		if !slices.ContainsFunc(m.fields, func(f *field) bool { return f.key == key && f.typ.mod == mod }) {
			return false
		}
	}
	return true
}

func (m *members) attention() string {
	switch {
	case !m.are("Linear", "out_proj"):
		return ""
	case m.has("in_proj_weight out_proj", "in_proj_bias bias_k bias_v"):
		return "MultiheadAttention"
	case m.has("q_proj_weight k_proj_weight v_proj_weight out_proj", "in_proj_bias bias_k bias_v"):
		return "CrossAttention"
	}
	return ""
}

func (m *members) transformer() string {
	switch {
	case !m.are("MultiheadAttention", "self_attn") || !m.are("Linear", "linear1 linear2") || !m.are("LayerNorm", "norm1 norm2"):
		return ""
	case m.has("self_attn linear1 linear2 norm1 norm2", ""):
		return "TransformerEncoderLayer"
	case m.has("self_attn multihead_attn linear1 linear2 norm1 norm2 norm3", "") && m.are("MultiheadAttention", "multihead_attn") && m.are("LayerNorm", "norm3"):
		return "TransformerDecoderLayer"
	}
	return ""
}
