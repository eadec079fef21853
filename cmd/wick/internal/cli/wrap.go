package cli

import (
	"strings"
)

// wrap breaks a text between words into lines of at most width columns; a word that is
// longer has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.SplitSeq(text, " ") {
		w := textWidth(word)
		if used > 0 && used+1+w > width {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+w
	}
	return append(lines, line)
}

// wrapText breaks the lines of a text for a reader of so many columns. Lines that
// are not indented are running text: they are joined up to an empty line. An
// indented line goes on below its last column, which two spaces begin.
func wrapText(text string, width int) string {
	var out []string
	var running []string
	flush := func() {
		if len(running) > 0 {
			out = append(out, wrap(strings.Join(running, " "), width)...)
			running = nil
		}
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "":
			flush()
			out = append(out, "")
		case line[0] == ' ' || line[0] == '\t':
			flush()
			out = append(out, hang(line, width)...)
		default:
			running = append(running, line)
		}
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}

// hang breaks an indented line of columns.
func hang(line string, width int) []string {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if i := strings.LastIndex(text, "  "); i >= 0 {
		indent += i + 2
	}
	if textWidth(line) <= width || width-indent < leastCut {
		return []string{line}
	}
	lines := wrap(line[indent:], width-indent)
	for i := 1; i < len(lines); i++ {
		lines[i] = strings.Repeat(" ", indent) + lines[i]
	}
	lines[0] = line[:indent] + lines[0]
	return lines
}

// wrapShell breaks a command line between its arguments, so that a shell still
// takes it for one.
func wrapShell(line string, width int) []string {
	const indent = "      "
	var lines []string
	for textWidth(line) > width {
		at := lastSpace(line, width-len(` \`))
		if at <= len(indent) {
			break
		}
		lines = append(lines, line[:at]+` \`)
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	return append(lines, line)
}

// lastSpace is where the last space of line's first width bytes stands that no quote
// holds, -1 for none.
func lastSpace(line string, width int) int {
	at, quote := -1, byte(0)
	for i := range min(width+1, len(line)) {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == ' ' && line[i-min(i, 1)] != ' ':
			at = i
		}
	}
	return at
}
