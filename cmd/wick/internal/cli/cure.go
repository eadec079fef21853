package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Cures of the library name its own options, functions and rules. Those of the
// command name its flags: this file has one for each.

// flagsOf are the flags and commands that stand for what the library's cures name.
var flagsOf = []struct{ option, flag string }{
	{"wick.Overwrite()", "--force"},
	{"wick.AsRecord", "--record"},
	{"wick.As", "--to"},
	{"wick.KeepShards()", "--keep-shards"},
	{"wick.ShardBytes", "--shard-size"},
	{"wick.Part", "--part"},
	{"wick.Config", "--config"},
	{"wick.Salvage()", "--salvage"},
	{"arith.DensifyTree", "--densify"},
	{"arith.DequantizeTree", "--dequantize"},
	{"the set of rules torch-prefixes", "--rules torch-prefixes"},
	{"open it with the package wick, which reads it", "it has no pickle; wick ls lists its tensors"},
}

// ruleText is a rule in a cure: the rule `drop` or the rule `rename a -> b`.
var ruleText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("the rule `(drop|rename) ?([^`]*)`") })

// inFlags names flags in a cure. A flag that a command does not have is one of
// convert's.
func inFlags(cure string, has func(flag string) bool) string {
	flag := func(text string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "--"), " ")
		if strings.HasPrefix(text, "--") && !has(name) {
			return "wick convert " + text
		}
		return text
	}
	for _, f := range flagsOf {
		if strings.Contains(cure, f.option) {
			cure = strings.ReplaceAll(cure, f.option, flag(f.flag))
		}
	}
	if !strings.Contains(cure, "the rule `") {
		return cure
	}
	return ruleText().ReplaceAllStringFunc(cure, func(rule string) string {
		m := ruleText().FindStringSubmatch(rule)
		text := map[string]string{"drop": "--exclude", "rename": "--rename"}[m[1]]
		if m[2] != "" {
			text += " " + quoted([]string{m[2]})[0]
		}
		return flag(text)
	})
}

// withFlags returns the error with flags in its cure, and the one which raises the limit that
// it is about.
func withFlags(e *fault.Error) *fault.Error {
	c := *e
	c.Cure = inFlags(e.Cure, func(string) bool { return true })
	name := limitName(e.Limit)
	if field, ok := limitFields(&checkpoint.Limits{})[name]; e.Kind == fault.Limit && ok {
		c.Cure = limitCure(e, name, field.Most)
	}
	return &c
}

// limitCure says what to raise the limit called name to, which may be most.
func limitCure(e *fault.Error, name string, most int64) string {
	asked := max(e.Value, min(e.Max, math.MaxInt64/2)*2) // what counts stops at the limit
	if e.Max >= most || e.Value > most {
		return fmt.Sprintf("%d is the most that wick reads, whatever --limit says", most)
	}
	return fmt.Sprintf("if you trust the file: --limit %s=%d", name, min(asked, most))
}

// cureFor gives the error that ends a command a cure that this command can do.
func cureFor(cmd *cobra.Command, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Cure = inFlags(e.Cure, func(flag string) bool { return cmd.Flag(flag) != nil })
	if e.Limit == "stream memory" || e.Limit == "bytes kept while streaming" {
		e.Cure = streamCure(cmd)
	}
	return err
}

// streamCure says, of a stream that does not fit in memory, which flags of the
// command make room for it.
func streamCure(cmd *cobra.Command) string {
	if cmd.Flag("max-memory") != nil {
		return "give a file instead, --spool DIR for a temporary file there, or more --max-memory"
	}
	return "give a file instead, or --spool DIR for a temporary file there"
}
