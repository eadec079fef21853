package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wick-ml/wick"
)

// partFlag is a share of the output: 2/4, or the index that follows all shares.
type partFlag struct {
	text   string
	option wick.ConvertOption // nil for all of the output
}

// String returns the flag as it was given.
func (p *partFlag) String() string { return p.text }

// Type is what pflag calls the kind of value.
func (*partFlag) Type() string { return "part" }

// Set reads a part.
func (p *partFlag) Set(text string) error {
	p.text = text
	if text == "index" {
		p.option = wick.PartIndex()
		return nil
	}
	left, right, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(left)
	n, err2 := strconv.Atoi(right)
	switch {
	case err != nil || err2 != nil || n < 1 || i < 0:
		return errors.New("need I/N such as 1/4, 2/4, 3/4 and 4/4, or after all parts index")
	case i > n:
		return fmt.Errorf("of %d parts there are 1 to %[1]d, or 0 to %d", n, n-1)
	}
	p.option = wick.Part(i, n)
	return nil
}
