package gguf

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// readSentencePiece reads a tokenizer.model: ModelProto in
// sentencepiece's sentencepiece_model.proto, a protocol buffer of which a few
// fields count here.
func readSentencePiece(b []byte, beside checkpoint.Beside, most int) (*vocabulary, error) {
	v := &vocabulary{file: "tokenizer.model", kind: "llama", pre: "default", ids: map[string]int{"unk": 0, "bos": 1, "eos": 2}, add: map[string]bool{}}
	r := protoReader{b: b}
	for r.next() {
		switch r.field {
		case 1: // pieces
			if err := v.set(len(v.tokens), piece(r.bytes), most); err != nil {
				return nil, err
			}
		case 2: // trainer_spec
			v.trainer(r.bytes)
		case 3: // normalizer_spec
			v.normalizer(r.bytes)
		}
	}
	if r.broken || len(v.tokens) == 0 {
		return nil, fault.New(fault.Malformed, "no model of sentencepiece").InRecord(v.file).At(int64(len(b)-len(r.b))).
			Needs("sentencepiece's or tiktoken's form", "get the model's own tokenizer")
	}
	for i, t := range v.tokens {
		if t.kind == 0 {
			v.tokens[i].kind = normalToken
		}
	}
	if err := v.added(beside, most); err != nil {
		return nil, err
	}
	return v, v.configure(beside, most)
}

// piece is SentencePiece of ModelProto. Its types have the numbers of ggml's.
func piece(b []byte) token {
	t := token{kind: normalToken}
	r := protoReader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			t.text = string(r.bytes)
		case 2:
			t.score = math.Float32frombits(uint32(r.number))
		case 3:
			if r.number >= 1 && r.number <= uint64(byteToken) {
				t.kind = tokenType(r.number)
			}
		}
	}
	return t
}

// trainer takes the numbers of special tokens, -1 for none.
func (v *vocabulary) trainer(b []byte) {
	names := map[uint64]string{40: "unk", 41: "bos", 42: "eos", 43: "pad"}
	r := protoReader{b: b}
	for r.next() {
		name, ok := names[r.field]
		if id := int32(r.number); ok && id >= 0 {
			v.ids[name] = int(id)
		} else if ok {
			delete(v.ids, name)
		}
	}
}

// normalizer takes whether a text gets a space before it.
func (v *vocabulary) normalizer(b []byte) {
	r := protoReader{b: b}
	for r.next() {
		if r.field == 3 { // add_dummy_prefix, true unless it says otherwise
			v.add["space"] = r.number != 0
		}
	}
}

// added takes added_tokens.json of transformers: text to number.
func (v *vocabulary) added(beside checkpoint.Beside, most int) error {
	const name = "added_tokens.json"
	text, err := optional(beside, name)
	if err != nil || text == nil {
		return err
	}
	var list map[string]int
	if err := json.Unmarshal(text, &list); err != nil {
		return fault.Wrap(fault.Malformed, "not the JSON of added tokens", err).InRecord(name)
	}
	base := len(v.tokens)
	for _, text := range slices.Sorted(maps.Keys(list)) {
		id := list[text]
		if id < base && id >= 0 {
			continue
		}
		if err := v.set(id, addedToken(text, false), most); err != nil {
			return err
		}
	}
	return nil
}

// protoReader walks the fields of a protocol buffer.
type protoReader struct {
	b      []byte
	broken bool
	field  uint64
	number uint64 // of a varint or fixed field
	bytes  []byte // of a field with a length
}

// next reads a field, false at the end or where the bytes make none.
func (r *protoReader) next() bool {
	if len(r.b) == 0 || r.broken {
		return false
	}
	tag := r.varint()
	r.field, r.number, r.bytes = tag>>3, 0, nil
	switch tag & 7 {
	case 0:
		r.number = r.varint()
	case 1:
		r.fixed(8)
	case 2:
		r.bytes = r.take(r.varint())
	case 5:
		r.fixed(4)
	default:
		r.broken = true
	}
	return !r.broken
}

func (r *protoReader) varint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.broken = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *protoReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.broken = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *protoReader) fixed(n uint64) {
	b := r.take(n)
	for i := len(b) - 1; i >= 0; i-- {
		r.number = r.number<<8 | uint64(b[i])
	}
}
