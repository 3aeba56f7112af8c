package ocs

import (
	"errors"
	"fmt"
)

// Why a Select or Calibrate is refused, and why a bundle is out of service.
var (
	ErrNotCalibrated = errors.New("not calibrated")
	ErrNotReady      = errors.New("not ready")
	ErrBusy          = errors.New("calibration under way")
	ErrOutOfService  = errors.New("out of service")
	ErrCarriesLight  = errors.New("bundle is not dark")
	errNoSuchPath    = errors.New("no such path")

	// Of a calibration that is read back.
	ErrCalibrationForeign = errors.New("calibration of another module")
)

// ModuleError names the module that an error is about.
type ModuleError struct {
	Module int
	Err    error
}

func (e *ModuleError) Error() string { return fmt.Sprintf("module %d: %v", e.Module, e.Err) }
func (e *ModuleError) Unwrap() error { return e.Err }
