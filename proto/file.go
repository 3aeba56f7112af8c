package proto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeFile reads a file that a person has written: one JSON document of the
// keys that v knows, and nothing behind it. An error names the line.
func DecodeFile(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		if _, err := dec.Token(); err != io.EOF {
			return atLine(data, dec.InputOffset(), errors.New("something follows the end"))
		}
		return nil
	case err == io.EOF:
		return errors.New("it is empty")
	case err == io.ErrUnexpectedEOF:
		return atLine(data, int64(len(data)), errors.New("it is cut off"))
	case errors.As(err, &syntax):
		return atLine(data, syntax.Offset-1, err)
	case errors.As(err, &kind):
		return atLine(data, kind.Offset-1, err)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return atLine(data, int64(bytes.Index(data, []byte(name))), err)
	}
	return err
}

func atLine(data []byte, offset int64, err error) error {
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), err)
}
