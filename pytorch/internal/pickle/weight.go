package pickle

import (
	"math/bits"

	"github.com/wick-ml/wick/nested"
)

// Payer is a [Host] that makes copies of what the pickle holds, and pays for
// them from the room that the tree has.
type Payer interface {
	// Pay is called once, before the first instruction. pay takes what copies of
	// the values cost, and fails when the room is used up; it may be called until
	// [Load] returns, and afterwards.
	Pay(pay func(values ...nested.Value) error)
}

// copyCost is an entry of a map that is copied with its index.
const copyCost = 48

// deepest is how far the items of lists are gone through: a call has a
// quantizer, which has scales.
const deepest = 3

// pay pays for a copy of each value, or for the time in which so much could be
// copied. What the memo holds can be an argument a hundred thousand times for two
// bytes each: a call must not cost more than it pays for.
func (m *machine) pay(values ...nested.Value) error {
	for _, v := range values {
		if err := m.weigh(v, deepest); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) weigh(v nested.Value, depth int) error {
	switch v := v.(type) {
	case *nested.List:
		if err := m.spend(wordCost * len(v.Items)); err != nil || depth == 0 {
			return err
		}
		for _, item := range v.Items {
			if err := m.weigh(item, depth-1); err != nil {
				return err
			}
		}
		return nil
	case *nested.Map:
		for key := range v.All() {
			if err := m.spend(copyCost + keyCost(key, 0)); err != nil {
				return err
			}
		}
		return nil
	default:
		return m.spend(light(v))
	}
}

// light is the weight of a value that holds no others.
func light(v nested.Value) int {
	switch v := v.(type) {
	case nested.String:
		return len(v)
	case nested.Bytes:
		return len(v)
	case nested.ByteArray:
		return len(v)
	case nested.BigInt: // its digits, each of which takes the longer the more there are
		digits := v.Int.BitLen()/3 + 1
		return digits * bits.Len(uint(digits))
	case nested.Symbol:
		return longKey(len(v.Text))
	}
	return 0
}

// keyCost is what finding a long key among so many others takes from the tree's
// room: a megabyte of text that the memo makes a key a hundred thousand times takes
// no memory, but all the time that there is.
func keyCost(key nested.Value, others int) int {
	switch k := key.(type) {
	case nested.String:
		return longKey(len(k))
	case nested.Bytes:
		return longKey(len(k))
	case nested.BigInt: // copied for it
		return 8 * longKey(k.Int.BitLen()/8)
	case *nested.List:
		return tupleCost(k, others)
	}
	return 0
}

// shortKey is a key that costs nothing beyond its entry.
const shortKey = 256

func longKey(n int) int {
	if n < shortKey {
		return 0
	}
	return n / 16
}

// tupleCost is that of a tuple, which is spelled out and compared with each of a few
// others, or found by its hash among many.
func tupleCost(l *nested.List, others int) int {
	const most, few = 1 << 12, 8
	left := most
	spell(l, &left)
	switch n := most - left; {
	case n < shortKey:
		return 0
	case others > few:
		return n
	default:
		return n * (others + 1)
	}
}

// spell takes from left what a key's parts are spelled in.
func spell(v nested.Value, left *int) {
	*left -= wordCost + light(v)
	l, ok := v.(*nested.List)
	if !ok {
		return
	}
	for _, item := range l.Items {
		if *left <= 0 {
			return
		}
		spell(item, left)
	}
}
