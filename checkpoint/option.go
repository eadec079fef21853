package checkpoint

// Options is what a caller may ask of a front door. The zero value asks for
// nothing and has the default limits.
type Options struct {
	Limits  Limits
	asked   Limits // the same without defaults
	Mmap    bool   // lend the file's memory instead of copying, see [MapFile]
	Salvage bool   // go on over wrong checksums; the report says so

	Join bool // open Meta's model-parallel shards as one state dict

	SpoolMemory int64  // bytes of a stream that may be held when it cannot be read in order; default 32 MiB
	SpoolDir    string // folder for a temporary file of what is more; none if empty
}

// Option is one thing that a caller asks of a front door. The same options
// serve every package that opens checkpoints.
type Option func(*Options)

// WithLimits bounds what a file may ask for. Zero fields keep their defaults.
func WithLimits(l Limits) Option { return func(o *Options) { o.Limits = l } }

// Mmap maps local files, so that tensors can be views of them: see [MapFile]
// for what that asks of the caller.
func Mmap() Option { return func(o *Options) { o.Mmap = true } }

// Salvage goes on over wrong checksums. The values that were read under a
// wrong checksum are reported, never passed over in silence.
func Salvage() Option { return func(o *Options) { o.Salvage = true } }

// Join opens a folder of Meta's consolidated.NN.pth as the one state dict that
// they were cut from, under Meta's names, rather than as a map from the shards'
// names to their state dicts: see package llama. It changes nothing of other
// files and folders.
func Join() Option { return func(o *Options) { o.Join = true } }

// SpoolMemory bounds the bytes of a stream that are held in memory where it
// cannot be read in order: by default 32 MiB.
func SpoolMemory(bytes int64) Option { return func(o *Options) { o.SpoolMemory = bytes } }

// Spool allows a temporary file in the folder dir for what a stream that cannot
// be read in order has beyond [SpoolMemory]. Without it that is an error.
func Spool(dir string) Option { return func(o *Options) { o.SpoolDir = dir } }

// Env is what the options are for a format, whose Open is still to be set.
func (o *Options) Env() *Env {
	return &Env{Limits: o.Limits.Default(), Asked: o.asked, Salvage: o.Salvage}
}

// defaultSpoolMemory is what [SpoolMemory] is when nothing is said.
const defaultSpoolMemory = 32 << 20

// NewOptions puts options together; a later one wins. It fails with
// [fault.ErrUsage] on a negative limit.
func NewOptions(opts ...Option) (Options, error) {
	var o Options
	for _, opt := range opts {
		opt(&o)
	}
	err := o.Limits.Check()
	o.asked, o.Limits = o.Limits, o.Limits.Default()
	if o.SpoolMemory <= 0 {
		o.SpoolMemory = defaultSpoolMemory
	}
	return o, err
}
