// Package remote opens checkpoints over http and https, on a web server or a
// model hub, without downloading them: [Open] gives a [checkpoint.Source] that
// reads the ranges of bytes that are asked for.
//
//	src, err := remote.Open(ctx, "hf://org/model/model.safetensors")
//	if err != nil { … }
//	ckpt, err := wick.OpenSource(ctx, src) // owns src from here on
//
// The front door takes a source rather than a URL: a program that never imports
// this package does not carry an HTTP client, and a file name from a stranger
// never makes a request.
//
// # What is read
//
// Bytes come in blocks of 256 KiB and are kept as far as [CacheBytes] allows, the
// least recently used going first. Who reads in order is read ahead of, the
// further the longer it goes on. Reads of several mebibytes go straight to the
// caller's memory.
//
// Every block is of one version of the file: its ETag, or its time of
// modification where it has none, and its size are those of the first answer,
// or the read fails with [fault.ErrChanged]. Lost connections, bodies that end
// early and answers 408, 429 and 5xx are tried again, with growing pauses, from
// where they broke off.
//
// A server without ranges gives a file only from its beginning. What is small is
// then held in memory; for the rest [Open] fails with [ErrNoRanges], and
// [OpenStream] reads it in one pass.
//
// # Hub names
//
// hf://ORG/MODEL[@REVISION]/FILE is FILE of a model repository on a hub with
// Hugging Face's URL scheme, ENDPOINT/ORG/MODEL/resolve/REVISION/FILE, where
// REVISION is main unless it is given. hf://ORG/MODEL is the repository as a
// [checkpoint.Folder], in which the same files are preferred as in a local one.
// HF_ENDPOINT names another hub than https://huggingface.co.
//
// # Security
//
// The token of HF_TOKEN, or of the file that HF_TOKEN_PATH names, is sent to the endpoint's own host and to nobody it
// redirects to. User names, passwords and queries of URLs, which often hold
// signatures, stay out of names and errors. An https URL is not followed to
// http. What a server claims is compared with what it sends, and nothing is
// allocated from a claim. Proxies are those of the environment, as
// [net/http.ProxyFromEnvironment] reads it.
package remote
