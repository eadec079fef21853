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

// Count prints a count for people: 11.7 M.
func Count(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n), 0
	for f >= 999.95 && unit < len(countUnits)-1 {
		f /= 1000
		unit++
	}
	return short(f) + " " + countUnits[unit]
}

var countUnits = [...]string{"", "thousand", "million", "billion", "trillion"}

// short keeps three or four significant digits.
func short(f float64) string {
	if f >= 99.95 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}

// Elements prints a count of elements for people: 11.7 million elements.
func Elements(n int64) string {
	if n == 1 {
		return "1 element"
	}
	return Count(n) + " elements"
}

// Plural prints a count with its noun.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(int64(n)) + " " + noun + "s"
}

// Thousands prints n with commas.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
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
