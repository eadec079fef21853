// Package meta holds what all record files have in common, whatever their
// format: the header that says what wrote them, and the way in which a tree of
// values is said in plain terms.
//
// A record keeps every value of a tree. What JSON or CBOR cannot say by itself
// is an object with a name and arguments ([Unbuild], [Build]): a tuple is
// tuple([1, 2]), an ordered dict collections.OrderedDict({…}). CBOR has tag 27
// for such objects; in JSON it is {"$tuple": [[1, 2]]}. Nothing is ever called:
// the name of a class that wick does not know is kept as text.
package meta
