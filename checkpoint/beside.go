package checkpoint

import (
	"errors"
	"io"
	"io/fs"

	"github.com/wick-ml/wick/fault"
)

// Beside reads the small file called name that lies with the weights: in the
// folder that was opened, or in the folder of the file. It fails with
// [fault.ErrNotFound] when there is none or the source has no neighbours, and
// with [fault.ErrLimit] when it is larger than most bytes.
type Beside func(name string, most int64) ([]byte, error)

// Beside reads a small file that lies with the weights, see [Beside].
func (c *Checkpoint) Beside(name string, most int64) ([]byte, error) {
	if c.near == nil {
		return nil, absent(name)
	}
	src, err := c.near.Sibling(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(name)
	}
	if err != nil {
		return nil, err
	}
	b, err := readSmall(src, most)
	return b, errors.Join(err, src.Close())
}

func absent(name string) error {
	return fault.New(fault.NotFound, "no "+name+" beside the weights")
}

func readSmall(src Source, most int64) ([]byte, error) {
	if src.Size() > most {
		e := fault.NewBound("bytes of a file beside the weights", src.Size(), most).In(src.Name())
		e.Cure = "no sound one is so large: get the model's own"
		return nil, e
	}
	return io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
}

// neighbours keeps where to look for files beside the weights: with the
// innermost of the sources that can tell.
func (c *Checkpoint) neighbours(src Source) {
	if near, ok := src.(Siblings); ok && c.near == nil {
		c.near = near
	}
}
