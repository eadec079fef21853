package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// JSONTarget writes records as indented JSON, for small ones and for people:
//
//	{
//	  "wick": {"version": 1, "type": "", "precision": "", "writer": ""},
//	  "root": {
//	    "weight": {"$tensor": {"dtype": "float32", "shape": [2, 2], "data": [
//	      1, 0.5,
//	      -2, "inf"]}}
//	  },
//	  "crc32": ["…"]
//	}
//
// crc32 has the sums of the tensors' packed bytes and, last, that of the text
// in front of it without the tensors' lists. Who edits a record by hand takes
// the member out.
type JSONTarget struct{}

// Name returns "json".
func (JSONTarget) Name() string { return "json" }

// Extensions returns ".json".
func (JSONTarget) Extensions() []string { return []string{".json"} }

// jsonWriter lays a JSON record out.
type jsonWriter struct {
	layout checkpoint.Layout
	sum    uint32
	sums   []*checkpoint.Sum
	report checkpoint.Report
}

const jsonIndent = "  "

// Plan lays one file out.
func (JSONTarget) Plan(root nested.Value, opts checkpoint.TargetOptions) (*checkpoint.Output, error) {
	h, root, err := prepare(root, opts)
	if err != nil {
		return nil, err
	}
	w := jsonWriter{}
	text := meta.NewJSON(opts.Limits, w.leaf)
	text.Raw("{\n  \"" + keyRecord + "\": {\"version\": " + strconv.Itoa(meta.Version))
	for _, member := range meta.Members(&h) {
		text.Raw(`, "` + member.Key + `": `)
		text.Text(*member.Text)
	}
	text.Raw("},\n  \"" + keyRoot + "\": ")
	text.Indented(jsonIndent, 1)
	if err := text.Value(nil, root); err != nil {
		return nil, err
	}
	text.Raw(",\n  ")
	w.flush(text)
	w.layout.Late(w.trailerSize(), w.trailer)
	return &checkpoint.Output{Files: []checkpoint.OutputFile{{Layout: &w.layout}}, Report: w.report}, nil
}

// flush puts the text so far into the layout and sums it.
func (w *jsonWriter) flush(text *meta.JSON) {
	b := text.Take()
	w.sum = crc32.Update(w.sum, crc32.IEEETable, b)
	w.layout.Bytes(b)
}

func (w *jsonWriter) trailerSize() int64 {
	return int64(len(sumsText(make([]uint32, len(w.sums)+1))))
}

func (w *jsonWriter) trailer() ([]byte, error) {
	sums := make([]uint32, 0, len(w.sums)+1)
	for _, s := range w.sums {
		sums = append(sums, s.Value())
	}
	return sumsText(append(sums, w.sum)), nil
}

func sumsText(sums []uint32) []byte {
	parts := make([]string, len(sums))
	for i, s := range sums {
		parts[i] = fmt.Sprintf(`"%08x"`, s)
	}
	return []byte(`"` + keySums + `": [` + strings.Join(parts, ", ") + "]\n}\n")
}

// leaf writes {"$tensor": {"dtype": …, "shape": […], "data": […]}}.
func (w *jsonWriter) leaf(text *meta.JSON, path nested.Path, leaf nested.Leaf) error {
	if err := checkpoint.Storable(leaf); err != nil {
		return fault.OnPath(err, path.String())
	}
	t := leaf.AsTensor()
	spell, parts, ok := spellingOf(t.DType())
	if !ok {
		return fault.New(fault.Unsupported, "a "+t.DType().String()+" tensor").OnPath(path.String())
	}
	shape := t.Shape()
	text.Raw(`{"$tensor": {"dtype": "` + t.DType().String() + `", "shape": [`)
	for d, n := range shape {
		if d > 0 {
			text.Raw(", ")
		}
		text.Raw(strconv.Itoa(n))
	}
	text.Raw(`], "data": `)
	w.flush(text)
	row := 0
	if len(shape) > 1 {
		row = shape[len(shape)-1] * parts
	}
	line := "\n" + strings.Repeat(jsonIndent, text.Level()+1)
	w.sums = append(w.sums, w.layout.Text(t, func(out io.Writer) io.WriteCloser { return newSpeller(out, spell, row, line) }))
	text.Raw("}}")
	w.report.Tensors++
	w.report.Bytes += t.Bytes()
	return nil
}

// JSON reads the records that [JSONTarget] writes, and what people make of
// them. The file is read whole, and its tensors are packed in memory; a number
// is never boxed.
type JSON struct{}

// Name returns "json".
func (JSON) Name() string { return "json" }

// Sniff recognises an object whose first key is "wick".
func (JSON) Sniff(head []byte, _ checkpoint.Source) bool {
	text := bytes.TrimLeft(head, " \t\r\n")
	rest, ok := bytes.CutPrefix(text, []byte{'{'})
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"`+keyRecord+`"`))
}

// Open reads the file, which must not be larger than Limits.HeaderBytes.
func (JSON) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limits := env.Limits.Default()
	if err := checkpoint.At("header bytes", src.Size(), limits.HeaderBytes); err != nil {
		return nil, err
	}
	text := make([]byte, src.Size())
	if n, err := src.ReadAt(text, 0); n < len(text) {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fault.New(fault.Changed, "shorter than it was when it was opened")
		}
		return nil, err
	}
	r := jsonReader{text: text, order: -1}
	info := checkpoint.Info{Name: src.Name(), Format: "json"}
	root, err := r.file(&info, limits, env.Salvage)
	if err != nil {
		return nil, err
	}
	return checkpoint.New(root, info, env, src.Close)
}

// jsonReader reads one record.
type jsonReader struct {
	text   []byte
	leaves []jsonLeaf
	order  int // where the checksums stand, -1 without
	sums   []string
}

func (r *jsonReader) file(info *checkpoint.Info, limits checkpoint.Limits, salvage bool) (nested.Value, error) {
	var root nested.Value
	var h checkpoint.RecordHeader
	in := strictjson.NewReader(r.text)
	read := meta.JSONReader{Limits: limits, Leaf: r.leaf}
	err := in.Object(func(key string) (err error) {
		switch key {
		case keyRecord:
			h, err = readHeader(in)
		case keyRoot:
			root, err = read.Value(in)
		case keySums:
			err = r.readSums(in)
		default:
			err = in.Skip()
		}
		return err
	})
	if err == nil {
		err = in.End()
	}
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, fault.New(fault.Malformed, "a record without root").Needs("the tree under \""+keyRoot+"\"", "get the file again")
	}
	meta.Tell(h, info)
	if read.Parts {
		if root, err = meta.Quantized(root); err != nil {
			return nil, err
		}
	}
	for i := range r.leaves {
		info.Storages = slices.AppendSeq(info.Storages, r.leaves[i].tensor.Storages())
	}
	if r.order < 0 || salvage {
		return root, nil
	}
	return root, r.check(root)
}

func readHeader(in *strictjson.Reader) (h checkpoint.RecordHeader, err error) {
	at := in.Offset()
	err = in.Object(func(key string) error {
		ok, err := meta.ReadMember(in, key, &h)
		if err == nil && !ok {
			err = in.Skip()
		}
		return err
	})
	if err != nil {
		return h, err
	}
	return h, fault.At(meta.CheckVersion(h), int64(at))
}
