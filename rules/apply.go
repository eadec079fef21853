package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Report says what a set did to a tree.
type Report struct {
	Renamed   []Change // names that changed, in the order of the file
	Made      []Change // tensors that assignments made; From lists their sources
	Dropped   []string // names that were left out
	Unmatched []string // statements that matched nothing
}

// Change is one name that became another.
type Change struct {
	From []string
	To   string
}

// Apply returns the tree that the statements make of root, and what they did.
// The new tree shares with root all that did not change, and made tensors are
// view expressions: no byte is read, and root stays as it is.
//
// Two things under one name are a [fault.ErrCollision] error. A name that an
// assignment or a key without flags must find is [fault.ErrNotFound] if it is
// absent; other statements that match nothing are reported as unmatched.
func (s *Set) Apply(root nested.Value) (nested.Value, *Report, error) {
	if len(s.Statements) == 0 {
		return root, &Report{}, nil
	}
	st := &state{params: Params{}, fixed: s.Params, report: &Report{}}
	maps.Copy(st.params, s.Params)
	if err := st.load(root); err != nil {
		return nil, nil, s.in(err)
	}
	for i := 0; i < len(s.Statements); {
		n, err := st.step(s.Statements[i:])
		if err != nil {
			return nil, nil, s.in(err)
		}
		i += n
	}
	out, err := st.finish()
	return out, st.report, s.in(err)
}

// in names the set in an error.
func (s *Set) in(err error) error {
	if e, ok := err.(*fault.Error); ok { //nolint:errorlint // only the outermost error gets the name
		return e.In(s.Name)
	}
	return err
}

// item is one named value on its way through the statements.
type item struct {
	src   int // the entry that it comes from, or whose place it takes
	name  string
	value nested.Value
	made  bool // by an assignment
	from  []string
}

// state is a tree while statements change it.
type state struct {
	index  *Index
	items  []item
	params Params
	fixed  Params
	report *Report
	names  int // bytes of all names of the tree as it came
}

func (s *state) load(root nested.Value) error {
	index, err := NewIndex(root)
	if err != nil {
		return err
	}
	s.index, s.items = index, make([]item, len(index.Entries))
	first := s.names == 0 // what a key leads to may have grown already
	for i := range index.Entries {
		s.items[i] = item{src: i, name: index.Entries[i].Name, value: index.Entries[i].Value}
		if first {
			s.names += len(index.Entries[i].Name)
		}
	}
	return nil
}

// step applies the first statement, or all the neighbouring assignments, and
// returns how many that were.
func (s *state) step(sts []Statement) (int, error) {
	n := 0
	var group []*Assign
	for n < len(sts) {
		a, ok := sts[n].(*Assign)
		if !ok {
			break
		}
		group = append(group, a)
		n++
	}
	if n > 0 {
		return n, s.assign(group)
	}
	return 1, sts[0].apply(s)
}

func (s *state) unmatched(st Statement) {
	s.report.Unmatched = append(s.report.Unmatched, st.String())
}

func (l *Let) apply(s *state) error {
	if _, ok := s.fixed[l.Param]; ok {
		return nil
	}
	v, err := l.Value.Value(s.params)
	s.params[l.Param] = v
	return err
}

func (k *Key) apply(s *state) error {
	root, err := s.finish()
	if err != nil {
		return err
	}
	sub, err := below(root, k.Name)
	if err != nil {
		return err
	}
	return s.load(sub)
}

// below returns the part of the tree that lies below a name: a container of
// the file, or, where names with dots only look like one, a map made of them.
// It fails with [fault.ErrNotFound], naming the keys that there are.
func below(root nested.Value, n *Name) (nested.Value, error) {
	if n.Path != nil {
		if v, ok := descend(root, n.Path); ok {
			return v, nil
		}
	}
	index, err := NewIndex(root)
	if err != nil {
		return nil, err
	}
	if v, ok := index.Below(n.Text); ok && n.Path == nil {
		return v, nil
	}
	keys := index.Children("")
	e := fault.New(fault.NotFound, "no key "+n.String()).Needs("one of "+strings.Join(keys[:min(len(keys), 20)], ", "), "")
	if near := nested.Nearest(n.Text, keys); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return nil, e
}

// Below returns what lies at or below a name: a value of the tree, or, where
// names with dots only look like a container, a map made of them.
func (x *Index) Below(name string) (nested.Value, bool) {
	if v, ok := descendName(x.Root, name); ok {
		return v, true
	}
	// A key that is neither text nor a number, such as None, is found by the flat name alone.
	if found := x.Lookup(name); len(found) > 0 && !x.Entries[found[0]].inside {
		return x.Entries[found[0]].Value, true
	}
	out := nested.NewMap("dict")
	under := slices.Clone(x.Under(name + "."))
	slices.Sort(under)
	for _, i := range under {
		e := &x.Entries[i]
		if !e.inside {
			_ = out.Set(nested.String(e.Name[len(name)+1:]), e.Value) // a string key cannot fail
		}
	}
	return out, out.Len() > 0
}

// descend follows an exact path.
func descend(v nested.Value, path nested.Path) (nested.Value, bool) {
	for _, key := range path {
		next, ok := child(v, key)
		if !ok {
			return nil, false
		}
		v = next
	}
	return v, true
}

// descendName follows the keys whose names, joined with dots, are the flat
// name, the longest first; the empty name is the root. Its depth is that of the
// name.
func descendName(v nested.Value, name string) (nested.Value, bool) {
	if name == "" {
		return v, true
	}
	for stop := len(name); stop > 0; stop = strings.LastIndexByte(name[:stop], '.') {
		next, ok := childNamed(v, name[:stop])
		if !ok {
			continue
		}
		if stop == len(name) {
			return next, true
		}
		if found, ok := descendName(next, name[stop+1:]); ok {
			return found, true
		}
	}
	return nil, false
}

func childNamed(v nested.Value, name string) (nested.Value, bool) {
	if next, ok := child(v, nested.String(name)); ok {
		return next, true
	}
	if n, ok := index(name); ok {
		return child(v, nested.Int(n))
	}
	return nil, false
}

// index reads a decimal without sign or leading zeros.
func index(name string) (int64, bool) {
	var n int64
	if name == "" || len(name) > 18 || len(name) > 1 && name[0] == '0' {
		return 0, false
	}
	for i := range len(name) {
		if !isDigit(name[i]) {
			return 0, false
		}
		n = n*10 + int64(name[i]-'0')
	}
	return n, true
}

// child is one step down, through opaque objects to their members.
func child(v, key nested.Value) (nested.Value, bool) {
	switch c := members(v).(type) {
	case *nested.Map:
		return c.Get(key)
	case *nested.List:
		if i, ok := key.(nested.Int); ok && i >= 0 && int64(i) < int64(len(c.Items)) {
			return c.Items[i], true
		}
	}
	return nil, false
}

// maxOpaque bounds opaque objects whose members are opaque objects.
const maxOpaque = 1000

// members looks into opaque objects.
func members(v nested.Value) nested.Value {
	for range maxOpaque {
		o, ok := v.(*nested.Opaque)
		if !ok || o.Members == nil {
			return v
		}
		v = o.Members
	}
	return v
}

// renameAll gives items the names that f returns; f's second result says
// whether the statement matched.
func (s *state) renameAll(st Statement, f func(it *item, room *nameRoom) (string, bool, error)) error {
	matched, room := false, newNameRoom(s.names)
	for i := range s.items {
		it := &s.items[i]
		if s.isInside(it) {
			continue
		}
		name, ok, err := f(it, &room)
		if err != nil {
			return fault.Wrap(fault.Limit, "names grow too long under "+st.String(), err).OnPath(it.name)
		}
		matched = matched || ok
		it.name = name
	}
	if !matched {
		s.unmatched(st)
	}
	return nil
}

// isInside reports whether an item is an opaque object that its members stand
// for.
func (s *state) isInside(it *item) bool { return !it.made && s.index.Entries[it.src].inside }

func (r *Rename) apply(s *state) error {
	return s.renameAll(r, func(it *item, room *nameRoom) (string, bool, error) {
		if r.To == nil {
			return room.replace(r, it.name)
		}
		if captures, ok := s.match(r.From, it); ok {
			out, err := room.expand(r.To, captures)
			return out, true, err
		}
		return it.name, false, room.take(len(it.name))
	})
}

func (a *Affix) apply(s *state) error {
	return s.renameAll(a, func(it *item, room *nameRoom) (string, bool, error) {
		name := it.name
		if a.Add {
			if err := room.take(len(a.Text) + len(name)); err != nil {
				return "", false, err
			}
			return a.Text + name, true, nil
		}
		out, ok := strings.CutPrefix(name, a.Text)
		return out, ok, room.take(len(out))
	})
}

func (f *Filter) apply(s *state) error {
	matched := make([]bool, len(f.Patterns))
	s.items = slices.DeleteFunc(s.items, func(it item) bool {
		hit := false
		for i, p := range f.Patterns {
			if p.CoversAt(it.name, s.path(&it)) {
				hit, matched[i] = true, true
			}
		}
		if s.isInside(&it) || hit != f.Drop {
			return false
		}
		s.report.Dropped = append(s.report.Dropped, it.name)
		return true
	})
	for i, p := range f.Patterns {
		if !matched[i] {
			s.unmatched(&Filter{Drop: f.Drop, Patterns: []*Pattern{p}})
		}
	}
	return nil
}

func (r *Rest) apply(s *state) error {
	var err error
	s.items = slices.DeleteFunc(s.items, func(it item) bool {
		if it.made || r.Action == "keep" || !isLeaf(it.value) {
			return false
		}
		if r.Action == "error" && err == nil {
			err = fault.New(fault.Mismatch, "no rule knows this tensor").OnPath(it.name).InRecord(s.index.Entries[it.src].File()).
				Needs("a rule for every tensor", "add one, or write rest keep or rest drop")
		}
		s.report.Dropped = append(s.report.Dropped, it.name)
		return true
	})
	return err
}

func isLeaf(v nested.Value) bool {
	_, ok := v.(nested.Leaf)
	return ok
}

func (a *Assign) apply(s *state) error { return s.assign([]*Assign{a}) }

// assign applies neighbouring assignments to one and the same tree.
func (s *state) assign(group []*Assign) error {
	snapshot := &Index{Entries: make([]Entry, len(s.items))}
	for i, it := range s.items {
		var path nested.Path
		if !it.made {
			path = s.index.Entries[it.src].Path
		}
		snapshot.Entries[i] = newEntry(it.name, path, it.value)
	}
	snapshot.index()
	run := assignment{state: s, index: snapshot, used: map[int]bool{}, made: map[int][]item{}, room: newNameRoom(s.names)}
	for _, a := range group {
		if err := run.apply(a); err != nil {
			return err
		}
	}
	run.commit()
	return nil
}

// assignment is a group of assignments while it is applied.
type assignment struct {
	*state

	index *Index         // of the items before the group
	used  map[int]bool   // items that leave the tree
	made  map[int][]item // what takes the place of an item, or stands behind it
	room  nameRoom
}

func (g *assignment) apply(a *Assign) error {
	seen := map[string]bool{}
	var err error
	g.index.Match(firstName(a.Expr), func(i int, captures map[string]string) {
		if err != nil || !a.chooses(&g.index.Entries[i]) {
			return
		}
		key := captureKey(captures)
		switch {
		case !seen[key]:
			seen[key] = true
			err = g.make(a, i, captures)
		case a.Expr.Plain():
			var target string
			if target, err = g.room.expand(a.Target, captures); err == nil {
				err = several(a.Expr, 2)
			}
			err = g.explain(err, a, target, i)
		}
	})
	if err != nil || len(seen) > 0 {
		return err
	}
	if len(a.Target.Captures()) == 0 && !a.Flags.Optional {
		return g.index.missing(firstName(a.Expr))
	}
	g.unmatched(a)
	return nil
}

// captureKey is the same text for the same captures.
func captureKey(captures map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(captures)) {
		fmt.Fprintf(&b, "%s=%q ", name, captures[name])
	}
	return b.String()
}

// chooses applies the flags dims, floats and except.
func (a *Assign) chooses(e *Entry) bool {
	t := e.Tensor()
	if t == nil {
		return a.Expr.Plain() && !a.Flags.HasDims && !a.Flags.Floats && !e.inside
	}
	if a.Flags.HasDims && t.Dims() != a.Flags.Dims || a.Flags.Floats && t.DType().Class() != tensor.FloatClass {
		return false
	}
	return !slices.ContainsFunc(a.Flags.Except, func(p *Pattern) bool { return p.CoversAt(e.Name, e.Path) })
}

// make evaluates the assignment for one match.
func (g *assignment) make(a *Assign, i int, captures map[string]string) error {
	e, err := a.Expr.substitute(captures)
	if err != nil {
		return err
	}
	name, err := g.room.expand(a.Target, captures)
	if err != nil {
		return g.explain(err, a, "", i)
	}
	out := item{src: g.items[i].src, name: name, made: true}
	sources := []int{i}
	if e.Plain() {
		out.value = g.index.Entries[i].Value
	} else if out.value, sources, err = g.eval(e); err != nil {
		return g.explain(err, a, out.name, i)
	}
	if leaf, ok := out.value.(nested.Leaf); ok {
		if err := a.checkShape(leaf.AsTensor(), g.params); err != nil {
			return g.explain(err, a, out.name, i)
		}
	}
	for _, k := range sources {
		out.from = append(out.from, g.index.Entries[k].Name)
		g.used[k] = g.used[k] || !a.Alias
	}
	g.made[i] = append(g.made[i], out)
	g.report.Made = append(g.report.Made, Change{From: out.from, To: out.name})
	return nil
}

// checkShape fails unless a tensor that was made has the shape that it must have.
func (a *Assign) checkShape(t *tensor.Tensor, params Params) error {
	want, err := a.Flags.WantShape(t.Shape(), params)
	if err != nil || want == "" {
		return err
	}
	return fault.New(fault.Mismatch, "the shape "+tensor.ShapeString(t.Shape())).Needs(want, "")
}

// explain puts the target, and the file of the first source, into an error.
func (g *assignment) explain(err error, a *Assign, target string, source int) error {
	return fault.Wrap(fault.KindOf(err), "cannot make it from "+a.Expr.String(), err).OnPath(target).InRecord(g.index.Entries[source].File())
}

// eval returns the tensor of an expression and the items that it came from.
func (g *assignment) eval(e *Expr) (nested.Value, []int, error) {
	var sources []int
	t, err := e.Tensor(func(n *Name) ([]*tensor.Tensor, error) {
		found, err := g.index.Tensors(n)
		if err != nil {
			return nil, err
		}
		ts := make([]*tensor.Tensor, len(found))
		for k, i := range found {
			ts[k] = g.index.Entries[i].Tensor()
		}
		sources = append(sources, found...)
		return ts, nil
	}, g.params)
	if err != nil {
		return nil, nil, err
	}
	out := like(t, g.index.Entries[sources[0]].Value)
	if t.DType().Class() == tensor.QuantClass {
		out.Quant, err = g.quant(sources)
	}
	return out, sources, err
}

// like returns t as a leaf of the kind that source was.
func like(t *tensor.Tensor, source nested.Value) *nested.Tensor {
	out := &nested.Tensor{Tensor: t, Class: "torch.Tensor"}
	if s, ok := source.(*nested.Tensor); ok {
		out.Class, out.RequiresGrad, out.Device = s.Class, s.RequiresGrad, s.Device
	}
	return out
}

// quant is how the integers of all sources stand for real numbers. It is an error
// where they do not do so in one way: at different scales, or at one for each
// channel, which a view puts elsewhere.
func (g *assignment) quant(sources []int) (*nested.Quant, error) {
	var all *nested.Quant
	for n, k := range sources {
		var q *nested.Quant
		if s, ok := g.index.Entries[k].Value.(*nested.Tensor); ok {
			q = s.Quant
		}
		if n == 0 {
			all = q
		}
		if (q == nil) != (all == nil) || q != nil && (q.Scales != nil || *q != *all) {
			return nil, fault.New(fault.Unsupported, "a view of tensors that are quantized per channel, or at different scales").
				Needs("one scale and zero point for all elements", "dequantize them first")
		}
	}
	return all, nil
}

// commit puts what was made into the places of what was used.
func (g *assignment) commit() {
	if len(g.used) == 0 && len(g.made) == 0 {
		return
	}
	out := make([]item, 0, len(g.items)+len(g.made))
	for i, it := range g.items {
		if !g.used[i] {
			out = append(out, it)
		}
		out = append(out, g.made[i]...)
	}
	g.items = out
}

// finish checks the names and builds the tree.
func (s *state) finish() (nested.Value, error) {
	seen := make(map[string]*item, len(s.items))
	changed := len(s.items) != len(s.index.Entries)
	for i := range s.items {
		it := &s.items[i]
		old := s.index.Entries[it.src].Name
		renamed := it.made || it.name != old
		changed = changed || renamed
		if !it.made && renamed {
			s.report.Renamed = append(s.report.Renamed, Change{From: []string{old}, To: it.name})
		}
		if other := seen[it.name]; other != nil && (renamed || s.moved(other)) {
			return nil, s.collision(it, other)
		}
		seen[it.name] = it
	}
	if !changed {
		return s.index.Root, nil
	}
	return s.build()
}

func (s *state) moved(it *item) bool { return it.made || it.name != s.index.Entries[it.src].Name }

func (s *state) collision(a, b *item) error {
	source := func(it *item) string {
		if it.made {
			return strings.Join(it.from, ", ")
		}
		return s.index.Entries[it.src].Name
	}
	from, other := source(b), source(a)
	if from == other && !a.made && !b.made {
		from, other = pathString(s.path(b)), pathString(s.path(a))
	}
	return fault.New(fault.Collision, fmt.Sprintf("%s and %s would both be called %s", from, other, a.name)).
		Needs("one tensor for each name", "drop one of them, or rename it")
}
