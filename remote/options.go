package remote

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// The defaults of options.
const (
	DefaultCache   = 32 << 20         // bytes, of [CacheBytes]
	DefaultHold    = 32 << 20         // bytes, of [Hold]
	DefaultRetries = 5                // of [Retries]
	DefaultTimeout = 30 * time.Second // of [Timeout]
	DefaultHub     = "https://huggingface.co"
)

// Option is one thing that a caller asks of [Open], [OpenStream] or [NewSource].
type Option func(*options)

type options struct {
	transport http.RoundTripper
	cache     int64
	hold      int64
	retries   int
	pause     time.Duration // before the first retry
	timeout   time.Duration
	endpoint  string
	token     string
	tokenFile string // holds the token, "" for none
	progress  func(fetched int64)
	limits    checkpoint.Limits
	pool      *pool
}

// CacheBytes bounds the blocks that a source keeps and reads ahead, together with
// its siblings, in bytes: at least 4 MiB.
func CacheBytes(n int64) Option { return func(o *options) { o.cache = max(n, leastCache) } }

// Together joins options into one. All sources that are opened with it keep no
// more than [CacheBytes] together.
func Together(opts ...Option) Option {
	var once sync.Once
	var shared *pool
	return func(o *options) {
		for _, opt := range opts {
			opt(o)
		}
		once.Do(func() { shared = newPool(o.cache) })
		o.pool = shared
	}
}

// Hold bounds the bytes of a file that is held in memory because its server has
// no ranges. 0 holds none.
func Hold(n int64) Option { return func(o *options) { o.hold = max(n, 0) } }

// Retries sets how often a request is repeated that brought nothing, 0 for never.
func Retries(n int) Option { return func(o *options) { o.retries = max(n, 0) } }

// Timeout sets how long a server may be silent before the request counts as
// lost.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Transport sets what makes the requests, instead of a copy of
// [http.DefaultTransport]. It must be safe for concurrent use and not follow
// redirects.
func Transport(t http.RoundTripper) Option { return func(o *options) { o.transport = t } }

// Hub sets the endpoint of hf:// names, a URL, and the token that is sent there,
// "" for none. The default is what HF_ENDPOINT and HF_TOKEN say, and where that is
// empty what is in the file that HF_TOKEN_PATH names, if it is there.
func Hub(endpoint, token string) Option {
	return func(o *options) { o.endpoint, o.token, o.tokenFile = endpoint, token, "" }
}

// Progress calls f after every piece that came, with the bytes that the source
// has fetched so far. It is called from several goroutines at once and must not
// block.
func Progress(f func(fetched int64)) Option { return func(o *options) { o.progress = f } }

// Limits bounds the number of files of a repository, as [checkpoint.Limits] says.
func Limits(l checkpoint.Limits) Option { return func(o *options) { o.limits = l } }

func newOptions(opts []Option) (*options, error) {
	o := &options{
		cache: DefaultCache, hold: DefaultHold, retries: DefaultRetries, timeout: DefaultTimeout,
		pause: 200 * time.Millisecond, endpoint: os.Getenv("HF_ENDPOINT"), token: os.Getenv("HF_TOKEN"),
	}
	if o.token == "" {
		o.tokenFile = os.Getenv("HF_TOKEN_PATH")
	}
	for _, opt := range opts {
		opt(o)
	}
	if err := o.readToken(); err != nil {
		return nil, err
	}
	if o.endpoint == "" {
		o.endpoint = DefaultHub
	}
	if o.timeout <= 0 {
		return nil, fault.New(fault.Usage, "a timeout of "+o.timeout.String()).Needs("a positive one", "")
	}
	o.limits = o.limits.Default()
	if o.pool == nil {
		o.pool = newPool(o.cache)
	}
	return o, nil
}

// readToken takes the token from its file. As for the hub's own tools, a file that
// is not there is no token.
func (o *options) readToken() error {
	if o.tokenFile == "" {
		return nil
	}
	f, err := os.Open(o.tokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.IO, "the token cannot be read", err).In(o.tokenFile).Needs("", "see HF_TOKEN_PATH")
	}
	defer func() { _ = f.Close() }() // only read from
	const most = 4096
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return fault.Wrap(fault.IO, "the token cannot be read", err).In(o.tokenFile).Needs("", "see HF_TOKEN_PATH")
	case len(text) > most || strings.ContainsFunc(strings.TrimSpace(string(text)), unicode.IsSpace):
		return fault.New(fault.Usage, "a file that holds more than a token").In(o.tokenFile).Needs("a token", "see HF_TOKEN_PATH")
	}
	o.token = string(text)
	return nil
}
