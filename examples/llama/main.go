// Command llama continues a prompt with a model of the Llama architecture, from a folder as Hugging Face or Meta ship it:
//
//	go run ./llama -weights DIR -prompt 'The capital of France is' -n 20
//	go run ./llama -weights DIR -prompt-ids 1,2,3 -n 20
//
// Text needs the tokenizer of Llama 3 or its kin beside the weights; without one the program reads and prints token ids.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/examples/internal/command"
)

func main() { command.Main("llama", run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("llama", flag.ContinueOnError)
	folder := flags.String("weights", "", "`folder` of the weights and their config")
	words := flags.String("prompt", "", "the `text` to continue")
	ids := flags.String("prompt-ids", "", "instead of a text, the `ids` of its tokens, with commas")
	n := flags.Int("n", 20, "how many tokens to add at most")
	if err := command.Parse(flags, args, "weights"); err != nil {
		return err
	}
	if *n < 0 {
		return fmt.Errorf("-n %d: need a number of tokens", *n)
	}
	if (*words == "") == (*ids == "") {
		return errors.New("need -prompt or -prompt-ids, and not both")
	}
	weights, err := Open(ctx, *folder)
	if err != nil {
		return err
	}
	defer weights.Close()
	p, err := newPrinter(weights, *words, *ids, out)
	if err != nil {
		return err
	}
	text, err := NewText(weights, len(p.prompt)+*n)
	if err != nil {
		return err
	}
	err = text.Greedy(p.prompt, *n, p.print)
	if err := errors.Join(err, p.err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out)
	return err
}

// printer prints tokens as the prompt was given: as text, or as ids.
type printer struct {
	prompt []int
	tokens *Tokenizer // nil for ids
	ends   []int
	out    io.Writer
	err    error
}

func newPrinter(w *Weights, words, ids string, out io.Writer) (*printer, error) {
	p := &printer{ends: w.Config.EOS, out: out}
	var err error
	if words == "" {
		p.prompt, err = parse(ids)
		return p, err
	}
	if p.tokens, err = ReadTokenizer(w.ckpt.Beside); err != nil {
		return nil, err
	}
	p.prompt, p.ends = p.tokens.Encode(words), append(p.tokens.ends, p.ends...)
	_, err = io.WriteString(out, words)
	return p, err
}

// print prints a token, and reports whether the text goes on. An end shows as an id and not in a text.
func (p *printer) print(token int) bool {
	end := slices.Contains(p.ends, token)
	switch {
	case p.tokens == nil:
		_, p.err = fmt.Fprint(p.out, token, " ")
	case !end:
		_, p.err = io.WriteString(p.out, p.tokens.Decode(token))
	}
	return p.err == nil && !end
}

// parse reads ids with commas between them.
func parse(ids string) ([]int, error) {
	var prompt []int
	for id := range strings.SplitSeq(ids, ",") {
		token, err := strconv.Atoi(strings.TrimSpace(id))
		if err != nil {
			return nil, fmt.Errorf("%q is no token id", id)
		}
		prompt = append(prompt, token)
	}
	return prompt, nil
}
