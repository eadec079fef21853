package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
)

// openOptions is what flags say about opening.
type openOptions struct {
	limits  checkpoint.Limits
	salvage bool
	keep    bool      // bytes are read more than once: a stream is held
	stdin   io.Reader // for the name -
	memory  int64     // bytes of it that may be held, 0 for the default
	spool   string    // folder for a temporary file of the rest, "" for none
	far     *far      // for files on servers
	join    bool      // Meta's shards become one state dict
}

// openArg opens a FILE argument under the flags of all commands. With salvage
// it goes on over wrong checksums. A stream gives its bytes to one run.
func (a *app) openArg(ctx context.Context, name string, salvage bool) (*checkpoint.Checkpoint, error) {
	return a.openWith(ctx, name, openOptions{salvage: salvage})
}

// openKept is openArg for what reads tensors more than once: of a stream all is
// held.
func (a *app) openKept(ctx context.Context, name string) (*checkpoint.Checkpoint, error) {
	return a.openWith(ctx, name, openOptions{keep: true})
}

func (a *app) openWith(ctx context.Context, name string, o openOptions) (*checkpoint.Checkpoint, error) {
	if name == "" {
		return nil, fault.New(fault.Usage, "a FILE without a name").Needs("", "name a file, or - for standard input")
	}
	limits, err := parseLimits(a.limits)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	o.limits, o.stdin, o.memory, o.spool, o.far, o.join = limits, a.in, a.memory, a.spool, a.farAway(), a.shards.opening
	c, err := a.open(ctx, name, o)
	o.far.arrived()
	if errors.Is(err, fs.ErrNotExist) && name != "-" && !remote.IsURL(name) && isMissing(name) {
		return nil, missingFile(name)
	}
	if err != nil {
		return nil, err
	}
	a.remark("opened %s: %s, %s, %s", fault.Clean(remote.Redact(name), maxName), c.Info.Format, human.Plural(c.Len(), "tensor"), elapsed(start))
	return c, nil
}

func isMissing(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// maxSiblings bounds the names that are looked through for a near miss.
const maxSiblings = 2000

// missingFile says that there is no such file and which one may be meant.
func missingFile(name string) error {
	e := &fault.Error{Kind: fault.NotFound, File: name, Found: "no such file or folder"}
	dir, base := filepath.Split(name)
	if near := nested.Nearest(base, siblings(dir)); near != "" {
		e.Cure = "did you mean " + dir + near + "?"
	}
	return e
}

// siblings lists a folder for a suggestion; a folder that cannot be read has none.
func siblings(dir string) []string {
	if dir == "" {
		dir = "."
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read from
	names, _ := f.Readdirnames(maxSiblings)
	return names
}

// close closes a checkpoint that was only read: what that can fail with no
// longer matters to what was printed.
func (a *app) close(c *checkpoint.Checkpoint) { _ = c.Close() }
