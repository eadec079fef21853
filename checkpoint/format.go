package checkpoint

import "context"

// Format is one way in which checkpoints are kept. Adding a format is writing
// one of these and naming it in the list of the root package.
type Format interface {
	// Name is the format's short name: "zip", "legacy", "safetensors" …
	Name() string
	// Sniff reports whether the source looks like this format, from its first
	// bytes alone (at most SniffLen; for a [Folder] head is nil and the format
	// looks at the listing). Suffixes decide nothing.
	Sniff(head []byte, src Source) bool
	// Open reads the metadata: the directory and the pickle or header, never a
	// tensor's bytes. On success the checkpoint owns src; on an error the
	// caller still does.
	Open(ctx context.Context, src Source, env *Env) (*Checkpoint, error)
}

// SniffLen is how many first bytes [Format.Sniff] is given.
const SniffLen = 4096

// Env is what the front door gives to a format.
type Env struct {
	Limits  Limits // with defaults filled in
	Asked   Limits // as the caller gave them: zero where a default counts
	Salvage bool   // go on over wrong checksums; the report says so

	present int64 // bytes of the file, if they are known; see [Env.Following]

	// Open opens another source with whatever format it has: a shard, or what
	// is inside a wrapper such as gzip. Depth is counted, so that wrappers
	// inside wrappers end.
	Open func(ctx context.Context, src Source) (*Checkpoint, error)
}
