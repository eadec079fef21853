package cli

import (
	"errors"
	"strconv"
	"strings"
)

// size is the value of a flag in bytes: 1048576, 64MiB, 5GB.
type size int64

// String returns the size in bytes, nothing for none.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type is what pflag calls the kind of value.
func (*size) Type() string { return "size" }

// Set reads a size.
func (s *size) Set(text string) error {
	number := strings.TrimRight(text, "BKMGTPEikmgtpeb ")
	factor, ok := sizeUnits[strings.ToLower(strings.TrimSpace(text[len(number):]))]
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(f > 0) || f*factor >= 1<<62 {
		return errors.New("no size in bytes, such as 64MiB or 5GB")
	}
	*s = size(f * factor)
	return nil
}

var sizeUnits = map[string]float64{
	"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9, "t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}
