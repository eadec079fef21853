package record_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Records keep the whole tree, scalars and texts included.
func Example() {
	ctx := context.Background()
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("epoch"), nested.Int(3)); err != nil {
		log.Fatal(err)
	}
	target := try(checkpoint.FindTarget(record.Targets(), "model.json"))
	out := try(target.Plan(root, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{Writer: "example"}}))
	var file bytes.Buffer
	try(checkpoint.WriteStream(ctx, &file, out.Files[0].Layout))
	c := try(checkpoint.Open(ctx, checkpoint.NewBytes("model.json", file.Bytes()), record.Formats(), checkpoint.Options{}))
	defer c.Close()
	back, _ := c.Root.(*nested.Map)
	epoch, _ := back.Lookup("epoch")
	fmt.Println(target.Name(), nested.Repr(epoch))
	// Output: json 3
}
