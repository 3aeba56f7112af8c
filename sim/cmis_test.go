package sim

import (
	"encoding/binary"
	"errors"
	"maps"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/cmis"
)

// mciRig is one board of CMIS modules, driven through Ports.
type mciRig struct {
	*rig
	id    BoardID
	ports []*cmis.Port
}

func newMCIRig(t testing.TB, modules int, mux bool, timing MCITiming) *mciRig {
	t.Helper()
	hw, err := boardfile.DefaultCMIS(4, 1, modules, mux)
	if err != nil {
		t.Fatal(err)
	}
	r := &mciRig{rig: &rig{t: t, w: NewWorld(WorldConfig{Seed: 1}), hw: hw}}
	r.id, err = r.w.AddBoard(BoardConfig{Board: hw, Seed: 5, Powered: true, MCI: timing})
	if err != nil {
		t.Fatal(err)
	}
	for i := range hw.Bundles[0].Modules {
		m := &hw.Bundles[0].Modules[i]
		r.ports = append(r.ports, cmis.NewPort(m.Mux, m.MuxChannel))
	}
	return r
}

// request runs one request to its end.
func (r *mciRig) request(module int, q cmis.Request) error {
	r.t.Helper()
	p, bus := r.ports[module], r.hw.Bundles[0].Modules[module].MCI
	p.Start(r.w.Now(), q)
	for p.Busy() {
		if at := p.Next(); at > r.w.Now() {
			r.run(at - r.w.Now())
		}
		c := r.do(r.id, bus, p.Poll(r.w.Now())...)
		p.Completed(r.w.Now(), c.Msg, c.Err)
	}
	return p.Err()
}

func (r *mciRig) read(module int, page, offset uint8, n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	if err := r.request(module, cmis.Request{Page: page, Offset: offset, Data: b}); err != nil {
		r.t.Fatalf("read %02xh %d: %v", page, offset, err)
	}
	return b
}

func (r *mciRig) write(module int, page, offset uint8, b ...byte) {
	r.t.Helper()
	if err := r.request(module, cmis.Request{Write: true, Page: page, Offset: offset, Data: b}); err != nil {
		r.t.Fatalf("write %02xh %d: %v", page, offset, err)
	}
}

// up brings a module to ModuleReady.
func (r *mciRig) up(module int) {
	r.t.Helper()
	r.write(module, 0, cmis.ModuleControl, 0)
	r.run(time.Second)
	if s := cmis.ModuleStateOf(r.read(module, 0, cmis.StateByte, 1)[0]); s != cmis.ModuleReady {
		r.t.Fatalf("module is in %v", s)
	}
}

// Goal: a page that is not there reads back as such, for quick and for slow
// controllers; one that is there has its bytes and checksums.
func TestMCIPages(t *testing.T) {
	for _, timing := range []MCITiming{DefaultMCITiming(), SlowMCITiming()} {
		for _, mux := range []bool{false, true} {
			r := newMCIRig(t, 2, mux, timing)
			for page := range uint8(3) {
				if err := cmis.CheckPage(page, r.read(1, page, 128, 128)); err != nil {
					t.Error(err)
				}
			}
			a, err := cmis.ParseAdvert(r.read(1, cmis.PageAdvertise, 128, 128))
			if err != nil || a.PageChange < timing.PageChange {
				t.Errorf("%+v, %v", a, err)
			}
			for _, q := range []cmis.Request{{Page: 0x12, Offset: 128, Data: make([]byte, 1)}, {Bank: 1, Page: 0x10, Offset: 128, Data: make([]byte, 1)}} {
				if err := r.request(1, q); !errors.Is(err, cmis.ErrNoPage) {
					t.Errorf("bank %d page %02xh: %v", q.Bank, q.Page, err)
				}
			}
			if got := cmis.Text(r.read(1, 0, 166, 16)); got != r.w.Personality(r.id, 0, 1).Serial() {
				t.Errorf("serial %q", got)
			}
			if r.ports[1].Holdoffs == 0 {
				t.Error("a page change was never waited for")
			}
		}
	}
}

// Goal: the module refuses what modules refuse.
func TestMCIRefusals(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	bus := r.hw.Bundles[0].Modules[0].MCI
	long := append([]byte{130}, make([]byte, 9)...)
	if c := r.do(r.id, bus, hal.Msg{Addr: hal.MCIAddr, W: long}); !errors.Is(c.Err, hal.ErrByteNACK) {
		t.Errorf("nine bytes at once: %v", c.Err)
	}
	r.must(r.id, bus, hal.Msg{Addr: hal.MCIAddr, W: []byte{cmis.BankSelect, 0, cmis.PageCodesA}})
	if c := r.do(r.id, bus, hal.Msg{Addr: hal.MCIAddr, W: []byte{0}, R: make([]byte, 1)}); !errors.Is(c.Err, hal.ErrAddressNACK) {
		t.Errorf("held off, yet: %v", c.Err)
	}
	r.ports[0].Forget()
	for _, tc := range []struct {
		trigger byte
		want    cmis.Answer
	}{
		{0x83, cmis.AnswerBadValue}, {0x30, cmis.AnswerBadValue}, {0xC0, cmis.AnswerBadValue}, {0x80, cmis.AnswerLowPower},
	} {
		r.write(0, 0, cmis.Trigger, tc.trigger)
		if s, err := cmis.ParseStatus(r.read(0, 0, cmis.Trigger, cmis.StatusBytes)); err != nil || s.Answer != tc.want || s.InForce != 0 {
			t.Errorf("trigger %02x: %+v, %v", tc.trigger, s, err)
		}
	}
	r.up(0)
	r.write(0, cmis.PageCodesA, 128, 0xFF, 0xFF)
	r.write(0, 0, cmis.Trigger, 0xB0)
	if s, _ := cmis.ParseStatus(r.read(0, 0, cmis.Trigger, cmis.StatusBytes)); s.Answer != cmis.AnswerNotStaged {
		t.Errorf("codes that are not applied: %+v", s)
	}
	before := r.w.Limits(r.id).Volt
	r.write(0, cmis.PageOCS, cmis.Apply, 1)
	if a := cmis.Answer(r.read(0, cmis.PageOCS, cmis.ApplyAnswer, 1)[0]); a != cmis.AnswerBadValue {
		t.Errorf("10 V on a heater: %v", a)
	}
	if r.w.Limits(r.id).Volt != before {
		t.Error("heater was driven")
	}
}

// Goal: commands run through hold-offs of the whole interface, with either
// reading of the check code, and their failures have names.
func TestMCICommands(t *testing.T) {
	for _, reading := range []cmis.CheckReading{cmis.OnesComplement, cmis.TwosComplement} {
		r := newMCIRig(t, 1, false, MCITiming{})
		c := cdb{Reading: reading, Patience: 160 * time.Millisecond}
		run := func(id uint16, payload []byte) ([]byte, error) { return r.command(&c, id, payload) }
		reply, err := run(cmis.CommandFeatures, nil)
		if err != nil || len(reply) != 36 || reply[35] != 30 {
			t.Errorf("features: % x, %v", reply, err)
		}
		if reply, err := run(cmis.CommandQueryStatus, []byte{0, 0}); err != nil || len(reply) != 3 {
			t.Errorf("status: % x, %v", reply, err)
		}
		if _, err := run(0x1234, nil); !errors.Is(err, errCDBFailed) {
			t.Errorf("unknown command: %v", err)
		}
	}
}

// command runs one to its end.
func (r *mciRig) command(c *cdb, id uint16, payload []byte) ([]byte, error) {
	r.t.Helper()
	if err := c.Start(id, payload); err != nil {
		r.t.Fatal(err)
	}
	for c.Busy() {
		if d := c.Due() - r.w.Now(); d > 0 {
			r.run(d)
		}
		err := r.request(0, c.Next())
		c.Done(r.w.Now(), err)
	}
	return c.Result()
}

// Goal: the model of firmware is one that a careless host kills: power lost while the
// committed image is being written to ends a module.
// Method: the host runs an image, does not commit it, and downloads another.
func TestMCIDiesOfACarelessHost(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	c := cdb{Patience: 160 * time.Millisecond}
	download := func(v cmis.Version) {
		image := FirmwareImage(v, 100)
		start := append(binary.BigEndian.AppendUint32(nil, uint32(len(image))), 0, 0, 0, 0)
		for _, x := range []struct {
			id uint16
			in []byte
		}{{cmis.CommandFirmwareStart, append(start, image[:16]...)}, {cmis.CommandFirmwareWriteLPL, append(make([]byte, 4), image[16:]...)}, {cmis.CommandFirmwareComplete, nil}} {
			if _, err := r.command(&c, x.id, x.in); err != nil {
				t.Fatalf("%04xh: %v", x.id, err)
			}
			if v.Major == 3 { // the power goes when the download has begun
				return
			}
		}
		if _, err := r.command(&c, cmis.CommandFirmwareRun, []byte{0, 0, 0, 10}); err != nil {
			t.Fatal(err)
		}
		r.run(time.Second)
		r.ports[0].Forget()
	}
	download(cmis.Version{Major: 2})
	if in := r.w.Inside(r.id, 0, 0); in.Firmware.Running != 1 || in.Firmware.Committed != 0 {
		t.Fatalf("%+v", in)
	}
	download(cmis.Version{Major: 3})
	r.w.SetPower(r.id, false)
	r.run(10 * time.Millisecond)
	r.w.SetPower(r.id, true)
	r.ports[0].Forget()
	if in := r.w.Inside(r.id, 0, 0); in.Alive || r.request(0, cmis.Request{Offset: 0, Data: make([]byte, 1)}) == nil {
		t.Errorf("it lives: %+v", in)
	}
}

// Goal: flags have one reader, which counts every raise between two looks; the rest of the world gets ErrLatched.
// Method: an alarm that comes and goes six times between two rounds.
func TestMCIFlags(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	f := cmis.NewFlags(r.ports[0])
	if err := r.request(0, cmis.Request{Offset: cmis.ModuleFlags, Data: make([]byte, 1)}); !errors.Is(err, cmis.ErrLatched) {
		t.Errorf("a second reader: %v", err)
	}
	round := func() {
		for _, q := range f.InService() {
			if err := r.request(0, q); err != nil {
				t.Fatal(err)
			}
		}
		f.Taken()
	}
	round()
	for range 6 {
		r.w.SetAmbient(r.id, 90_000)
		r.run(time.Millisecond)
		r.w.SetAmbient(r.id, 30_000)
		r.run(time.Millisecond)
	}
	round()
	if n := maps.Collect(f.Raised)["TempMonHighAlarm"]; n != 6 {
		t.Errorf("after six alarms: %d", n)
	}
	r.w.SetAmbient(r.id, 90_000)
	round()
	round() // it stands: nothing new
	r.w.SetAmbient(r.id, 30_000)
	round()
	round()
	if n := maps.Collect(f.Raised)["TempMonHighAlarm"]; n != 7 {
		t.Errorf("after the seventh: %d", n)
	}
}

// dump reads the linear image of a module.
func (r *mciRig) dump(module int) []byte {
	r.t.Helper()
	d := cmis.NewDump(1, cmis.NewFlags(r.ports[module]))
	for {
		if over, err := d.Over(); over {
			if err != nil {
				r.t.Fatal(err)
			}
			return d.Image.Bytes()
		}
		err := r.request(module, d.Next())
		d.Done(err)
	}
}

// Goal: the linear image has each page where public tools look for it.
// Method: lengths, places and checksums; pages that are not there are zero.
func TestMCIDump(t *testing.T) {
	r := newMCIRig(t, 2, true, MCITiming{})
	r.up(1)
	image := r.dump(1)
	if want := (cmis.PageCalibrate + 2) * 128; len(image) != want {
		t.Fatalf("%d bytes, want %d", len(image), want)
	}
	for page := range uint8(cmis.PageCalibrate + 1) {
		p := image[128*(int(page)+1):][:128]
		if err := cmis.CheckPage(page, p); err != nil {
			t.Error(err)
		}
		there := r.w.boards[r.id].bundles[0].modules[1].mci.pages[page] != nil
		empty := true
		for _, v := range p {
			empty = empty && v == 0
		}
		if !there && !empty {
			t.Errorf("page %02xh is not implemented, but not zero", page)
		}
	}
}

// Goal: states follow the host by the specification's edges, and light with
// them: no lane shines whose data path is down or whose output is disabled.
func TestMCIStates(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	m := &r.w.boards[r.id].bundles[0].modules[0]
	lanes := func() (list []cmis.DataPathState) {
		b := r.read(0, cmis.PageLaneStatus, cmis.DPStates, 4)
		for lane := range cmis.Lanes {
			list = append(list, cmis.DataPathState(cmis.Nibble(b, lane)))
		}
		return list
	}
	want := func(step string, shining uint8, states ...cmis.DataPathState) {
		t.Helper()
		r.run(10 * time.Millisecond)
		for lane, s := range lanes() {
			if s != states[lane%len(states)] {
				t.Errorf("%s: lane %d in %v", step, lane, s)
			}
		}
		if got := m.lit(int64(r.w.Now())); got != shining {
			t.Errorf("%s: lanes %08b shine, want %08b", step, got, shining)
		}
	}
	provision := func(step string, mask byte, result cmis.ConfigStatus, sets ...byte) {
		t.Helper()
		for lane := range cmis.Lanes {
			r.write(0, cmis.PageLaneControl, cmis.StagedSet+uint8(lane), sets[lane%len(sets)])
		}
		r.write(0, cmis.PageLaneControl, cmis.ApplyDPInit, mask)
		b := r.read(0, cmis.PageLaneStatus, cmis.ConfigStatuses, 4)
		for lane := range cmis.Lanes {
			if got := cmis.ConfigStatus(cmis.Nibble(b, lane)); mask>>lane&1 != 0 && got != result {
				t.Errorf("%s: lane %d: configuration %v, want %v", step, lane, got, result)
			}
		}
	}
	r.write(0, 0, cmis.ModuleControl, cmis.LowPwrAllowHW)
	r.run(time.Second)
	if s := cmis.ModuleStateOf(r.read(0, 0, cmis.StateByte, 1)[0]); s != cmis.ModuleLowPwr {
		t.Errorf("the LPMode line is up and heard, yet: %v", s)
	}
	r.up(0)
	want("powered up by itself", 0xFF, cmis.DPActivated)
	r.write(0, cmis.PageOCS, cmis.Apply, 1)
	r.run(time.Millisecond)
	r.write(0, 0, cmis.Trigger, 0xB0)
	want("lit", 0xFF, cmis.DPActivated)
	r.write(0, cmis.PageLaneControl, cmis.OutputDisableTx, 0x55)
	want("one data path, every other output disabled", 0xAA, cmis.DPInitialized)
	r.write(0, cmis.PageLaneControl, cmis.OutputDisableTx, 0)
	want("enabled again", 0xFF, cmis.DPActivated)
	provision("step by step only", 0xFF, cmis.ConfigLaneInUse, 0x10)
	r.write(0, cmis.PageLaneControl, cmis.DPDeinit, 0x02)
	want("one lane down is the data path down", 0, cmis.DPDeactivated)
	provision("no such application", 0xFF, cmis.ConfigInvalidAppSel, 0x30)
	provision("eight lanes of four", 0x0F, cmis.ConfigPartialPath, 0x10)
	provision("data paths that begin elsewhere", 0xFF, cmis.ConfigInvalidPath, 0x16)
	provision("a data path a lane", 0xFF, cmis.ConfigSuccess, 0x20, 0x22, 0x24, 0x26, 0x28, 0x2A, 0x2C, 0x2E)
	if b := r.read(0, cmis.PageLaneStatus, cmis.DPInitPending, 1)[0]; b != 0x02 {
		t.Errorf("held down, pending %08b", b)
	}
	r.write(0, cmis.PageLaneControl, cmis.OutputDisableTx, 0x55)
	r.write(0, cmis.PageLaneControl, cmis.DPDeinit, 0)
	want("every other output disabled", 0xAA, cmis.DPInitialized, cmis.DPActivated)
	if b := r.read(0, cmis.PageLaneStatus, cmis.DPInitPending, 1)[0]; b != 0 {
		t.Errorf("up, pending %08b", b)
	}
	r.write(0, cmis.PageLaneControl, cmis.OutputDisableTx, 0)
	r.write(0, cmis.PageLaneControl, cmis.DPDeinit, 0xAA)
	want("every other path down", 0x55, cmis.DPActivated, cmis.DPDeactivated)
	r.write(0, 0, cmis.Trigger, 0x80)
	want("no lasers: squelched, not down", 0, cmis.DPActivated, cmis.DPDeactivated)
	r.write(0, 0, cmis.ModuleControl, cmis.LowPwrRequest)
	want("going down", 0, cmis.DPDeactivated)
	r.run(time.Second)
	if s := cmis.ModuleStateOf(r.read(0, 0, cmis.StateByte, 1)[0]); s != cmis.ModuleLowPwr {
		t.Errorf("low power: %v", s)
	}
	r.write(0, cmis.PageLaneControl, cmis.DPDeinit, 0)
	provision("in low power", 0xFF, cmis.ConfigRejected, 0x10)
	r.up(0)
}

// Goal: lower memory says where flags stand, whatever masks say, and asks for
// attention for those that are not masked.
func TestMCISummary(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	r.up(0)
	bus := r.hw.Bundles[0].Modules[0].MCI
	bytes := func(offset, n int) []byte {
		msg := hal.Msg{Addr: hal.MCIAddr, W: []byte{byte(offset)}, R: make([]byte, n)}
		return r.must(r.id, bus, msg).Op.Msgs[0].R
	}
	want := func(step string, summary byte, asks bool) {
		t.Helper()
		r.run(20 * time.Millisecond)
		if b := bytes(cmis.StateByte, 2); b[1] != summary || (b[0]&cmis.InterruptDeasserted == 0) != asks {
			t.Errorf("%s: state %02x, summary %02x", step, b[0], b[1])
		}
	}
	want("up", cmis.SummaryLaneStatus, true)
	r.write(0, cmis.PageLaneControl, cmis.LaneMasks, 0xFF)
	want("lanes masked", cmis.SummaryLaneStatus, true)
	r.write(0, 0, cmis.ModuleMasks, cmis.FlagStateChange)
	want("the module too", cmis.SummaryLaneStatus, false)
	r.read(0, cmis.PageLaneStatus, cmis.DPStates, 1)
	bytes(cmis.LaneFlags, cmis.LaneFlagBytes)
	want("lane flags read", 0, false)
	r.w.SetAmbient(r.id, 90_000)
	want("an alarm", 0, true)
	r.w.SetAmbient(r.id, 30_000)
	bytes(cmis.ModuleFlags, cmis.ModuleFlagBytes)
	want("gone and read", 0, false)
}

// Goal: no host, however wild, makes the controller take an illegal edge, drive
// a heater beyond its limits, or hold off for ever.
func FuzzMCI(f *testing.F) {
	f.Add([]byte{26, 0x40, 0, 64, 0xB0, 1, 127, 0xB0, 0, 160, 1, 0})
	f.Add([]byte{127, 0x10, 0, 145, 0x10, 0, 143, 0xFF, 0, 26, 0x48, 0, 128, 0xFF, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newMCIRig(t, 1, false, MCITiming{})
		for i := 0; i+2 < len(b) && i < 300; i += 3 {
			msg := hal.Msg{Addr: hal.MCIAddr, W: []byte{b[i], b[i+1]}}
			if b[i+2]&1 != 0 {
				msg.R = make([]byte, 1+int(b[i+2]))
				msg.W = msg.W[:1]
			}
			r.do(r.id, 0, msg)
			r.run(time.Duration(b[i+2]) * time.Millisecond)
		}
		r.run(2 * time.Second)
		if c := r.do(r.id, 0, hal.Msg{Addr: hal.MCIAddr, W: []byte{0}, R: make([]byte, 1)}); c.Err != nil || c.Op.Msgs[0].R[0] != 0x18 {
			t.Errorf("afterwards: % x, %v", c.Op.Msgs[0].R, c.Err)
		}
		if mv := r.w.Limits(r.id).Volt; int64(mv) > hal.Standard().Heater.MaxMillivolt*1_000_000 {
			t.Errorf("%v on a heater", mv)
		}
	})
}
