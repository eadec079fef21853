package pytorch

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
)

// textCalls are objects that a text says completely, spelled as str() does.
var textCalls = map[string]callFunc{
	"datetime.datetime":                newDateTime,
	"datetime.date":                    newDate,
	"datetime.time":                    newTime,
	"datetime.timedelta":               newTimeDelta,
	"datetime.timezone":                newTimeZone,
	"builtins.str":                     newStr,
	"builtins.getattr":                 newAttribute,
	"torch.torch_version.TorchVersion": newVersion,
	"pathlib.PosixPath":                pathCall("pathlib.PosixPath", "/"),
	"pathlib.PurePosixPath":            pathCall("pathlib.PurePosixPath", "/"),
	"pathlib.Path":                     pathCall("pathlib.Path", "/"),
	"pathlib.PurePath":                 pathCall("pathlib.PurePath", "/"),
	"pathlib.WindowsPath":              pathCall("pathlib.WindowsPath", `\`),
	"pathlib.PureWindowsPath":          pathCall("pathlib.PureWindowsPath", `\`),
	"pathlib._local.PosixPath":         pathCall("pathlib.PosixPath", "/"),
	"pathlib._local.PurePosixPath":     pathCall("pathlib.PurePosixPath", "/"),
	"pathlib._local.WindowsPath":       pathCall("pathlib.WindowsPath", `\`),
	"pathlib._local.PureWindowsPath":   pathCall("pathlib.PureWindowsPath", `\`),
}

func newStr(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 {
		return nested.String(""), true
	}
	s, ok := args[0].(nested.String)
	return s, ok && len(args) == 1
}

// newVersion is torch.__version__, a text of its own class since torch 1.10.
func newVersion(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	s, ok := args[0].(nested.String)
	return nested.Symbol{Class: "torch.torch_version.TorchVersion", Text: string(s)}, ok
}

// newAttribute is getattr(owner, name), by which members of enums and methods
// are pickled. Which of the two it is only the class could tell. An object that
// owns a method is in Args; a walk does not descend into it, for a method has
// no members: a scheduler's anneal function would list the optimizer again.
func newAttribute(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 2 {
		return nil, false
	}
	name, ok := args[1].(nested.String)
	if !ok {
		return nil, false
	}
	switch owner := args[0].(type) {
	case nested.Symbol:
		return l.opaque(owner.Text+"."+string(name), reasonAttribute, nil), true
	default:
		return l.opaque(nested.TypeName(owner)+"."+string(name), reasonAttribute, nested.NewList("tuple", owner)), true
	}
}

// stamp returns the bytes that datetime's classes keep their fields in: bytes
// in Python 3, Latin-1 text through protocol 2's detour, a str in Python 2.
func stamp(args []nested.Value, size int) ([]byte, bool) {
	if len(args) == 0 {
		return nil, false
	}
	switch b := args[0].(type) {
	case nested.Bytes:
		return []byte(b), len(b) == size
	case nested.String:
		if len(b) == size {
			return []byte(b), true
		}
		s, ok := latin1Bytes(string(b))
		return []byte(s), ok && len(s) == size
	}
	return nil, false
}

const (
	dateBytes     = 4
	timeBytes     = 6
	dateTimeBytes = 10
)

// newDate reads year (big-endian), month, day (CPython, datetime.date._getstate).
func newDate(_ *loader, args []nested.Value) (nested.Value, bool) {
	b, ok := stamp(args, dateBytes)
	if !ok || len(args) != 1 {
		return nil, false
	}
	return nested.Symbol{Class: "datetime.date", Text: dateText(b)}, true
}

func dateText(b []byte) string {
	return fmt.Sprintf("%04d-%02d-%02d", int(b[0])<<8|int(b[1]), b[2]&0x7F, b[3])
}

// clockText spells hour, minute, second and microseconds. The high bit of the
// hour is the fold of a clock change.
func clockText(b []byte) string {
	text := fmt.Sprintf("%02d:%02d:%02d", b[0]&0x7F, b[1], b[2])
	if micro := int(b[3])<<16 | int(b[4])<<8 | int(b[5]); micro != 0 {
		text += fmt.Sprintf(".%06d", micro)
	}
	return text
}

func newTime(_ *loader, args []nested.Value) (nested.Value, bool) {
	b, ok := stamp(args, timeBytes)
	zone, known := zoneText(args)
	if !ok || !known {
		return nil, false
	}
	return nested.Symbol{Class: "datetime.time", Text: clockText(b) + zone}, true
}

func newDateTime(_ *loader, args []nested.Value) (nested.Value, bool) {
	b, ok := stamp(args, dateTimeBytes)
	zone, known := zoneText(args)
	if !ok || !known {
		return nil, false
	}
	return nested.Symbol{Class: "datetime.datetime", Text: dateText(b) + " " + clockText(b[4:]) + zone}, true
}

// zoneText spells the second argument, a fixed timezone, as an offset.
func zoneText(args []nested.Value) (string, bool) {
	if len(args) != 2 {
		return "", len(args) == 1
	}
	zone, ok := args[1].(nested.Symbol)
	if !ok || zone.Class != "datetime.timezone" {
		return "", false
	}
	if zone.Text == "UTC" {
		return "+00:00", true
	}
	return strings.TrimPrefix(zone.Text, "UTC"), true
}

// newTimeZone is called with a timedelta, and a name or not.
func newTimeZone(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 || len(args) > 2 {
		return nil, false
	}
	delta, ok := args[0].(nested.Symbol)
	if !ok || delta.Class != "datetime.timedelta" {
		return nil, false
	}
	offset, ok := offsetText(delta.Text)
	return nested.Symbol{Class: "datetime.timezone", Text: offset}, ok
}

// offsetText turns str(timedelta) of less than a day into UTC+hh:mm.
func offsetText(delta string) (string, bool) {
	sign := "+"
	if rest, ok := strings.CutPrefix(delta, "-1 day, "); ok {
		sign, delta = "-", rest
	}
	var h, m, s int
	if n, _ := fmt.Sscanf(delta, "%d:%d:%d", &h, &m, &s); n != 3 {
		return "", false
	}
	seconds := h*3600 + m*60 + s
	if sign == "-" {
		seconds = 24*3600 - seconds
	}
	if seconds == 0 {
		return "UTC", true
	}
	text := fmt.Sprintf("UTC%s%02d:%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		text += fmt.Sprintf(":%02d", seconds%60)
	}
	return text, true
}

// newTimeDelta is called with days, seconds and microseconds.
func newTimeDelta(_ *loader, args []nested.Value) (nested.Value, bool) {
	var n [3]int64
	if len(args) > len(n) {
		return nil, false
	}
	for i, a := range args {
		v, ok := a.(nested.Int)
		if !ok {
			return nil, false
		}
		n[i] = int64(v)
	}
	text := fmt.Sprintf("%d:%02d:%02d", n[1]/3600, n[1]/60%60, n[1]%60)
	if n[2] != 0 {
		text += fmt.Sprintf(".%06d", n[2])
	}
	switch n[0] {
	case 0:
	case 1, -1:
		text = strconv.FormatInt(n[0], 10) + " day, " + text
	default:
		text = strconv.FormatInt(n[0], 10) + " days, " + text
	}
	return nested.Symbol{Class: "datetime.timedelta", Text: text}, true
}

// pathCall joins the parts of a path, of which the first may be a root.
func pathCall(class, separator string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		parts := make([]string, len(args))
		for i, a := range args {
			s, ok := a.(nested.String)
			if !ok {
				return nil, false
			}
			parts[i] = string(s)
		}
		return nested.Symbol{Class: class, Text: joinPath(parts, separator)}, true
	}
}

func joinPath(parts []string, separator string) string {
	if len(parts) == 0 {
		return "."
	}
	if strings.HasSuffix(parts[0], separator) {
		return parts[0] + strings.Join(parts[1:], separator)
	}
	return strings.Join(parts, separator)
}

// uuidOf is a UUID once its state, a 128-bit number, is known.
func uuidOf(o *nested.Opaque, state nested.Value) nested.Value {
	m, ok := state.(*nested.Map)
	if !ok {
		return o
	}
	v, _ := m.Lookup("int")
	n := new(big.Int)
	switch v := v.(type) {
	case nested.Int:
		n.SetInt64(int64(v))
	case nested.BigInt:
		n.Set(v.Int)
	default:
		return o
	}
	if n.Sign() < 0 || n.BitLen() > 128 {
		return o
	}
	hex := fmt.Sprintf("%032x", n)
	return nested.Symbol{Class: "uuid.UUID", Text: hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]}
}
