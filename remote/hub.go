package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// hub is a server with Hugging Face's URL scheme.
type hub struct {
	endpoint *url.URL
	token    string
}

func newHub(endpoint, token string) (*hub, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.Usage, "HF_ENDPOINT "+Redact(endpoint)).Needs("an http or https URL", "unset it for "+DefaultHub)
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	u.RawQuery, u.Fragment = "", ""
	return &hub{endpoint: u, token: strings.TrimSpace(token)}, nil
}

// owns reports whether a URL is the hub's own, so that it may see the token.
func (h *hub) owns(u *url.URL) bool { return sameHost(h.endpoint, u) }

func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}

// fileURL is where a file of a repository is.
func (h *hub) fileURL(r *repoName, file string) *url.URL {
	prefix := ""
	if r.kind != "models" {
		prefix = "/" + r.kind
	}
	return h.below(prefix+"/"+r.id+"/resolve/", r.revision, "/"+file)
}

// below joins a path to the endpoint. In a revision a slash is escaped.
func (h *hub) below(front, revision, behind string) *url.URL {
	u := *h.endpoint
	u.Path += front + revision + behind
	u.RawPath = (&url.URL{Path: h.endpoint.Path + front}).EscapedPath() + url.PathEscape(revision) + (&url.URL{Path: behind}).EscapedPath()
	return &u
}

// pageToFile turns the address of a file's page on the hub, which is what people
// copy from their browser, into that of the file.
func (h *hub) pageToFile(u *url.URL) *url.URL {
	if !h.owns(u) {
		return u
	}
	parts := strings.Split(u.EscapedPath(), "/") // "", ORG, MODEL, "blob", REVISION, FILE …
	if len(parts) < 6 || parts[3] != "blob" {
		return u
	}
	parts[3] = "resolve"
	moved := *u
	moved.RawPath = strings.Join(parts, "/")
	path, err := url.PathUnescape(moved.RawPath)
	if err != nil {
		return u
	}
	moved.Path = path
	return &moved
}

// repo is a repository of a hub as a folder.
type repo struct {
	checkpoint.Source // has no bytes; counts the uses
	ctx               context.Context
	client            *client
	loc               *location

	once  sync.Once
	files []string
	err   error
}

func (c *client) openRepo(ctx context.Context, loc *location) checkpoint.Source {
	return &repo{Source: checkpoint.NewReaderAt(loc.shown, strings.NewReader(""), 0), ctx: ctx, client: c, loc: loc}
}

// Acquire lets Close wait until Release.
func (r *repo) Acquire() error { return checkpoint.GuardOf(r.Source).Acquire() }

// Release ends the use.
func (r *repo) Release() error { return checkpoint.GuardOf(r.Source).Release() }

// Distant reports true.
func (r *repo) Distant() bool { return true }

// Requests returns how many requests were made so far, and the bytes of all
// bodies, together with those of its files.
func (r *repo) Requests() (requests, bytes int64) {
	return r.client.requests.Load(), r.client.fetched.Load()
}

// Sibling opens a file of the repository.
func (r *repo) Sibling(name string) (checkpoint.Source, error) {
	return checkpoint.OpenSibling(name, func(name string) (checkpoint.Source, error) {
		if _, err := r.List(); err != nil { // fixes the revision
			return nil, err
		}
		shown := strings.TrimSuffix(r.loc.shown, "/") + "/" + name
		return r.client.open(r.ctx, &location{shown: shown, repo: r.loc.repo, inRepo: name, url: r.client.hub.fileURL(r.loc.repo, name)})
	})
}

// List asks the hub for the names of the files, once, and fixes the revision to
// the commit that it answers for. A hub without that question is asked for the
// files that libraries look for.
func (r *repo) List() ([]string, error) {
	r.once.Do(func() {
		r.files, r.err = r.ask()
		if isMissing(r.err) {
			r.files, r.err = r.probe()
		}
		slices.Sort(r.files)
	})
	return slices.Clone(r.files), r.err
}

// maxRepoInfo bounds the hub's answer, bytes: the largest repositories have some
// ten thousand files.
const maxRepoInfo = 64 << 20

func (r *repo) ask() ([]string, error) {
	name := r.loc.repo
	u := r.client.hub.below("/api/"+name.kind+"/"+name.id+"/revision/", name.revision, "")
	body, err := r.client.fetchSmall(r.ctx, u, r.loc.shown, maxRepoInfo)
	if err != nil {
		return nil, err
	}
	var info struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, fault.Wrap(fault.IO, "the hub answers no list of files", fs.ErrNotExist).In(r.loc.shown)
	}
	if err := checkpoint.At("shards", int64(len(info.Siblings)), r.client.opts.limits.Shards); err != nil {
		return nil, fault.InFile(err, r.loc.shown)
	}
	files := make([]string, len(info.Siblings))
	for i, s := range info.Siblings {
		files[i] = s.Name
	}
	if isCommit(info.SHA) {
		fixed := *name
		fixed.revision = info.SHA
		r.loc = &location{shown: r.loc.shown, repo: &fixed}
	}
	return files, nil
}

func isCommit(sha string) bool {
	return len(sha) >= 7 && len(sha) <= 64 && strings.Trim(sha, "0123456789abcdef") == ""
}

// probe looks for the files that the libraries of hubs look for, in their order
// (transformers/utils/__init__.py: SAFE_WEIGHTS_NAME and after it).
func (r *repo) probe() ([]string, error) {
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"} {
		exists, err := r.client.exists(r.ctx, r.client.hub.fileURL(r.loc.repo, name), r.loc.shown)
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		files := []string{name}
		config, err := r.client.exists(r.ctx, r.client.hub.fileURL(r.loc.repo, "config.json"), r.loc.shown)
		if config {
			files = append(files, "config.json")
		}
		return files, err
	}
	return nil, fault.Wrap(fault.NotFound, "no such repository, or no weights in it", fs.ErrNotExist).In(r.loc.shown).
		Needs("model.safetensors, pytorch_model.bin or an index of shards", "name the file: "+r.loc.shown+"/FILE")
}

// exists reports whether a URL can be got.
func (c *client) exists(ctx context.Context, u *url.URL, shown string) (bool, error) {
	err := c.opts.again(ctx, func() error {
		resp, _, err := c.get(ctx, u, http.Header{"Range": {"bytes=0-0"}})
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode < 300 || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return nil
		}
		return c.refused(resp)
	})
	if isMissing(err) {
		return false, nil
	}
	return err == nil, fault.InFile(err, shown)
}

// fetchSmall gets a whole small answer.
func (c *client) fetchSmall(ctx context.Context, u *url.URL, shown string, most int64) ([]byte, error) {
	var body []byte
	err := c.opts.again(ctx, func() error {
		resp, _, err := c.get(ctx, u, nil)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return c.refused(resp)
		}
		if body, err = io.ReadAll(io.LimitReader(resp.Body, most+1)); err != nil {
			return Temporary(lost(err))
		}
		if int64(len(body)) > most {
			return fault.NewBound("bytes of the hub's answer", int64(len(body)), most)
		}
		return nil
	})
	return body, fault.InFile(err, shown)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func httpStatus(code int) string { return "HTTP " + strconv.Itoa(code) }
