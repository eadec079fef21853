package nested

import "hash/maphash"

// keyIndex finds entries of a [Map] by their keys: a table of positions that is
// probed in order, at most half full. Keys stay in the entries, so that a map of
// a million takes some bytes for each of them and not a second copy.
type keyIndex struct{ slots []keySlot }

// keySlot is a place of the table. With the hash beside the position, keys that
// differ are mostly told apart without looking at them, and the table grows
// without hashing any of them again.
type keySlot struct {
	at   uint32 // 1 + position in the entries, 0 if free
	hash uint32
}

var keySeed = maphash.MakeSeed()

// hashOf is the hash of a text, or of the identity of another key.
func hashOf(text String, id keyID) uint32 {
	if id.kind == 0 {
		return uint32(maphash.String(keySeed, string(text))) //nolint:gosec // half of the bits are enough
	}
	return uint32(maphash.Comparable(keySeed, id)) //nolint:gosec // as above
}

func keyHash(key Value) uint32 {
	if text, ok := key.(String); ok {
		return hashOf(text, keyID{})
	}
	id, _ := idOf(key, keyRoom) // it is in a map: it has one
	return hashOf("", id)
}

func newKeyIndex(entries []Entry) *keyIndex {
	size := 32
	for size < 4*len(entries) {
		size *= 2
	}
	x := &keyIndex{slots: make([]keySlot, size)}
	for i := range entries {
		x.put(keySlot{uint32(i + 1), keyHash(entries[i].Key)}) //nolint:gosec // a map of 2^32 does not fit a tree
	}
	return x
}

// add notes the entry at position i, the last, whose key is new and has this hash.
func (x *keyIndex) add(i int, hash uint32) {
	if 2*(i+1) > len(x.slots) {
		old := x.slots
		x.slots = make([]keySlot, 2*len(old))
		for _, s := range old {
			if s.at != 0 {
				x.put(s)
			}
		}
	}
	x.put(keySlot{uint32(i + 1), hash}) //nolint:gosec // as above
}

func (x *keyIndex) put(s keySlot) {
	mask := uint32(len(x.slots) - 1) //nolint:gosec // as above
	at := s.hash & mask
	for x.slots[at].at != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = s
}

func (x *keyIndex) find(entries []Entry, hash uint32, same func(*Entry) bool) (int, bool) {
	mask := uint32(len(x.slots) - 1) //nolint:gosec // as above
	for at := hash & mask; x.slots[at].at != 0; at = (at + 1) & mask {
		if x.slots[at].hash != hash {
			continue
		}
		if i := int(x.slots[at].at - 1); same(&entries[i]) {
			return i, true
		}
	}
	return 0, false
}
