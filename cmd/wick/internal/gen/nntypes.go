package gen

import (
	"reflect"

	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// modules are the structs of package nn with float32.
var modules = map[string]reflect.Type{
	"BatchNorm":               reflect.TypeFor[nn.BatchNorm[float32]](),
	"BatchNorm1d":             reflect.TypeFor[nn.BatchNorm1d[float32]](),
	"BatchNorm2d":             reflect.TypeFor[nn.BatchNorm2d[float32]](),
	"BatchNorm3d":             reflect.TypeFor[nn.BatchNorm3d[float32]](),
	"Bilinear":                reflect.TypeFor[nn.Bilinear[float32]](),
	"Cell":                    reflect.TypeFor[nn.Cell[float32]](),
	"Conv1d":                  reflect.TypeFor[nn.Conv1d[float32]](),
	"Conv2d":                  reflect.TypeFor[nn.Conv2d[float32]](),
	"Conv3d":                  reflect.TypeFor[nn.Conv3d[float32]](),
	"ConvTranspose1d":         reflect.TypeFor[nn.ConvTranspose1d[float32]](),
	"ConvTranspose2d":         reflect.TypeFor[nn.ConvTranspose2d[float32]](),
	"ConvTranspose3d":         reflect.TypeFor[nn.ConvTranspose3d[float32]](),
	"CrossAttention":          reflect.TypeFor[nn.CrossAttention[float32]](),
	"Embedding":               reflect.TypeFor[nn.Embedding[float32]](),
	"EmbeddingBag":            reflect.TypeFor[nn.EmbeddingBag[float32]](),
	"GRU":                     reflect.TypeFor[nn.GRU[float32]](),
	"GRUCell":                 reflect.TypeFor[nn.GRUCell[float32]](),
	"GroupNorm":               reflect.TypeFor[nn.GroupNorm[float32]](),
	"InstanceNorm":            reflect.TypeFor[nn.InstanceNorm[float32]](),
	"InstanceNorm1d":          reflect.TypeFor[nn.InstanceNorm1d[float32]](),
	"InstanceNorm2d":          reflect.TypeFor[nn.InstanceNorm2d[float32]](),
	"InstanceNorm3d":          reflect.TypeFor[nn.InstanceNorm3d[float32]](),
	"LSTM":                    reflect.TypeFor[nn.LSTM[float32]](),
	"LSTMCell":                reflect.TypeFor[nn.LSTMCell[float32]](),
	"Layer":                   reflect.TypeFor[nn.Layer[float32]](),
	"LayerNorm":               reflect.TypeFor[nn.LayerNorm[float32]](),
	"Linear":                  reflect.TypeFor[nn.Linear[float32]](),
	"MultiheadAttention":      reflect.TypeFor[nn.MultiheadAttention[float32]](),
	"PReLU":                   reflect.TypeFor[nn.PReLU[float32]](),
	"RMSNorm":                 reflect.TypeFor[nn.RMSNorm[float32]](),
	"RNN":                     reflect.TypeFor[nn.RNN[float32]](),
	"RNNCell":                 reflect.TypeFor[nn.RNNCell[float32]](),
	"ReverseLayer":            reflect.TypeFor[nn.ReverseLayer[float32]](),
	"TransformerDecoderLayer": reflect.TypeFor[nn.TransformerDecoderLayer[float32]](),
	"TransformerEncoderLayer": reflect.TypeFor[nn.TransformerEncoderLayer[float32]](),
}

var (
	float32Type  = reflect.TypeFor[float32]()
	float32Array = reflect.TypeFor[tensor.Array[float32]]()
)

// retype returns the struct of package nn with other elements than float32, made
// by reflection: what is compiled is one instance of each.
func retype(t, elem reflect.Type) reflect.Type {
	switch {
	case elem == float32Type:
		return t
	case t == float32Array:
		return elements[elem].array
	case t.Kind() == reflect.Pointer:
		return reflect.PointerTo(retype(t.Elem(), elem))
	case t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[nn.Linear[float32]]().PkgPath():
		return t
	}
	var fields []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag
		if f.Anonymous {
			tag = inlineTag(tag)
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: retype(f.Type, elem), Tag: tag})
	}
	return reflect.StructOf(fields)
}
