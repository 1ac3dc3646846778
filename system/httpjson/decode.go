package httpjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

func invalid(format string, args ...any) *Error {
	return Errorf(http.StatusBadRequest, "body_invalid", format, args...)
}

// Decode fills value from body, which must be exactly one JSON object. What isn't is a 400 body_invalid. A field of the
// wrong type is named in the message; fields nobody knows are ignored, so that a channel may add some.
func Decode(body []byte, value any) error {
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) == 0:
		return invalid("the body is empty; it must be a JSON object")
	case trimmed[0] != '{':
		return invalid("the body must be a JSON object")
	}
	err := json.Unmarshal(body, value) // unlike a Decoder, it refuses what follows the object
	var mismatch *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &mismatch):
		return invalid("%s must be %s, not %s", writtenName(mismatch.Field), wanted(mismatch.Type), found(mismatch.Value))
	case errors.As(err, &syntax):
		return invalid("the body is not one JSON object, see its byte %d: %v", syntax.Offset, err)
	case err != nil:
		return invalid("the body is not one JSON object: %v", err)
	}
	return nil
}

// writtenName is a field's path as a caller writes it: without the embedded structs, which only Go knows. Their names
// begin with a capital letter; those of our fields don't.
func writtenName(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return unicode.IsUpper([]rune(name)[0]) })
	return strings.Join(names, ".")
}

// wanted says what values of a type look like in JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d", math.MaxInt64)
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// found says what encoding/json calls "string", "number 1.5" or "bool" in a sentence.
func found(value string) string {
	_, literal, isNumber := strings.Cut(value, " ")
	switch {
	case isNumber:
		return fmt.Sprintf("%.40s", literal)
	case value == "array", value == "object":
		return "an " + value
	case value == "bool":
		return "a boolean"
	}
	return "a " + value
}

// Read is ReadBody followed by Decode.
func Read(r *http.Request, value any) error {
	body, err := ReadBody(r.Body)
	if err != nil {
		return err
	}
	return Decode(body, value)
}

// ReadStrict is Read for a body that our own callers write. A field nobody knows is a 400 field_unknown, since a
// misspelt one would otherwise be taken for one that was left out; one that is given twice is a 400 body_invalid.
func ReadStrict(r *http.Request, value any) error {
	body, err := ReadBody(r.Body)
	if err != nil {
		return err
	}
	if err := Decode(body, value); err != nil {
		return err
	}
	return checkFields(body, fieldNames(value))
}

// ReadNothing is ReadStrict for a request that says everything by its path: its body is empty or an object of no fields.
func ReadNothing(r *http.Request) error {
	body, err := ReadBody(r.Body)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	var none struct{}
	if err := Decode(body, &none); err != nil {
		return err
	}
	return checkFields(body, nil)
}

// fieldNames are the fields of a request, with those of its embedded structs.
func fieldNames(value any) []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(value).Elem()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// checkFields looks at the names in an object, which has been decoded before and so can be read.
func checkFields(body []byte, known []string) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	_, err := decoder.Token() // the opening brace
	seen := map[string]bool{}
	for err == nil && decoder.More() {
		token, _ := decoder.Token()
		name, _ := token.(string)
		switch {
		case !slices.Contains(known, name):
			there := "none"
			if len(known) > 0 {
				there = strings.Join(known, ", ")
			}
			return Errorf(http.StatusBadRequest, "field_unknown", "there is no field %.40q; there are: %s", name, there)
		case seen[name]:
			return invalid("%s is given twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		err = decoder.Decode(&value)
	}
	return err
}
