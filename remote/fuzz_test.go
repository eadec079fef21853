package remote

import (
	"strings"
	"testing"
)

// FuzzContentRange holds what is relied on of a range that a server claims. Seen
// to catch: a range that was not asked to end after it begins.
func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 0-9/100", "bytes 0-9/*", "bytes */100", "bytes 9-0/5", "bytes -1-2/3", "items 0-9/10", "bytes 0-9/99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := parseContentRange(text)
		if !ok {
			return
		}
		whole := r.start == -1 && r.last == -1
		if !whole && (r.start < 0 || r.last < r.start || r.total >= 0 && r.last >= r.total) || r.total < -1 {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// FuzzNames holds that no name, however odd, shows its secrets or leaves its
// hub. Seen to catch: a name that was shown with its user and password.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"hf://org/model@refs/pr/1/a", "hf://gpt2", "https://u:p@h/x?q#f", "http://[::1]:80/a%2Fb", "hf://a/b/../../c", "s3://b/k"} {
		f.Add(seed)
	}
	h, err := newHub("https://hub.example", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !IsURL(name) {
			return
		}
		loc, err := locate(name, h)
		if err != nil {
			return
		}
		if loc.repo != nil && loc.url != nil && loc.url.Host != "hub.example" {
			t.Errorf("%q leads to %s", name, loc.url)
		}
		if loc.repo == nil && loc.url.User != nil && strings.Contains(host(loc.shown), "@") {
			t.Errorf("%q is shown as %s", name, loc.shown)
		}
		if loc.url != nil && loc.url.RawQuery != "" && !strings.HasSuffix(loc.shown, "?…") {
			t.Errorf("%q is shown as %s", name, loc.shown)
		}
	})
}

// host is what stands before the path, where users and passwords do; a path may
// have an @ of its own.
func host(name string) string {
	_, rest, _ := strings.Cut(name, "://")
	before, _, _ := strings.Cut(rest, "/")
	return before
}
