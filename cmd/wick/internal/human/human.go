// Package human prints sizes and counts for people.
package human

import (
	"strconv"
	"strings"
)

// Bytes prints a size for people, in powers of 1024.
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), 0
	for f >= 1023.95 && unit < len(byteUnits)-1 {
		f /= 1024
		unit++
	}
	return short(f) + " " + byteUnits[unit]
}

var byteUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// short keeps three or four significant digits.
func short(f float64) string {
	if f >= 99.95 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}

// Plural prints a count with its noun.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Count prints a count for people: every digit, with commas, so that two counts can
// be compared and a sum can be checked.
func Count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return sign + b.String()
}
