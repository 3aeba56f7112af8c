package tca9534

import (
	"bytes"
	"testing"
)

func TestMessages(t *testing.T) {
	if got := AppendWrite(nil, RegConfig, 0); !bytes.Equal(got, []byte{3, 0}) {
		t.Errorf("write % x", got)
	}
	if got := AppendRead(nil, RegInput); !bytes.Equal(got, []byte{0}) {
		t.Errorf("read % x", got)
	}
}
