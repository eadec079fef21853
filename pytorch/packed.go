package pytorch

import (
	"context"
	"path"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// packed is a file in an archive of any kind that people pack files in.
type packed struct {
	name string
	size int64
	head func() ([]byte, error) // its first bytes, nil for what cannot be read
}

// isShadow tells hidden files, and what macOS keeps beside others.
func isShadow(name string) bool {
	return strings.HasPrefix(path.Base(name), ".") || strings.Contains("/"+name, "/__MACOSX/")
}

// maxLook is how many files of an archive are looked into for a checkpoint.
const maxLook = 1000

// findOnly returns the index of the one file that is a checkpoint.
func findOnly(kind string, files []packed) (int, error) {
	switch {
	case len(files) == 0:
		return 0, fault.New(fault.Malformed, "a "+kind+" archive without files").Needs("a checkpoint of PyTorch", "get it again")
	case len(files) == 1 && files[0].size < minFile && !isCheckpointName(files[0].name):
		return 0, noneOf(kind, files) // nothing was cut short: nobody said that it is a checkpoint
	case len(files) == 1:
		return 0, nil // whatever it is: its own format will say
	case len(files) > maxLook:
		return 0, noneOf(kind, files)
	}
	var found []packed
	only := 0
	for i, f := range files {
		head, err := f.head()
		if err != nil {
			return 0, err
		}
		if looksLikeCheckpoint(head) {
			found, only = append(found, f), i
		}
	}
	switch len(found) {
	case 0:
		return 0, noneOf(kind, files)
	case 1:
		return only, nil
	default:
		return 0, fault.New(fault.Unsupported, "several checkpoints in a "+kind+" archive: "+packedNames(found)).
			Needs("one", "unpack it and open the one that you want")
	}
}

// isCheckpointName tells the names that people give to checkpoints.
func isCheckpointName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".tar", ".t7", ".pt2", ".ptl", ".distcp", ".model", ".zip", ".safetensors", ".gguf", ".cbor":
		return true
	}
	return false
}

// looksLikeCheckpoint reports whether a file's head is one of a checkpoint.
func looksLikeCheckpoint(head []byte) bool {
	for _, f := range Formats() {
		if _, isForeign := f.(foreignFormat); !isForeign && f.Sniff(head, nil) {
			return true
		}
	}
	return isSafetensors(head) || hasPrefix(head, "GGUF")
}

func noneOf(kind string, files []packed) error {
	return fault.New(fault.Unsupported, "a "+kind+" archive of "+count(len(files), "file")+" without a checkpoint: "+packedNames(files)).
		Needs("data.pkl, or one file that is a checkpoint", "unpack it and open the checkpoint inside, if there is one")
}

// packedNames lists the first few names.
func packedNames(files []packed) string {
	var names []string
	for i, f := range files {
		if i == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, fault.Clean(f.name, 60))
	}
	return strings.Join(names, ", ")
}

// openTarred opens the one file of a tar that is a checkpoint itself, as models
// are packed with their settings: model.tar.gz, .nemo.
func openTarred(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	var files []packed
	var headers []*tarHeader
	err := tarFiles(src, env.Limits, func(h *tarHeader) error {
		if h.size > 0 && !isShadow(h.name) {
			files = append(files, packed{h.name, h.size, func() ([]byte, error) { return checkpoint.Head(h.source(src)) }})
			headers = append(headers, h)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	only, err := findOnly("tar", files)
	if err != nil {
		return nil, err
	}
	h := headers[only]
	if h.odd != "" {
		return nil, fault.New(fault.Malformed, "a member "+h.odd).InRecord(h.name).At(h.off).Needs("a plain file", fault.MadeToDeceive)
	}
	c, err := env.Open(ctx, checkpoint.Owned(h.source(src), src))
	if err != nil {
		return nil, err
	}
	return inside(c, "tar"), nil
}

// source is the member as a file.
func (h *tarHeader) source(tar checkpoint.Source) checkpoint.Source {
	return checkpoint.Section(tar, h.off, h.size, tar.Name()+"/"+h.name)
}
