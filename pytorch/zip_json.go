package pytorch

import (
	"bytes"
	"encoding/json"

	"github.com/wick-ml/wick/fault"
)

// member is one key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// readJSON returns a JSON record, within the limit for headers.
func (z *zipOpener) readJSON(name string) ([]byte, error) {
	e, err := z.find(z.top + name)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fault.New(fault.Malformed, "no record "+name+": it is missing").InRecord(z.top+name).
			Needs("the record", fault.MadeToDeceive)
	}
	return z.read(e, z.env.Limits.HeaderBytes, z.env.Limits)
}

// members returns an object's members in the order of the text, which a map
// would lose.
func members(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, badJSON(err)
	}
	var list []member
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, badJSON(err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, badJSON(nil)
		}
		m := member{key: key}
		if err := dec.Decode(&m.value); err != nil {
			return nil, badJSON(err)
		}
		list = append(list, m)
	}
	return list, nil
}

// parseJSON reads a value of a known form.
func parseJSON(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return badJSON(err)
	}
	return nil
}

func badJSON(err error) error {
	return fault.Wrap(fault.Malformed, "a JSON text of another form", err).Needs("what torch writes there", fault.MadeToDeceive)
}

// jsonObject is an object whose members keep their order.
type jsonObject []member

// UnmarshalJSON reads the members.
func (o *jsonObject) UnmarshalJSON(data []byte) (err error) {
	*o, err = members(data)
	return err
}
