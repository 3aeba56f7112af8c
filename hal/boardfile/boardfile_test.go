package boardfile

import (
	"testing"

	"ringlight/hal"
)

func TestDefault(t *testing.T) {
	for _, dac := range []hal.Part{hal.LTC2688, hal.AD5676R} {
		if _, err := DefaultOf(dac, 4, 8, 8); err != nil {
			t.Fatal(err)
		}
	}
	for _, mux := range []bool{false, true} {
		if _, err := DefaultCMIS(4, 8, 8, mux); err != nil {
			t.Fatal(err)
		}
	}
}
