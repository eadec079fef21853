package remote

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// IsURL reports whether name is a URL rather than the name of a file: a scheme of
// two letters or more, and two slashes. [Open] says which schemes there are.
func IsURL(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	if !ok || len(scheme) < 2 { // C://x is a file of Windows
		return false
	}
	for i, c := range []byte(strings.ToLower(scheme)) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return true
}

// Redact returns a URL fit to be shown: without user, password and fragment, and
// with … for its query, which may hold a signature. Other names stay as they are.
func Redact(name string) string {
	if !IsURL(name) {
		return name
	}
	scheme, rest, _ := strings.Cut(name, "://")
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, query := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 && !isHubScheme(scheme) {
		host = host[i+1:]
	}
	shown := scheme + "://" + host
	if len(rest) > len(host) && strings.Contains(rest, "/") {
		shown += "/" + path
	}
	if query {
		shown += "?…"
	}
	return shown
}

func isHubScheme(scheme string) bool { return strings.EqualFold(scheme, "hf") }

// location is what a name means.
type location struct {
	shown  string   // the name without secrets
	url    *url.URL // nil for a whole repository
	repo   *repoName
	inRepo string // the file in repo
}

// locate reads a name.
func locate(name string, h *hub) (*location, error) {
	loc := &location{shown: Redact(name)}
	scheme, rest, _ := strings.Cut(name, "://")
	switch strings.ToLower(scheme) {
	case "hf":
		repo, file, err := parseHubName(rest)
		if err != nil {
			return nil, fault.New(fault.Usage, err.Error()).In(loc.shown).
				Needs("hf://ORG/MODEL[@REVISION]/FILE, or hf://ORG/MODEL", "")
		}
		loc.repo, loc.inRepo = repo, file
		if file != "" {
			loc.url = h.fileURL(repo, file)
		}
		return loc, nil
	case "http", "https":
		u, err := url.Parse(name)
		if err != nil || u.Host == "" { // the error quotes the URL
			return nil, fault.New(fault.Usage, "no sound URL").In(loc.shown).Needs("https://HOST/PATH", "")
		}
		u.Fragment, u.RawFragment = "", ""
		loc.url = h.pageToFile(u)
		return loc, nil
	default:
		return nil, unknownScheme(strings.ToLower(scheme), loc.shown)
	}
}

func unknownScheme(scheme, shown string) error {
	e := fault.New(fault.Usage, "URLs of the scheme "+fault.Clean(scheme, 40)).In(shown).Needs("http, https or hf", "")
	switch scheme {
	case "s3", "gs", "azblob":
		e.Cure = "give a presigned https URL, or open it with package remote/cloud"
	case "file":
		e.Cure = "give the path alone"
	}
	return e
}

// repoName is a repository on a hub at a revision.
type repoName struct {
	kind     string // "models", "datasets" or "spaces", as the hub's API has it
	id       string // ORG/MODEL
	revision string
}

// A revision may hold slashes in these two forms.
var refRevision = regexp.MustCompile(`^refs/(?:pr|convert)/[^/]+`)

type nameError string

// Error says what is wrong with the name.
func (e nameError) Error() string { return string(e) }

// parseHubName reads what follows hf://. Old models have no organisation; they
// can only be named as a whole.
func parseHubName(rest string) (repo *repoName, file string, err error) {
	r := &repoName{kind: "models", revision: "main"}
	for _, kind := range []string{"models", "datasets", "spaces"} {
		if after, ok := strings.CutPrefix(rest, kind+"/"); ok {
			r.kind, rest = kind, after
		}
	}
	id, after, hasRevision := strings.Cut(rest, "@")
	if hasRevision && strings.Count(id, "/") <= 1 {
		if r.revision = refRevision.FindString(after); r.revision == "" {
			r.revision, _, _ = strings.Cut(after, "/")
		}
		file = strings.TrimPrefix(after[len(r.revision):], "/")
		if r.revision, err = url.PathUnescape(r.revision); err != nil || r.revision == "" {
			return nil, "", nameError("a hub name without a sound revision behind its @")
		}
	} else {
		parts := strings.SplitN(rest, "/", 3)
		id = strings.Join(parts[:min(len(parts), 2)], "/")
		if len(parts) == 3 {
			file = parts[2]
		}
	}
	if r.id = id; file == "" && !hasRevision {
		r.id = strings.TrimSuffix(id, "/")
	}
	org, model, both := strings.Cut(r.id, "/")
	if org == "" || both && model == "" || strings.ContainsAny(r.id, "?#%") || strings.Contains("/"+r.id+"/", "/../") {
		return nil, "", nameError("a hub name without its model")
	}
	return r, file, nil
}
