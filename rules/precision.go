package rules

import (
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Floats returns the rule that converts every tensor of floats to d and leaves
// all others alone. It fails with [fault.ErrUsage] when d is no dtype of floats.
func Floats(d tensor.DType) (*Set, error) {
	if d.Class() != tensor.FloatClass {
		return nil, fault.New(fault.Usage, "precision "+d.String()).
			Needs("a dtype of floats, such as float16", "what is no float is cast by a rule: NAME = NAME | cast "+d.String())
	}
	return Parse("precision", "{name...} = {name...} | cast "+d.String()+", floats, optional")
}
