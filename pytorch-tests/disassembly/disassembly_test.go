// Package disassembly compares wick's disassembly with that of Python's pickletools.
package disassembly

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
)

// said is what pickletools says of one pickle.
type said struct {
	Count  int
	SHA256 string
	Lines  []string
}

// Offsets, names and arguments of every instruction in the fixtures are those of
// pickletools, which generate.py has asked.
func TestPickletools(t *testing.T) {
	raw, err := os.ReadFile("opcodes.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]map[string]said
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	if len(files) < 250 {
		t.Fatalf("only %d files", len(files))
	}
	for file, pickles := range files {
		t.Run(file, func(t *testing.T) {
			src, err := checkpoint.OpenPath(filepath.Join("..", filepath.FromSlash(file)), checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			err = pytorch.Disassemble(t.Context(), src, func(in *pytorch.Instruction) error {
				key := in.Record
				if key == "" {
					key = "#" + strconv.Itoa(in.Pickle)
				}
				line := fmt.Sprintf("%d %s %s", in.Offset, in.Opcode, argument(t, in.Arg))
				if in.Length > pytorch.MaxArg {
					line += fmt.Sprintf(" of %d", in.Length)
				}
				got[key] = append(got[key], line)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range pickles {
				compare(t, key, got[key], want)
			}
			if err := src.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func compare(t *testing.T, key string, got []string, want said) {
	if len(got) != want.Count {
		t.Errorf("%s: %d instructions, want %d", key, len(got), want.Count)
	}
	if want.Lines != nil && !slices.Equal(got, want.Lines) {
		t.Errorf("%s: got\n%s\nwant\n%s", key, strings.Join(got, "\n"), strings.Join(want.Lines, "\n"))
	}
	sum := sha256.Sum256([]byte(strings.Join(got, "\n") + "\n"))
	if hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s: offsets, names or arguments differ", key)
	}
}

func argument(t *testing.T, v nested.Value) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case nested.Bool:
		return map[bool]string{true: "True", false: "False"}[bool(v)]
	case nested.Int:
		return strconv.FormatInt(int64(v), 10)
	case nested.BigInt:
		return v.Int.String()
	case nested.Float:
		return "f:" + hex.EncodeToString(binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(v))))
	case nested.String:
		return "s:" + hex.EncodeToString([]byte(v))
	case nested.Bytes:
		return "b:" + hex.EncodeToString([]byte(v))
	case nested.ByteArray:
		return "b:" + hex.EncodeToString([]byte(v))
	default:
		t.Fatalf("an argument of type %T", v)
		return ""
	}
}
