package attacks

import "strings"

// RuleFile is a hostile file of rules: whoever writes down how to convert a
// stranger's checkpoint may be a stranger too.
type RuleFile struct{ Name, Text string }

// megabyte is the most that a rule file may have.
const megabyte = 1 << 20

// fill repeats a text up to nearly a megabyte.
func fill(text string) string { return repeat(text, megabyte/len(text)) }

// RuleFiles returns rules of a megabyte, and of more, in every place that grows.
func RuleFiles() []RuleFile {
	deepConcat := repeat("concat 0 (", 90_000)
	return []RuleFile{
		{"over the limit", fill("drop a\n") + fill("drop a\n")},
		{"drops", fill("drop a\n")}, {"patterns", fill("drop **.*.**.x*\n")}, {"renames", fill("rename a.{i} -> b.{i}\n")},
		{"strips", fill("add x.\n")}, {"adds that grow", repeat("add "+repeat("y", 1000)+"\n", 1000)},
		{"renames that grow", "rename {r...} -> " + repeat("{r...}", 100_000) + "\n"},
		{"renames that double", repeat("rename {r...} -> {r...}{r...}\n", 30)},
		{"regular expressions that double", repeat("rename /(.*)/ -> \"$1$1\"\n", 40)},
		{"lets", fill("let a = 1\n")}, {"lets of lets", "let a0 = 2\n" + repeat("let a = 2*3*4*5*6*7*8*9\n", 40_000)},
		{"products", "let a = 9" + fill("*9") + "\n"}, {"a long number", "let a = " + fill("9") + "\n"},
		{"pipes", "x = w" + fill(" | transpose") + "\n"}, {"unsqueezes", "x = w" + fill(" | unsqueeze 0") + "\n"},
		{"flattens", "x = w" + fill(" | unflatten 0 -1 1 | flatten 0 1") + "\n"},
		{"expands", "x = w | reshape 1 -1" + fill(" | expand 1000000000000 -1") + "\n"}, {"sizes", "x = w | reshape" + fill(" 1") + "\n"},
		{"nested concats", "x = " + deepConcat + "w" + repeat(")", 90_000) + "\n"}, {"nested concats, open", "x = " + deepConcat + "\n"},
		{"a wide concat", "x = concat 0 (w" + fill(", w") + ")\n"}, {"concats of concats", repeat("w = concat 0 (w, w)\nrest keep\n", 40_000)},
		{"targets", fill("{i} = {i}\n")}, {"aliases", fill("alias a = b\n")}, {"rests", fill("rest keep\n")}, {"keys", fill("key m\n")},
		{"flags", "x = w" + fill(", optional") + "\n"}, {"shapes", "x = w, shape" + fill(" 7") + "\n"},
		{"a regular expression", "rename /" + fill("(a|b)*") + "/ -> \"\"\n"}, {"nested groups", "rename /" + repeat("(", 300_000) + repeat(")", 300_000) + "/ -> \"\"\n"},
		{"repeats of repeats", "rename /" + repeat("(", 5) + "x{1000}" + repeat("){1000}", 5) + "/ -> \"\"\n"}, {"a slow expression", "rename /^(.*)*(.*)*(.*)*(.*)*$/ -> \"\"\n"},
		{"captures", "rename " + fill("{a}") + " -> x\n"}, {"stars", "drop " + fill("**.") + "x\n"}, {"a long name", "drop " + fill("x") + "\n"},
		{"quotes", "drop \"" + fill("\\\"") + "\"\n"}, {"an open quote", "drop \"" + fill("x")}, {"escapes", "drop \"" + fill(`\xff`) + "\"\n"},
		{"semicolons", fill(";")}, {"comments", fill("#") + "\n" + "drop a\n"}, {"blanks", fill(" ")}, {"zeros", fill("\x00")}, {"bytes", fill("\xff\xfe\x80")},
		{"controls", "drop \x1b]0;owned\x07\u202e" + repeat("\x9b31m", 1000) + "\n"}, {"an unknown statement", fill("x")}, {"an escape as a statement", "\x1b[2J\x1b[31mdrop a\n"},
		{"paths", "x = [" + strings.TrimSuffix(fill("0, "), ", ") + "]\n"}, {"an open path", "x = " + fill("[")},
	}
}
