package shards

import (
	"context"
	"errors"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// union is several opened shards on their way to one checkpoint.
type union struct {
	near   checkpoint.Siblings
	env    *checkpoint.Env
	owner  map[string]string // tensor name to the file that has it, nil where nobody says
	root   *nested.Map
	record nested.Value      // the tree of a record in shards, else nil
	from   map[string]string // tensor name to the file that it came from
	info   checkpoint.Info
	opened []*checkpoint.Checkpoint
	ahead  *ahead // nil where shards are opened one after the other
}

func newUnion(near checkpoint.Siblings, env *checkpoint.Env) *union {
	return &union{near: near, env: env, root: nested.NewMap("dict"), from: map[string]string{}}
}

// expect says which shards will be opened. Where they are far away several are
// opened at a time.
func (u *union) expect(ctx context.Context, names []string) {
	if checkpoint.IsDistant(u.near) && len(names) > 1 {
		u.ahead = newAhead(ctx, names, u.openOne)
	}
}

// open opens one shard.
func (u *union) open(ctx context.Context, name string) (*checkpoint.Checkpoint, error) {
	var o opened
	early := false
	if u.ahead != nil {
		o, early = u.ahead.take(name)
	}
	if !early {
		o = u.openOne(ctx, name)
	}
	if o.err != nil {
		return nil, o.err
	}
	u.opened = append(u.opened, o.c)
	u.info.Storages = append(u.info.Storages, o.c.Info.Storages...)
	u.info.Rest = append(u.info.Rest, o.c.Info.Rest...)
	u.info.Globals = append(u.info.Globals, o.c.Info.Globals...)
	u.info.Producer, u.info.Order = o.c.Info.Producer, o.c.Info.Order
	u.info.Records = append(u.info.Records, checkpoint.Record{Name: name, Size: o.size, Stored: o.size})
	return o.c, nil
}

// openOne opens a shard and changes nothing of u, so that several can be opened
// at a time.
func (u *union) openOne(ctx context.Context, name string) opened {
	src, err := u.near.Sibling(name)
	if err != nil {
		return opened{err: missingShard(err, name)}
	}
	head, err := checkpoint.Head(src)
	if err == nil && looksLikeIndex(head) {
		err = fault.New(fault.Malformed, "a shard that is an index itself: "+name).Needs("a shard with tensors", "write the index again")
	}
	if err != nil {
		return opened{err: errors.Join(err, src.Close())}
	}
	c, err := u.env.Open(ctx, src)
	if err != nil {
		return opened{err: errors.Join(err, src.Close())}
	}
	return opened{c: c, size: src.Size()}
}

// missingShard says that a file is absent rather than which call failed.
func missingShard(err error, name string) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Kind != fault.NotFound {
		return err // the name itself, or the system, is at fault
	}
	return fault.New(fault.Malformed, "the shard "+name+" is missing").
		Needs("every shard in the folder", "download the missing file")
}

// add opens a shard and takes its entries.
func (u *union) add(ctx context.Context, name string) error {
	c, err := u.open(ctx, name)
	if err != nil {
		return err
	}
	m, ok := c.Root.(*nested.Map)
	if !ok {
		return fault.New(fault.Unsupported, "a shard whose top is a "+nested.TypeName(c.Root)).InRecord(name).
			Needs("a state dict", "open the file by itself")
	}
	for key, value := range m.All() {
		if err := u.take(name, key, value); err != nil {
			return err
		}
	}
	return nil
}

// take puts one entry of a shard into the union. Where an index says who has a
// name, other shards' entries of that name are passed over, as in torch the
// last one loaded would win by accident.
func (u *union) take(file string, key, value nested.Value) error {
	name := nested.KeyName(key)
	if owner, ok := u.owner[name]; ok && owner != file {
		return nil
	}
	if other, twice := u.from[name]; twice {
		return fault.New(fault.Collision, "the same name in "+other+" and "+file).OnPath(name).
			Needs("each name in one shard", "keep the index beside the shards, or open one of them")
	}
	u.from[name] = file
	return u.root.Set(key, value)
}

// missing reports a name that the index promises and no shard has.
func (u *union) missing(x *index) error {
	for _, name := range x.names {
		if _, ok := u.from[name]; !ok {
			return fault.New(fault.Malformed, "the index says that "+x.shardOf[name]+" holds "+name+", and it does not").
				InRecord(x.shardOf[name]).OnPath(name).Needs("shards that go with their index", "download index and shards together")
		}
	}
	return nil
}

// finish makes the checkpoint, which owns the shards and src.
func (u *union) finish(src checkpoint.Source, format string, metadata map[string]string) (*checkpoint.Checkpoint, error) {
	if err := u.stop(); err != nil {
		return nil, u.abandon(err)
	}
	u.info.Name, u.info.Format, u.info.Metadata = src.Name(), format, metadata
	present := src.Size()
	for _, r := range u.info.Records {
		present += r.Size
	}
	root := nested.Value(u.root)
	if u.record != nil {
		root = u.record
	}
	c, err := checkpoint.New(root, u.info, u.env.Following(present), func() error { return errors.Join(u.close(), src.Close()) })
	if err != nil {
		return nil, u.abandon(err)
	}
	return c, nil
}

func (u *union) abandon(err error) error { return errors.Join(err, u.stop(), u.close()) }

// stop ends what was begun ahead.
func (u *union) stop() error {
	if u.ahead == nil {
		return nil
	}
	a := u.ahead
	u.ahead = nil
	return a.stop()
}

func (u *union) close() error {
	var errs []error
	for _, c := range u.opened {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
