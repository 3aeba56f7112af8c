package ocs

import (
	"time"

	"ringlight/hal"
)

// OPTICS: yours. The hooks below are what transceiver.go calls. On success set
// t.cfg.Calibration, t.cal = nil, t.become(Staging) and t.startScan(now, true)
// (which stages every module, verifies and emits Ready).
type calibrating struct{}

// Calibrate starts to find every cell of every module from nothing.
func (t *Transceiver) Calibrate(now time.Duration) error { return ErrNotReady }

func (c *calibrating) due(t *Transceiver, now time.Duration) {}

func (c *calibrating) next() time.Duration { return Never }

func (c *calibrating) completed(t *Transceiver, now time.Duration, done *hal.Completion, n int) {}

func (c *calibrating) progress(t *Transceiver) Progress { return Progress{} }
