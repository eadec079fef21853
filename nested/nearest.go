package nested

import "strings"

// Nearest returns the candidate that a person most likely meant by name, ""
// when none is near: the same last parts, or few edits away.
func Nearest(name string, candidates []string) string {
	best, bestScore := "", len(name)/3+2
	for _, c := range candidates {
		if score := distance(name, c, bestScore); score < bestScore {
			best, bestScore = c, score
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates {
		if strings.HasSuffix(c, "."+name) || strings.HasSuffix(name, "."+c) {
			return c
		}
	}
	return ""
}

// maxNearest bounds the text that is compared: names can be a megabyte long.
const maxNearest = 256

// distance is Levenshtein's, given up at most.
func distance(a, b string, most int) int {
	if len(a) > maxNearest || len(b) > maxNearest || len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
			least = min(least, cost)
		}
		if least >= most {
			return most
		}
	}
	return row[len(b)]
}
