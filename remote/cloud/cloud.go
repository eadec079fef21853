// Package cloud opens checkpoints in object stores, without downloading them:
// Amazon S3 and what speaks its protocol, Google Cloud Storage, Azure Blob
// Storage, and whatever else there is a driver of gocloud.dev/blob for.
//
//	src, err := cloud.Open(ctx, "s3://bucket/model.safetensors?region=eu-central-1")
//	if err != nil { … }
//	ckpt, err := wick.OpenSource(ctx, src) // owns src from here on
//
// It is a module of its own, so that the stores' client libraries stay out of
// programs that do not use them. Credentials come from where those libraries
// look for them: the environment, files of the user, the machine's own role.
// Blocks are cached, read ahead and fetched again as in package remote, which
// this package extends.
package cloud

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/remote"
)

// Open opens the object that a URL names: s3://BUCKET/KEY, gs://BUCKET/KEY or
// azblob://CONTAINER/KEY. Its query is the driver's, such as ?region=… and
// ?endpoint=… of S3. A URL that ends with a slash is a [checkpoint.Folder] of
// the objects whose keys begin so. ctx is for the life of the source, which has
// [checkpoint.Siblings] and is safe for concurrent use.
//
// Errors are [fault.ErrNotFound] for an object that is not there, [fault.ErrUsage]
// for a URL that no driver knows, and [fault.ErrIO] for what the store refuses.
func Open(ctx context.Context, name string, opts ...remote.Option) (checkpoint.Source, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return nil, fault.New(fault.Usage, "no sound URL").In(remote.Redact(name)).Needs("s3://BUCKET/KEY, gs://BUCKET/KEY or azblob://CONTAINER/KEY", "")
	}
	key := strings.TrimPrefix(u.Path, "/")
	u.Path, u.RawPath, u.Fragment, u.RawFragment = "", "", "", ""
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, cannotOpen(err, remote.Redact(name))
	}
	p := &place{ctx: ctx, bucket: bucket, opt: remote.Together(opts...), owned: true}
	p.use()
	src, err := p.openAny(key, remote.Redact(name))
	return src, errors.Join(err, p.done())
}

// cannotOpen explains why there is no bucket. The driver's error may quote the
// URL with what is secret in it, and so is not kept.
func cannotOpen(err error, name string) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return explain(err, name)
	}
	return fault.New(fault.Usage, "a URL that no driver opens").In(name).
		Needs("s3://BUCKET/KEY, gs://BUCKET/KEY or azblob://CONTAINER/KEY, and credentials", "see gocloud.dev/howto/blob for what may stand in its query")
}

// OpenObject opens an object of a bucket, or the folder of the objects whose keys
// begin with key where that is empty or ends with a slash. It borrows the bucket.
// name is what errors call the object. Otherwise it is as [Open].
func OpenObject(ctx context.Context, bucket *blob.Bucket, key, name string, opts ...remote.Option) (checkpoint.Source, error) {
	return (&place{ctx: ctx, bucket: bucket, opt: remote.Together(opts...)}).openAny(key, name)
}

// place is where objects are opened. Its bucket is closed with the last of them.
type place struct {
	ctx    context.Context // for the life of the sources
	bucket *blob.Bucket
	opt    remote.Option
	owned  bool // whether the bucket is closed

	mu    sync.Mutex
	users int
}

func (p *place) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

func (p *place) done() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 || !p.owned {
		return nil
	}
	if err := p.bucket.Close(); err != nil {
		return fault.Wrap(fault.IO, "the bucket cannot be closed", err)
	}
	return nil
}

func (p *place) openAny(key, name string) (checkpoint.Source, error) {
	if key == "" || strings.HasSuffix(key, "/") {
		p.use()
		base := &used{Source: checkpoint.NewReaderAt(name, strings.NewReader(""), 0), place: p}
		return &folder{used: base, prefix: key}, nil
	}
	return p.open(key, name)
}

func (p *place) open(key, name string) (checkpoint.Source, error) {
	attrs, err := p.bucket.Attributes(p.ctx, key)
	if err != nil {
		return nil, explain(err, name)
	}
	o := &object{bucket: p.bucket, key: key, name: name, size: attrs.Size, modified: attrs.ModTime, etag: attrs.ETag}
	var google storage.ObjectAttrs
	if attrs.As(&google) {
		o.generation = google.Generation
	}
	src, err := remote.NewSource(p.ctx, name, attrs.Size, o, p.opt)
	if err != nil {
		return nil, err
	}
	p.use()
	return &file{used: &used{Source: src, place: p}, key: key}, nil
}

// used is a source that keeps its place open.
type used struct {
	checkpoint.Source
	*place
	once sync.Once
	err  error
}

// Distant reports true.
func (u *used) Distant() bool { return true }

// Acquire lets Close wait until Release.
func (u *used) Acquire() error { return checkpoint.GuardOf(u.Source).Acquire() }

// Release ends the use. Each range that was read was compared with the version
// that was opened, so nothing is left to check.
func (u *used) Release() error { return checkpoint.GuardOf(u.Source).Release() }

// Close waits for running reads, and closes the bucket after its last source if
// it was opened for them.
func (u *used) Close() error {
	u.once.Do(func() { u.err = errors.Join(u.Source.Close(), u.done()) })
	return u.err
}

// object is one version of an object.
type object struct {
	bucket    *blob.Bucket
	key, name string
	size      int64
	modified  time.Time
	etag      string
	// generation is Google's number of the version, 0 in other stores. Its listing
	// has fractions of the second in which an object changed, its answers have none.
	generation int64
}

// Range starts reading. Where the store can be told which version is meant it is,
// and what every store tells of an answer is compared.
func (o *object) Range(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	r, err := o.bucket.NewRangeReader(ctx, o.key, off, n, &blob.ReaderOptions{BeforeRead: o.condition})
	switch {
	case gcerrors.Code(err) == gcerrors.FailedPrecondition,
		gcerrors.Code(err) == gcerrors.NotFound && o.generation != 0: // there is no such version
		return nil, o.changed()
	case err != nil:
		return nil, explain(err, o.name)
	case r.Size() != o.size || o.generation == 0 && !r.ModTime().Equal(o.modified):
		return nil, errors.Join(o.changed(), r.Close())
	}
	return r, nil
}

func (o *object) condition(as func(any) bool) error {
	var options *[]func(*s3.Options)
	if as(&options) {
		*options = append(*options, func(o *s3.Options) { o.DisableLogOutputChecksumValidationSkipped = true }) // ranges have none
	}
	var get *s3.GetObjectInput
	if as(&get) && o.etag != "" {
		get.IfMatch = &o.etag
	}
	var handle **storage.ObjectHandle
	if as(&handle) && o.generation != 0 {
		*handle = (*handle).Generation(o.generation)
	}
	return nil
}

func (o *object) changed() error {
	return fault.New(fault.Changed, "the store has another version of it").In(o.name).
		Needs("an object that stays as it is", "read it again")
}

// explain makes a fault of a store's error, and marks it where another try may
// help.
func explain(err error, name string) error {
	var quoting *url.Error // a URL of the store may hold a signature
	cause := err
	if errors.As(err, &quoting) {
		cause = quoting.Err
	}
	switch gcerrors.Code(err) {
	case gcerrors.Canceled:
		return context.Canceled
	case gcerrors.NotFound:
		return fault.Wrap(fault.NotFound, "no such object in the store", fs.ErrNotExist).In(name).Needs("", "check the bucket and the key")
	case gcerrors.PermissionDenied:
		return fault.Wrap(fault.IO, "the store refuses access", cause).In(name).Needs("permission to read it", "check the credentials")
	case gcerrors.InvalidArgument, gcerrors.Unimplemented:
		return fault.Wrap(fault.IO, "the store refuses the request", cause).In(name)
	default:
		return remote.Temporary(fault.Wrap(fault.IO, "the store cannot be read", cause).In(name))
	}
}

// file is an object as a source.
type file struct {
	*used
	key string
}

// Sibling opens the object whose key differs in what follows the last slash.
func (f *file) Sibling(name string) (checkpoint.Source, error) {
	return checkpoint.OpenSibling(name, func(name string) (checkpoint.Source, error) {
		return f.open(upTo(f.key)+name, upTo(f.Name())+name)
	})
}

// upTo is a name up to its last slash, and without a query.
func upTo(name string) string {
	name, _, _ = strings.Cut(name, "?")
	return name[:strings.LastIndex(name, "/")+1]
}

// folder is the objects below a prefix.
type folder struct {
	*used  // has no bytes
	prefix string
}

// Sibling opens an object below the prefix.
func (f *folder) Sibling(name string) (checkpoint.Source, error) {
	return checkpoint.OpenSibling(name, func(name string) (checkpoint.Source, error) {
		base, _, _ := strings.Cut(f.Name(), "?")
		return f.open(f.prefix+name, strings.TrimSuffix(base, "/")+"/"+name)
	})
}

// List returns the keys below the prefix, without it.
func (f *folder) List() ([]string, error) {
	var names []string
	limit := checkpoint.Limits{}.Default().Shards
	for list := f.bucket.List(&blob.ListOptions{Prefix: f.prefix}); ; {
		o, err := list.Next(f.ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, explain(err, f.Name())
		}
		if name := strings.TrimPrefix(o.Key, f.prefix); name != "" && !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
		if err := checkpoint.At("shards", int64(len(names)), limit); err != nil {
			return nil, err
		}
	}
}
