package pytorch

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

func scanBytes(t *testing.T, data string) (*ScanReport, error) {
	t.Helper()
	return Scan(t.Context(), checkpoint.NewBytes("file", []byte(data)))
}

// Torch lists the names that its weights-only loader does not import; wick
// must grade the same names, and no others, as allowed.
func TestScanAllowsWhatTorchAllows(t *testing.T) {
	data, err := os.ReadFile("testdata/unsafe_globals.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]string
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 50 {
		t.Fatal(len(all), err)
	}
	for name, want := range all {
		report, err := scanBytes(t, string(readFixture(t, name)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := []string{}
		for _, g := range report.Globals {
			top, _, _ := strings.Cut(g.Record, "/")
			if g.Grade != GradeAllowed && g.Record == top+"/data.pkl" {
				got = append(got, python3Name(g.Module, g.Name))
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: not allowed are %q, torch says %q", name, got, want)
		}
	}
}

// The modules of torch are known data, and nothing else that their files hold is.
func TestGradesOfModules(t *testing.T) {
	for _, version := range []string{"1.13", "2.15"} {
		data, err := os.ReadFile("testdata/nn_modules-torch" + version + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var names struct{ Classes, Others []string }
		if err := json.Unmarshal(data, &names); err != nil || len(names.Classes) < 100 || len(names.Others) < 20 {
			t.Fatal(len(names.Classes), len(names.Others), err)
		}
		for _, full := range slices.Concat(names.Classes, names.Others) {
			dot := strings.LastIndex(full, ".")
			grade, _ := gradeOf(full[:dot], full[dot+1:])
			if want := slices.Contains(names.Classes, full); want != (grade == GradeData) {
				t.Errorf("torch %s: %s is %s", version, full, grade)
			}
		}
	}
}

func TestGrades(t *testing.T) {
	for name, want := range map[string]Grade{
		"torch._utils _rebuild_tensor_v2": GradeAllowed, "collections OrderedDict": GradeAllowed, "torch nn.parameter.Parameter": GradeAllowed,
		"numpy.core.multiarray _reconstruct": GradeData, "torch.nn.modules.linear Linear": GradeData, "copy_reg _reconstructor": GradeData,
		"__builtin__ set": GradeAllowed, "__builtin__ object": GradeData, "torch.jit._pickle build_intlist": GradeData,
		"torch._utils torch.channels_last": GradeData, "my.models torch.channels_last": GradeUnknown, "torch.torch_version TorchVersion": GradeData,
		"my.models Net": GradeUnknown, "functools partial": GradeUnknown, "torch.nn.modules.linear relu": GradeUnknown, "torch.nn.modules.linear os": GradeDangerous, "": GradeUnknown, "collections": GradeUnknown,
		"os system": GradeDangerous, "posix system": GradeDangerous, "nt system": GradeDangerous, "subprocess Popen": GradeDangerous, "sys modules": GradeDangerous,
		"builtins eval": GradeDangerous, "__builtin__ eval": GradeDangerous, "builtins getattr": GradeDangerous, "builtins __import__": GradeDangerous,
		"builtins compile": GradeDangerous, "builtins open": GradeDangerous, "importlib import_module": GradeDangerous, "runpy run_path": GradeDangerous,
		"pickle loads": GradeDangerous, "cPickle loads": GradeDangerous, "shutil rmtree": GradeDangerous, "socket socket": GradeDangerous,
		"webbrowser open": GradeDangerous, "torch.hub load": GradeDangerous, "torch load": GradeDangerous, "torch hub.load": GradeDangerous, "commands getoutput": GradeDangerous,
		"torch.serialization os.system": GradeDangerous, "torch.nn.modules.linear __builtins__": GradeDangerous, "torch serialization.load": GradeDangerous,
		"collections OrderedDict.__class__": GradeDangerous, "numpy.testing._private.utils runstring": GradeDangerous, "torch.storage _load_from_bytes": GradeDangerous,
	} {
		module, name, _ := strings.Cut(name, " ")
		if got, reason := gradeOf(module, name); got != want || reason == "" {
			t.Errorf("%s %s is %s (%s), want %s", module, name, got, reason, want)
		}
	}
}

// evil is a pickle that would call os.system, in several spellings.
var evil = map[string]string{
	"GLOBAL":                             "\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
	"protocol 0":                         "cos\nsystem\n(S'id'\ntR.",
	"INST":                               "(S'id'\nios\nsystem\n.",
	"OBJ":                                "(cos\nsystem\nS'id'\no.",
	"STACK_GLOBAL":                       "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
	"STACK_GLOBAL by memo":               "\x80\x04\x8c\x06system\x94\x8c\x02os\x940h\x00\x940h\x01h\x00\x93\x8c\x02id\x85R.",
	"behind a value":                     "\x80\x02K\x01cos\nsystem\nX\x02\x00\x00\x00id\x85R0.",
	"a pickle in bytes":                  "\x80\x03C\x17\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R..",
	"a pickle in text":                   "\x80\x02X\x15\x00\x00\x00cos\nsystem\n(S'id'\ntR..",
	"a pickle in Latin-1":                "\x80\x02X\x19\x00\x00\x00\xc2\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\xc2\x85R..",
	"a pickle in a legacy file in bytes": inBytes(legacyAround("\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")),
	"a second pickle behind":             "\x80\x02N.\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
}

// legacyAround is a file of stacked pickles with an object of our own.
func legacyAround(object string) string {
	f := soundLegacy()
	f.object = object
	return string(f.bytes())
}

// inBytes is a pickle of a byte string.
func inBytes(data string) string {
	return "\x80\x03B" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data + "."
}

func namesSystem(t *testing.T, what string, r *ScanReport) {
	t.Helper()
	if !slices.ContainsFunc(r.Globals, func(g ScanGlobal) bool {
		return g.Module == "os" && g.Name == "system" && g.Grade == GradeDangerous
	}) {
		t.Errorf("%s: os.system was not seen in %+v", what, r.Globals)
	}
	if !r.Found() {
		t.Errorf("%s is no finding", what)
	}
}

func TestScanSeesEverySpelling(t *testing.T) {
	for what, p := range evil {
		r, err := scanBytes(t, p)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		namesSystem(t, what, r)
	}
}

// A pickle that is cut behind the name still shows it, and is never clean.
func TestScanOfTheCut(t *testing.T) {
	for what, p := range evil {
		if what == "protocol 0" || what == "a second pickle behind" || strings.HasPrefix(what, "a pickle in") {
			continue
		}
		r, err := scanBytes(t, p[:len(p)-1])
		if fault.KindOf(err) != fault.Malformed {
			t.Errorf("%s cut: %v", what, err)
		}
		namesSystem(t, what, r)
	}
}

// sound are the records of a small checkpoint.
func sound() []zipRecord {
	return []zipRecord{{name: "m/data.pkl", data: unpacked()["data.pkl"]}, {name: "m/data/0", data: floats(3, 4, 5)}, {name: "m/data/1", data: floats(1, 2)}}
}

func TestScanContainers(t *testing.T) {
	bad := evil["GLOBAL"]
	inZip := func(name string) string {
		return string(zipLayout{records: append(sound(), zipRecord{name: name, data: bad})}.bytes())
	}
	tarred := soundTar()
	tarred["pickle"] = bad
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte(inZip("m/other.pkl"))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	legacy := string(soundLegacy().bytes())
	cut := inZip("m/other.pkl")
	for what, c := range map[string]struct {
		file string
		kind fault.Kind
	}{
		"a second data.pkl":        {inZip("other/data.pkl"), ""},
		"another record":           {inZip("m/extra/notes"), ""},
		"an archive in it":         {string(zipLayout{records: append(sound(), zipRecord{name: "m/inner.bin", data: inZip("m/x.pkl")})}.bytes()), ""},
		"tar":                      {string(tarred.bytes(t)), ""},
		"gzip":                     {zipped.String(), ""},
		"zip behind a legacy file": {legacy + inZip("m/x.pkl"), ""},
		"zip behind a pickle":      {"\x80\x02N." + inZip("m/x.pkl"), ""},
		"a cut zip":                {cut[:len(cut)-30], fault.Malformed},
	} {
		r, err := scanBytes(t, c.file)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %q", what, err, c.kind)
		}
		namesSystem(t, what, r)
	}
}

// Archives of torch have end records of 64 bits, which name their own place.
func TestScanSeesArchivesOfTorchBehind(t *testing.T) {
	archive, err := os.ReadFile(filepath.Join("..", "pytorch-tests", "odd-objects", "hostile-torch2.15.pt"))
	if err != nil {
		t.Fatal(err)
	}
	for what, front := range map[string]string{"a legacy file": string(soundLegacy().bytes()), "a tar": string(soundTar().bytes(t)), "a pickle": "\x80\x02N."} {
		r, err := scanBytes(t, front+string(archive))
		if fault.KindOf(err) != "" || !slices.Contains(r.Formats, "zip") {
			t.Errorf("behind %s: %v, %v", what, r.Formats, err)
		}
		if !slices.ContainsFunc(r.Globals, func(g ScanGlobal) bool { return g.Grade == GradeDangerous }) {
			t.Errorf("behind %s: nothing dangerous in %+v", what, r.Globals)
		}
	}
}

func TestScanOfSoundFiles(t *testing.T) {
	for what, file := range map[string]string{
		"zip": string(zipLayout{records: sound()}.bytes()), "legacy": string(soundLegacy().bytes()), "tar": string(soundTar().bytes(t)),
	} {
		if r, err := scanBytes(t, file); err != nil || r.Found() || len(r.Globals) == 0 || r.Format != what {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

// What cannot be told is never clean.
func TestScanCannotTell(t *testing.T) {
	legacy := string(soundLegacy().bytes())
	for what, c := range map[string]struct {
		file string
		kind fault.Kind
	}{
		"nothing":            {"", fault.Malformed},
		"text":               {"hello, this is a text and nothing else", fault.Unsupported},
		"a plain pickle":     {"\x80\x02}q\x00q\x00.", fault.Unsupported},
		"a cut legacy file":  {legacy[:40], fault.Malformed},
		"an extension":       {"\x80\x02\x82\x01.", fault.Unsupported},
		"a cut plain pickle": {"\x80\x02}X\xff\x00\x00\x00abc", fault.Malformed},
	} {
		r, err := scanBytes(t, c.file)
		if fault.KindOf(err) != c.kind || r == nil {
			t.Errorf("%s: %v, want %s", what, err, c.kind)
		}
	}
	deep := evil["GLOBAL"]
	for range maxScanNesting + 2 {
		deep = "\x80\x04\x8e" + count64(int64(len(deep))) + deep + "."
	}
	if _, err := scanBytes(t, deep); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("pickles in pickles: %v", err)
	}
}
