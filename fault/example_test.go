package fault_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/wick-ml/wick/fault"
)

// One errors.As tells everything that is known of an error.
func Example() {
	var err error = fault.New(fault.Malformed, "an offset of -8").
		Needs("an offset in the record", "get the file again").In("model.pt").InRecord("data.pkl").At(0x2c)
	var e *fault.Error
	if errors.As(err, &e) {
		fmt.Println(e.Kind, e.File, e.Record, e.Offset, e.Cure)
	}
	fmt.Println(errors.Is(err, fault.ErrMalformed), errors.Is(err, fault.ErrUnsupported))
	// Output:
	// malformed model.pt data.pkl 44 get the file again
	// true false
}

func ExampleNew() {
	fmt.Println(fault.New(fault.Unsupported, "a GIF").Needs("a checkpoint", ""))
	// Output: unsupported: a GIF; need a checkpoint
}

func ExampleNewLimit() {
	err := fault.NewLimit("tensors", 2000, 1000)
	fmt.Println(err.Limit, err.Value, err.Max, errors.Is(err, fault.ErrLimit))
	// Output: tensors 2000 1000 true
}

// What nobody can raise has no cure that says so.
func ExampleNewBound() {
	fmt.Println(fault.NewBound("nesting", 9, 8))
	// Output: over a limit: nesting 9; need at most 8
}

func ExampleWrap() {
	err := fault.Wrap(fault.IO, "read failed", io.ErrUnexpectedEOF)
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF), fault.KindOf(err))
	// Output: true io
}

func ExampleKindOf() {
	fmt.Println(fault.KindOf(fault.New(fault.Checksum, "a wrong CRC-32")), fault.KindOf(io.EOF) == "")
	// Output: checksum true
}

// Text from a file is escaped before it reaches a terminal.
func ExampleClean() {
	fmt.Println(fault.Clean("a\x1b[2Jb", 20))
	// Output: a\x1b[2Jb
}

// A reader that knows the file's name and the path in its tree adds them where the
// error passes.
func ExampleInFile() {
	err := error(fault.New(fault.Checksum, "a wrong CRC-32").InRecord("data/7"))
	fmt.Println(fault.InFile(fault.OnPath(err, "fc.weight"), "model.pt"))
	fmt.Println(fault.InFile(io.EOF, "model.pt"))
	// Output:
	// model.pt: data/7: fc.weight: checksum mismatch: a wrong CRC-32
	// EOF
}
