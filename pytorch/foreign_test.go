package pytorch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

func TestForeignFiles(t *testing.T) {
	pad := strings.Repeat("\x00", 300)
	cases := []struct {
		data string
		want error
		has  string
	}{
		{"", fault.ErrMalformed, "empty"},
		{"PK\x03", fault.ErrMalformed, "3 bytes"},
		{"\x80", fault.ErrMalformed, "1 byte,"},
		{pad, fault.ErrMalformed, "zero bytes"},
		{"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", fault.ErrUnsupported, "LFS"},
		{"../.git/annex/objects/xx", fault.ErrUnsupported, "git-annex"},
		{"\x12\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}", fault.ErrUnsupported, "safetensors"},
		{"GGUF\x03\x00\x00\x00" + pad, fault.ErrUnsupported, "GGUF"},
		{"GGUF\x03\x00\x00\x00", fault.ErrMalformed, "GGUF"},
		{"lmgg\x00\x00\x00\x00", fault.ErrUnsupported, "GGML"},
		{"\x89HDF\r\n\x1a\n" + pad, fault.ErrUnsupported, "HDF5"},
		{"\x1c\x00\x00\x00TFL3" + pad, fault.ErrUnsupported, "TensorFlow Lite"},
		{"\x18\x00\x00\x00PTMF" + pad, fault.ErrUnsupported, "flatbuffer"},
		{"\x18\x00\x00\x00ET12" + pad, fault.ErrUnsupported, "ExecuTorch"},
		{"\x08\x08\x12\x07pytorch\x1a\x03", fault.ErrUnsupported, "ONNX"},
		{"\x93NUMPY\x01\x00v\x00{'descr'", fault.ErrUnsupported, "NumPy"},
		{"\x89PNG\r\n\x1a\n" + pad, fault.ErrUnsupported, "PNG"},
		{"\xff\xd8\xff\xe0\x00\x10JFIF", fault.ErrUnsupported, "JPEG"},
		{"%PDF-1.7\n%", fault.ErrUnsupported, "PDF"},
		{"\xfd7zXZ\x00\x00\x04", fault.ErrUnsupported, "xz"},
		{"\x04\x22\x4d\x18\x64\x40\xa7\x00", fault.ErrUnsupported, "lz4"},
		{"7z\xbc\xaf\x27\x1c\x00\x04", fault.ErrUnsupported, "7-Zip"},
		{"Rar!\x1a\x07\x01\x00", fault.ErrUnsupported, "RAR"},
		{"L\x00\x00\x00\x01\x14\x02\x00\x00\x00", fault.ErrUnsupported, "shortcut"},
		{"<!DOCTYPE html>\n<html>", fault.ErrUnsupported, "HTML"},
		{"\xef\xbb\xbf\n <HTML><body>", fault.ErrUnsupported, "HTML"},
		{"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", fault.ErrUnsupported, "XML"},
		{`{"error":"Repository not found"}`, fault.ErrUnsupported, "JSON"},
		{`{"metadata":{},"weight_map":{}}`, fault.ErrUnsupported, "index of shards"},
		{"Entry not found\n", fault.ErrUnsupported, "Entry not found"},
		{"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94.", fault.ErrUnsupported, "plain pickle"},
		{"(dp0\nS'a'\np1\nI1\ns.", fault.ErrUnsupported, "plain pickle"},
		{"\x80\x03cjoblib.numpy_pickle\nNumpyArrayWrapper\n", fault.ErrUnsupported, "joblib"},
		{pickleOf("}(" + pickleText("w") + legacyVector(legacyStorageID("0", 1, "N"), 0, 1) + "u"), fault.ErrUnsupported, "bare data.pkl"},
		{"junkjunk" + string(zipLayout{records: three()}.bytes()), fault.ErrMalformed, "behind 8 bytes"},
		{"\x00\x00\x09tensor" + pad + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", fault.ErrUnsupported, "TensorFlow checkpoint"},
		{"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x25torch.distributed.checkpoint.metadata\x94", fault.ErrUnsupported, "distributed checkpoint"},
		{"\x01\x02\x03\x04\x05\x06\x07\x08\x09", fault.ErrUnsupported, "no format that wick knows"},
		{string(tarFile{"extra": "x"}.bytes(t)), fault.ErrUnsupported, "tar archive"},
		{string(zipLayout{records: []zipRecord{{name: "MAR-INF/MANIFEST.json", data: "{}"}, {name: "model.pt", data: "x"}}}.bytes()), fault.ErrUnsupported, "MAR"},
		{string(zipLayout{records: []zipRecord{{name: "a.npy", data: "x"}, {name: "b.npy", data: "x"}}}.bytes()), fault.ErrUnsupported, "npz"},
		{string(zipLayout{records: []zipRecord{{name: "metadata.json", data: "{}"}, {name: "model.weights.h5", data: "x"}}}.bytes()), fault.ErrUnsupported, "Keras"},
		{string(zipLayout{records: []zipRecord{{name: "META-INF/MANIFEST.MF", data: "x"}}}.bytes()), fault.ErrUnsupported, "Java"},
	}
	for _, c := range cases {
		_, err := OpenBytes(t.Context(), "test.pt", []byte(c.data))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%.20q: %v, want %v and %q", c.data, err, c.want, c.has)
		}
		var e *fault.Error
		if errors.As(err, &e) && (e.File != "test.pt" || e.Need == "" || e.Cure == "") {
			t.Errorf("%.20q: the error lacks its file, need or cure: %#v", c.data, e)
		}
	}
}

func TestForeignTextIsCleaned(t *testing.T) {
	_, err := OpenBytes(t.Context(), "test.pt", []byte("\x1b[31mred\x1b[0m "+strings.Repeat("long ", 1000)))
	if err == nil || strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
}

// A part of a distributed checkpoint that torch saved, taken alone, is named as one.
func TestPartsOfDistributedCheckpoints(t *testing.T) {
	dir := filepath.Join("..", "pytorch-tests", "distributed", "single-torch2.15")
	for _, name := range []string{".metadata", "__0_0.distcp"} {
		_, err := Open(t.Context(), filepath.Join(dir, name))
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "distributed checkpoint") || !strings.Contains(err.Error(), "open the folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	part, err := os.ReadFile(filepath.Join(dir, "__0_0.distcp"))
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir()
	if err := os.WriteFile(filepath.Join(alone, "__0_0.distcp"), part, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), alone); !errors.Is(err, fault.ErrMalformed) || !strings.Contains(err.Error(), ".metadata") {
		t.Errorf("without .metadata: %v", err)
	}
}

func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "readme.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "1 file ") {
		t.Errorf("%v", err)
	}
	limits := WithLimits(checkpoint.Limits{Shards: 1})
	if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, limits); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("two files where one is allowed: %v", err)
	}
}
