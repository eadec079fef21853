package gen

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// Struct is a Go type that was read from source: package serde plans with it as
// with the compiled one.
type Struct struct {
	Name  string
	Type  reflect.Type
	Rules string // of the constant that gen writes beside the type, "" for none

	names map[string]string // of the source's types, by what reflection calls them
}

// MaxSource bounds a Go file that is read, bytes.
const MaxSource = 16 << 20

// ReadStruct reads the type called name, or the first type if name is empty,
// from a Go file; types that it refers to may be in the other files of the
// folder. It knows Go's own types, those of this module, structs, slices,
// arrays, maps, pointers and type parameters. Types that contain themselves and
// those of other packages fail with [fault.ErrUnsupported].
func ReadStruct(file, name string) (*Struct, error) {
	s := newSource()
	text, err := readSource(file)
	if err != nil {
		return nil, err
	}
	if err := s.parse(file, text); err != nil {
		return nil, err
	}
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go")) // a folder with odd characters has none
	for _, other := range beside {
		if filepath.Clean(other) != filepath.Clean(file) && !strings.HasSuffix(other, "_test.go") {
			if text, err := readSource(other); err == nil {
				_ = s.parse(other, text) // of a file beside it nothing may be needed; what is, will be missed
			}
		}
	}
	return s.find(file, name)
}

// ParseStruct is ReadStruct for one file whose text is in memory.
func ParseStruct(file string, text []byte, name string) (*Struct, error) {
	s := newSource()
	if err := s.parse(file, text); err != nil {
		return nil, err
	}
	return s.find(file, name)
}

func newSource() *source {
	return &source{fset: token.NewFileSet(), types: map[string]*declared{}, consts: map[string]string{}, busy: map[string]bool{}, names: map[string]string{}}
}

func (s *source) find(file, name string) (*Struct, error) {
	if name == "" {
		name = s.first
	}
	if s.types[name] == nil {
		return nil, s.noType(file, name)
	}
	t, err := s.named(name, nil)
	if err != nil {
		return nil, err
	}
	return &Struct{Name: name, Type: t, Rules: s.consts[RulesName(name)], names: s.names}, nil
}

// source is what Go files declare.
type source struct {
	fset   *token.FileSet
	types  map[string]*declared
	consts map[string]string
	first  string            // the first type of the first file
	busy   map[string]bool   // types that are being made
	names  map[string]string // as in Struct
}

type declared struct {
	spec    *ast.TypeSpec
	imports map[string]string // paths by the names that the file gives them
}

func (s *source) noType(file, name string) error {
	var known []string
	for n := range s.types {
		known = append(known, n)
	}
	e := fault.New(fault.Usage, "no type is called "+name).In(file)
	if name == "" {
		e.Found = "no type"
	}
	if near := nested.Nearest(name, known); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

func readSource(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "no such file").In(file)
		}
		return nil, err
	}
	if info.Size() > MaxSource && filepath.Ext(file) != ".go" { // a checkpoint, most likely
		return nil, fault.New(fault.Usage, filepath.Base(file)+" is no Go file").In(file).Needs("Go source", "")
	}
	if info.Size() > MaxSource {
		return nil, fault.NewLimit("Go file bytes", info.Size(), MaxSource).In(file)
	}
	return os.ReadFile(file)
}

func (s *source) parse(file string, text []byte) error {
	parsed, err := parser.ParseFile(s.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return fault.Wrap(fault.Usage, "no Go source", err).In(file)
	}
	imports := map[string]string{}
	for _, i := range parsed.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	for _, d := range parsed.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			s.declare(g, imports)
		}
	}
	return nil
}

func (s *source) declare(g *ast.GenDecl, imports map[string]string) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if s.types[spec.Name.Name] == nil {
				s.types[spec.Name.Name] = &declared{spec, imports}
			}
			if s.first == "" {
				s.first = spec.Name.Name
			}
		case *ast.ValueSpec:
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					break
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						s.consts[name.Name] = text
					}
				}
			}
		}
	}
}

// scope is where a type expression stands: a declaration, and the arguments of
// its type parameters.
type scope struct {
	*declared
	params map[string]reflect.Type
}

func (s *source) unsupported(e ast.Expr, what string) error {
	at := s.fset.Position(e.Pos())
	return fault.New(fault.Unsupported, what).In(at.Filename).Needs("Go's own types, those of package tensor, nested and nn, and structs, slices, arrays, maps and pointers of them",
		"line "+strconv.Itoa(at.Line)+`; leave the field out with the tag torch:"-"`)
}

// named makes a type that the source declares.
func (s *source) named(name string, args []reflect.Type) (reflect.Type, error) {
	d := s.types[name]
	sc := scope{d, map[string]reflect.Type{}}
	n := 0
	if d.spec.TypeParams != nil {
		for _, list := range d.spec.TypeParams.List {
			for _, param := range list.Names {
				if n < len(args) {
					sc.params[param.Name] = args[n]
				}
				n++
			}
		}
	}
	if n != len(args) {
		return nil, s.unsupported(d.spec.Type, "the type "+name+" with "+strconv.Itoa(len(args))+" type arguments")
	}
	if s.busy[name] {
		return nil, s.unsupported(d.spec.Type, "the type "+name+", which contains itself")
	}
	s.busy[name] = true
	defer delete(s.busy, name)
	t, err := s.typ(d.spec.Type, sc)
	if err == nil && t.Kind() == reflect.Struct && t.Name() == "" {
		s.names[t.String()] = name
	}
	return t, err
}

var predeclared = map[string]reflect.Type{
	"bool": reflect.TypeFor[bool](), "string": reflect.TypeFor[string](), "any": reflect.TypeFor[any](),
	"int": reflect.TypeFor[int](), "int8": reflect.TypeFor[int8](), "int16": reflect.TypeFor[int16](), "int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](),
	"uint": reflect.TypeFor[uint](), "uint8": reflect.TypeFor[uint8](), "uint16": reflect.TypeFor[uint16](), "uint32": reflect.TypeFor[uint32](), "uint64": reflect.TypeFor[uint64](),
	"byte": reflect.TypeFor[byte](), "rune": reflect.TypeFor[rune](),
	"float32": reflect.TypeFor[float32](), "float64": reflect.TypeFor[float64](), "complex64": reflect.TypeFor[complex64](), "complex128": reflect.TypeFor[complex128](),
}

func (s *source) typ(e ast.Expr, sc scope) (reflect.Type, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.typ(e.X, sc)
	case *ast.Ident:
		return s.ident(e, sc)
	case *ast.SelectorExpr:
		return s.imported(e, sc, nil)
	case *ast.IndexExpr:
		return s.generic(e.X, []ast.Expr{e.Index}, sc)
	case *ast.IndexListExpr:
		return s.generic(e.X, e.Indices, sc)
	case *ast.StructType:
		return s.structure(e, sc)
	default:
		return s.composite(e, sc)
	}
}

// composite makes pointers, slices, arrays and maps.
func (s *source) composite(e ast.Expr, sc scope) (reflect.Type, error) {
	switch e := e.(type) {
	case *ast.StarExpr:
		t, err := s.typ(e.X, sc)
		if err != nil {
			return nil, err
		}
		return reflect.PointerTo(t), nil
	case *ast.ArrayType:
		t, err := s.typ(e.Elt, sc)
		if err != nil {
			return nil, err
		}
		if e.Len == nil {
			return reflect.SliceOf(t), nil
		}
		return s.array(e, t)
	case *ast.MapType:
		k, err := s.typ(e.Key, sc)
		if err != nil {
			return nil, err
		}
		v, err := s.typ(e.Value, sc)
		if err != nil {
			return nil, err
		}
		if !k.Comparable() {
			return nil, s.unsupported(e, "a map with such keys")
		}
		return reflect.MapOf(k, v), nil
	default:
		return nil, s.unsupported(e, "a type of this sort")
	}
}

// maxArray bounds the elements of Go arrays in a type, which a plan allocates.
const maxArray = 1 << 28

func (s *source) array(e *ast.ArrayType, elem reflect.Type) (reflect.Type, error) {
	lit, ok := e.Len.(*ast.BasicLit)
	if !ok {
		return nil, s.unsupported(e, "an array whose length is no number")
	}
	n, err := strconv.ParseInt(lit.Value, 0, 32)
	if err != nil || n < 0 || elem.Size() > 0 && n > maxArray/int64(elem.Size()) {
		return nil, s.unsupported(e, "an array of length "+lit.Value)
	}
	return reflect.ArrayOf(int(n), elem), nil
}

func (s *source) ident(e *ast.Ident, sc scope) (reflect.Type, error) {
	if t := sc.params[e.Name]; t != nil {
		return t, nil
	}
	if s.types[e.Name] != nil {
		return s.named(e.Name, nil)
	}
	if t := predeclared[e.Name]; t != nil {
		return t, nil
	}
	return nil, s.unsupported(e, "the type "+e.Name+", which no file of the folder declares")
}

// generic makes a type with type arguments.
func (s *source) generic(e ast.Expr, indices []ast.Expr, sc scope) (reflect.Type, error) {
	var args []reflect.Type
	for _, index := range indices {
		t, err := s.typ(index, sc)
		if err != nil {
			return nil, err
		}
		args = append(args, t)
	}
	switch e := e.(type) {
	case *ast.Ident:
		if s.types[e.Name] == nil {
			return s.ident(e, sc)
		}
		return s.named(e.Name, args)
	case *ast.SelectorExpr:
		return s.imported(e, sc, args)
	default:
		return nil, s.unsupported(e, "a type of this sort")
	}
}

// imported makes a type of another package.
func (s *source) imported(e *ast.SelectorExpr, sc scope, args []reflect.Type) (reflect.Type, error) {
	pkg, ok := e.X.(*ast.Ident)
	if !ok {
		return nil, s.unsupported(e, "a type of this sort")
	}
	name := strings.TrimPrefix(sc.imports[pkg.Name], module+"/") + "." + e.Sel.Name
	if t := plainTypes[name]; t != nil && args == nil {
		return t, nil
	}
	if len(args) == 1 {
		el := elements[args[0]]
		nn := modules[strings.TrimPrefix(name, "nn.")]
		switch {
		case el.array == nil:
		case name == "tensor.Array":
			return el.array, nil
		case name == "nested.Packed":
			return el.packed, nil
		case nn != nil && strings.HasPrefix(name, "nn."):
			return retype(nn, args[0]), nil
		}
	}
	return nil, s.unsupported(e, "the type "+pkg.Name+"."+e.Sel.Name)
}

// structure makes a struct of the exported fields that take part.
func (s *source) structure(e *ast.StructType, sc scope) (reflect.Type, error) {
	var fields []reflect.StructField
	seen := map[string]bool{}
	for _, f := range e.Fields.List {
		tag, err := fieldTag(f)
		if err != nil {
			return nil, s.unsupported(f.Type, "a tag that is no string")
		}
		if tag.Get(serde.TagKey) == "-" || len(f.Names) > 0 && !anyExported(f.Names) {
			continue
		}
		t, err := s.typ(f.Type, sc)
		if err != nil {
			return nil, err
		}
		for _, name := range fieldNames(f) {
			if !token.IsExported(name.Name) && len(f.Names) > 0 {
				continue
			}
			id := name.Name
			if len(f.Names) == 0 { // embedded: the same as inline
				id, tag = "Embedded"+id, inlineTag(tag)
			}
			if seen[id] {
				return nil, s.unsupported(f.Type, "two fields called "+id)
			}
			seen[id] = true
			fields = append(fields, reflect.StructField{Name: id, Type: t, Tag: tag})
		}
	}
	return reflect.StructOf(fields), nil
}

func fieldTag(f *ast.Field) (reflect.StructTag, error) {
	if f.Tag == nil {
		return "", nil
	}
	text, err := strconv.Unquote(f.Tag.Value)
	return reflect.StructTag(text), err
}

// inlineTag is the tag that makes a field stand for an embedded one.
func inlineTag(tag reflect.StructTag) reflect.StructTag {
	text := tag.Get(serde.TagKey)
	if text != "" && !strings.HasPrefix(strings.TrimSpace(text), ",") {
		return tag // it has a name
	}
	return reflect.StructTag(serde.TagKey + ":" + strconv.Quote(strings.TrimRight(text, " ,")+", inline"))
}

func anyExported(names []*ast.Ident) bool {
	for _, n := range names {
		if n.IsExported() {
			return true
		}
	}
	return false
}

// fieldNames are a field's names; for an embedded one that of its type.
func fieldNames(f *ast.Field) []*ast.Ident {
	if len(f.Names) > 0 {
		return f.Names
	}
	e := f.Type
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.SelectorExpr:
			return []*ast.Ident{t.Sel}
		case *ast.Ident:
			return []*ast.Ident{t}
		default:
			return nil
		}
	}
}

// New returns a pointer to a zero value of the type.
func (s *Struct) New() any { return reflect.New(s.Type).Interface() }

// TypeText says a type of a plan's row in the words of the source.
func (s *Struct) TypeText(text string) string {
	at := strings.Index(text, "struct {")
	if at < 0 {
		return text
	}
	if name := s.names[text[at:]]; name != "" {
		return text[:at] + name
	}
	return text[:at] + "struct"
}

// plainTypes are the types of other packages that fields can have.
var plainTypes = map[string]reflect.Type{
	"tensor.Tensor": reflect.TypeFor[tensor.Tensor](), "nested.Tensor": reflect.TypeFor[nested.Tensor](), "nested.Value": reflect.TypeFor[nested.Value](),
	"math/big.Int": reflect.TypeFor[big.Int](),
}

// elements are the Go types of elements, with the arrays of them.
var elements = map[reflect.Type]struct{ array, packed reflect.Type }{}

func element[T tensor.Element](alias string) {
	t := reflect.TypeFor[T]()
	packed := reflect.TypeFor[nested.Packed[T]]()
	elements[t] = struct{ array, packed reflect.Type }{reflect.TypeFor[tensor.Array[T]](), packed}
	if t.PkgPath() != "" {
		plainTypes["tensor."+t.Name()] = t
	}
	if alias != "" {
		plainTypes["nested."+alias] = packed
	}
}

func init() {
	element[float64]("F64s")
	element[float32]("F32s")
	element[tensor.Float16]("F16s")
	element[tensor.BFloat16]("BF16s")
	element[tensor.Float8E4M3FN]("")
	element[tensor.Float8E5M2]("")
	element[tensor.Float8E4M3FNUZ]("")
	element[tensor.Float8E5M2FNUZ]("")
	element[tensor.Float8E8M0FNU]("")
	element[tensor.Float4E2M1FNx2]("")
	element[int8]("I8s")
	element[int16]("I16s")
	element[int32]("I32s")
	element[int64]("I64s")
	element[uint8]("U8s")
	element[uint16]("U16s")
	element[uint32]("U32s")
	element[uint64]("U64s")
	element[bool]("Bools")
	element[tensor.Complex32]("")
	element[complex64]("C64s")
	element[complex128]("C128s")
	element[tensor.QInt8]("")
	element[tensor.QUint8]("")
	element[tensor.QInt32]("")
}
