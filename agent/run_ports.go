package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

// The runner's ports: the board, the link and the disk, each behind a
// goroutine of its own.

// Submit gives work to the board, unless its device is kept off the bus.
func (r *runner) Submit(now time.Duration, w Work) error {
	if err := r.quarantine.Refuse(now, w.Bus, w.Op); err != nil {
		return err
	}
	r.submitted = true
	return r.hardware.Submit(w.Bus, w.Op)
}

// errSendQueue says that the link is slower than the agent.
var errSendQueue = errors.New("agent: too many packets wait for the link")

// Send queues a packet for the link.
func (r *runner) Send(_ time.Duration, p proto.Packet) error {
	if r.cfg.Link == nil {
		return nil
	}
	select {
	case r.sends <- p:
		return nil
	default:
		return errSendQueue
	}
}

// Persist queues a record for the disk; the agent has one under way at a time.
func (r *runner) Persist(_ time.Duration, id uint64, record *Record) error {
	r.records <- savedRecord{id, record.Encode()}
	return nil
}

func (r *runner) calibrated(b proto.BundleID, c *ocs.Calibration) {
	if r.cfg.Calibrated == nil {
		return
	}
	if err := r.cfg.Calibrated(b, c); err != nil {
		r.log.Error("calibration not kept", "bundle", b, "error", err)
	}
}

func (r *runner) say(level uint8, text string) {
	r.look()
	r.log.Log(context.Background(), []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}[min(level, 2)], "agent", "text", text)
}

// restart looks whether the agent can be started anew.
func (r *runner) restart(ctx context.Context, software string) {
	var why string
	if err := r.cfg.Restart(software); err != nil {
		why = err.Error()
	}
	r.call(ctx, func() { r.tell(Input{Kind: InRestart, Text: why}) })
}

// maxFirmware bounds a file. chosen: modules have a megabyte or two.
const maxFirmware = 8 << 20

// firmware reads the file of a version of the modules' firmware.
func (r *runner) firmware(ctx context.Context, version string) {
	in := Input{Kind: InFirmware}
	name := filepath.Join(r.cfg.Firmware, version+".bin")
	info, err := os.Stat(name)
	switch {
	case err != nil:
	case info.Size() > maxFirmware:
		err = fmt.Errorf("%s: %d bytes: at most %d", name, info.Size(), maxFirmware)
	default:
		in.Line, err = os.ReadFile(name)
	}
	if err != nil {
		in.Text = err.Error()
	}
	r.call(ctx, func() { r.tell(in) })
}

const (
	// diskRetry is how long a disk that refuses a record is left alone. chosen.
	diskRetry = 5 * time.Second
	// diskProbe is the time between two looks whether the journal can be written, where
	// nothing is to be. chosen: a planner steps over a node in seconds, and a person mends a
	// disk in minutes; with what the file system adds 50 MB a day, of the thousands of
	// gigabytes that a small flash takes in its life.
	diskProbe = 30 * time.Second
)

// keep writes records to the journal; the agent waits with its answers, never
// with its light.
func (r *runner) keep(ctx context.Context, file *fileJournal) {
	said := ""
	say := func(err error) error {
		why := ""
		if err != nil {
			why = err.Error()
		}
		if why != said {
			said = why
			r.call(ctx, func() { r.tell(Input{Kind: InJournal, Text: why}) })
		}
		return err
	}
	for probed := time.Now(); ; {
		wait := diskProbe
		if said != "" {
			wait = diskRetry
		}
		var rec savedRecord
		select {
		case rec = <-r.records:
		case s := <-r.rows:
			r.bins.write(s)
			continue
		case <-time.After(time.Until(probed.Add(wait))):
			if probed = time.Now(); file != nil {
				_ = say(file.probe()) // it is told
			}
			continue
		case <-ctx.Done():
			return
		}
		for file != nil {
			err := file.append(rec.raw)
			if err == nil && said != "" {
				_ = say(file.probe()) // a short record finds room where a plan does not
				break
			}
			if say(err) == nil {
				break
			}
			select {
			case <-time.After(diskRetry):
			case <-ctx.Done():
				return
			}
		}
		r.call(ctx, func() { r.tell(Input{Kind: InPersisted, ID: rec.id}) })
	}
}

// transmit hands packets to the link, which may be slow.
func (r *runner) transmit(ctx context.Context) {
	for {
		select {
		case p := <-r.sends:
			if err := r.cfg.Link.Send(p); err != nil {
				r.log.Debug("not sent", "topic", p.Topic, "error", err)
				r.call(ctx, func() { r.tell(Input{Kind: InSendFailed}) })
			}
		case <-ctx.Done():
			return
		}
	}
}
