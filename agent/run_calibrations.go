package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ringlight/ocs"
	"ringlight/proto"
)

// LoadCalibrations reads what an earlier run has kept in dir, one entry a
// bundle, nil where there is none. A file that is damaged costs no start: the
// one before it is taken, or none, and the bundle's modules are asked for what
// their EEPROMs hold; damaged tells of it.
func LoadCalibrations(dir string, bundles int) (out []*ocs.Calibration, damaged []error, err error) {
	out = make([]*ocs.Calibration, bundles)
	var errs []error
	for i := range out {
		path := calibrationPath(dir, proto.BundleID(i))
		c, bad, err := loadCalibration(path)
		if bad != nil {
			before, worse, failed := loadCalibration(path + previousSuffix)
			if c = before; worse == nil && failed == nil && before != nil {
				bad = fmt.Errorf("%w; the one before is used", bad)
			}
			damaged = append(damaged, bad)
		}
		out[i] = c
		errs = append(errs, err)
	}
	return out, damaged, errors.Join(errs...)
}

// PreviousCalibration is the one before that of a bundle, nil for none.
func PreviousCalibration(dir string, b proto.BundleID) (*ocs.Calibration, error) {
	c, bad, err := loadCalibration(calibrationPath(dir, b) + previousSuffix)
	return c, errors.Join(bad, err)
}

// loadCalibration tells a file that is no calibration from one that cannot be
// read.
func loadCalibration(path string) (c *ocs.Calibration, bad, err error) {
	raw, err := readIfThere(path)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	if c, err = ocs.DecodeCalibration(raw); err != nil {
		return nil, fmt.Errorf("agent: %s: %w", path, err), nil
	}
	return c, nil, nil
}

const previousSuffix = ".previous"

func calibrationPath(dir string, b proto.BundleID) string {
	return filepath.Join(dir, fmt.Sprintf("calibration.%d", b))
}

// SaveCalibration keeps a calibration in dir, and the previous one beside it. A
// damaged one is no previous one.
func SaveCalibration(dir string, b proto.BundleID, encoded []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := calibrationPath(dir, b)
	old, err := readIfThere(path)
	if err != nil {
		return err
	}
	if _, bad := ocs.DecodeCalibration(old); old != nil && bad == nil {
		if err := writeFile(path+previousSuffix, old); err != nil {
			return err
		}
	}
	return writeFile(path, encoded)
}
