package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"ringlight/proto/limit"
)

// Goal: every line says by which plan the agent stands, once there is one, also
// those of loggers that were made of the agent's before.
func TestLinesNameThePlan(t *testing.T) {
	var b bytes.Buffer
	var at standing
	log := slog.New(planned{limit.Logger(slog.New(slog.NewTextHandler(&b, nil))).Handler(), &at})
	of := log.With("device", "adc")
	of.Info("first")
	at.term.Store(4)
	at.generation.Store(17)
	of.Warn("second", "bundle", 1)
	log.Info("third")
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 4 || strings.Contains(lines[0], "term") || !strings.HasSuffix(lines[1], "device=adc bundle=1 term=4 generation=17") || !strings.HasSuffix(lines[2], "msg=third term=4 generation=17") {
		t.Errorf("%q", lines)
	}
}
