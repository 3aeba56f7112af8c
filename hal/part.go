package hal

import (
	"fmt"
	"slices"
	"strings"

	"periph.io/x/conn/v3/physic"
)

// Part is a chip as catalogues name it.
type Part uint8

const (
	NoPart Part = iota
	// LTC2688 is three of sixteen channels a module, each with two codes between
	// which the toggle nets choose.
	LTC2688
	// AD5676R is five of eight channels, GAIN high and every output doubled by
	// AD5676RStageGain. An edge of toggle net 0, either way, pulses LDAC of the first,
	// one of net 1 that of the second; on the others LDAC is high.
	AD5676R
	AD5535B
	ADS7138
	AD7998
	PCA9535
	PCAL6524
	TCA9534
	PCA9548
	TMP102
	INA219
	PCA9848
	AT24C64
	AT24C02
	CMIS // a module with a controller of its own
	// GPIOLatch is lines of the machine itself, which answer to the registers of a PCA9535 on
	// a bus of their own.
	GPIOLatch
	SC18IS602 // a bridge to SPI
	// CMISPattern makes and checks bit patterns on the lanes of a module without a controller:
	// a retimer with pages 13h and 14h of CMIS.
	CMISPattern
)

// Role is what a part is on a board.
type Role uint8

const (
	RoleDAC Role = iota + 1
	RoleMirrorDAC
	RoleADC
	RoleLatch
	RoleLaneEnable
	RoleMux
	RoleTemperature
	RoleRail
	RoleMemory
	RoleModule
	RoleBridge
	RolePattern
)

// PartData is what a board must keep to with a part.
type PartData struct {
	Name string // as board files have it
	// Also are other names of it, and of parts with the same registers and limits.
	Also []string
	// Driven is set by the package that drives a role when it was given a driver.
	Driven bool
	// Like is the part whose registers an added one has: drivers and the simulator take
	// it for that one, boards keep to its own clock, addresses and channels.
	Like Part
	Role Role
	Bus  BusKind
	// MaxClock is the fastest that it is clocked, reads included.
	MaxClock physic.Frequency
	// SPIMode of a part on SPI: CPOL and CPHA.
	SPIMode             uint8
	FirstAddr, LastAddr uint16 // of a part on I2C
	Channels            int    // of a converter, ports of eight pins of an expander
	PerModule           int    // how many drive the heaters of a module
	// ByNet says that an edge of a toggle net acts on all channels of a chip: the
	// first then has the cells of net 0, the second those of net 1.
	ByNet bool
}

// Where a GPIOLatch answers, and how fast its bus is taken to be: a write of lines is about
// as long as one to an expander at this clock.
const (
	GPIOLatchAddr  = 0x20
	GPIOLatchClock = physic.MegaHertz
)

// parts by number. Clocks are those of the vendors' product pages and of the
// bindings of the Linux kernel.
//
// SPI modes: the kernel's drivers of LTC2688 and AD5676R leave the mode to
// the board's description; the LTC2688's family samples at the rising edge
// (mode 0), the AD5676R at the falling one of a clock that rests low (mode 1), and
// so does the AD5535B.
var parts = []PartData{
	LTC2688: {Name: "ltc2688", Role: RoleDAC, Bus: SPI, MaxClock: 50 * physic.MegaHertz, SPIMode: 0, Channels: 16, PerModule: 3},
	// 50 MHz to write, 25 MHz with a readback.
	AD5676R: {Name: "ad5676r", Role: RoleDAC, Bus: SPI, MaxClock: 25 * physic.MegaHertz, SPIMode: 1, Channels: 8, PerModule: 5, ByNet: true},
	AD5535B: {Name: "ad5535b", Role: RoleMirrorDAC, Bus: SPI, MaxClock: 30 * physic.MegaHertz, SPIMode: 1, Channels: MirrorDACChannels},
	// 3.4 MHz needs the master's high-speed mode, which i2c-dev has not.
	ADS7138: {Name: "ads7138", Role: RoleADC, Bus: I2C, MaxClock: physic.MegaHertz, FirstAddr: 0x10, LastAddr: 0x17, Channels: 8},
	// Its high-speed variant likewise.
	AD7998:  {Name: "ad7998", Also: []string{"ad7998-0", "ad7998-1"}, Role: RoleADC, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x20, LastAddr: 0x24, Channels: 8},
	PCA9535: {Name: "pca9535", Also: []string{"tca9535", "pca9555", "tca9555"}, Role: RoleLatch, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x20, LastAddr: 0x27, Channels: 2},
	// Fast-mode Plus.
	PCAL6524:    {Name: "pcal6524", Role: RoleLatch, Bus: I2C, MaxClock: physic.MegaHertz, FirstAddr: 0x20, LastAddr: 0x23, Channels: 3},
	TCA9534:     {Name: "tca9534", Also: []string{"tca9534a", "pca9534", "pca9534a", "pca9554", "pca9554a", "tca9554", "tca9554a"}, Role: RoleLaneEnable, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x20, LastAddr: 0x3f, Channels: 1},
	PCA9548:     {Name: "pca9548", Also: []string{"pca9548a", "tca9548a"}, Role: RoleMux, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x70, LastAddr: 0x77, Channels: 8},
	PCA9848:     {Name: "pca9848", Role: RoleMux, Bus: I2C, MaxClock: physic.MegaHertz, FirstAddr: 0x70, LastAddr: 0x77, Channels: 8},
	TMP102:      {Name: "tmp102", Also: []string{"tmp112"}, Role: RoleTemperature, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x48, LastAddr: 0x4b},
	INA219:      {Name: "ina219", Also: []string{"ina219a", "ina219b"}, Role: RoleRail, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x40, LastAddr: 0x4f},
	AT24C64:     {Name: "24c64", Also: []string{"at24c64", "24lc64", "24aa64", "m24c64"}, Role: RoleMemory, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x50, LastAddr: 0x57},
	AT24C02:     {Name: "24c02", Also: []string{"at24c02", "24lc02b", "24aa02", "m24c02"}, Role: RoleMemory, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x50, LastAddr: 0x57},
	CMIS:        {Name: "cmis", Role: RoleModule, Bus: I2C, MaxClock: physic.MegaHertz, FirstAddr: MCIAddr, LastAddr: MCIAddr},
	GPIOLatch:   {Name: "gpio", Like: PCA9535, Role: RoleLatch, Bus: I2C, MaxClock: GPIOLatchClock, FirstAddr: GPIOLatchAddr, LastAddr: GPIOLatchAddr, Channels: 2},
	SC18IS602:   {Name: "sc18is602b", Role: RoleBridge, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x28, LastAddr: 0x2f, Channels: 4},
	CMISPattern: {Name: "cmis-pattern", Role: RolePattern, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x58, LastAddr: 0x5f},
}

// Data of a part.
func (p Part) Data() *PartData { return &parts[p] }

// Like is the part whose registers p has: itself, but for one that was added.
func (p Part) Like() Part {
	if like := parts[p].Like; like != NoPart {
		return like
	}
	return p
}

func (p Part) String() string { return parts[p].Name }

// PartOf finds a part by any of its names; NoPart: there is none.
func PartOf(name string) Part {
	if name == "" {
		return NoPart
	}
	return Part(max(0, slices.IndexFunc(parts, func(d PartData) bool { return d.Name == name || slices.Contains(d.Also, name) })))
}

// maxParts is as many as a Part can number.
const maxParts = 256

// AddPart makes a part known to boards that is Like another. One with registers of its own
// is added where its role is driven, with its driver: an ADC by diode.Add. It is for the
// start of a program, before a board is made.
func AddPart(d PartData) (Part, error) {
	bad := func(format string, args ...any) (Part, error) {
		return NoPart, fmt.Errorf("hal: part %q: %w: %s", d.Name, ErrOutOfRange, fmt.Sprintf(format, args...))
	}
	for _, name := range append([]string{d.Name}, d.Also...) {
		if name == "" || name != strings.ToLower(name) || PartOf(name) != NoPart {
			return bad("want a name of its own in lower case, not %q", name)
		}
	}
	if int(d.Like) >= len(parts) || len(parts) == maxParts || d.Driven == (d.Like != NoPart) {
		return bad("want a part that it is like, or a driver, and at most %d parts", maxParts)
	}
	if like := d.Like.Data(); d.Like != NoPart && (like.Role != d.Role || like.Bus != d.Bus || like.Like != NoPart || d.Channels > like.Channels) {
		return bad("want the role, the bus and at most the channels of %s", like.Name)
	}
	if d.Role < RoleDAC || d.Role > RolePattern || d.MaxClock <= 0 || d.Bus == I2C && d.FirstAddr > d.LastAddr || d.SPIMode > 3 {
		return bad("want a role, a clock, and addresses or a mode")
	}
	parts = append(parts, d)
	return Part(len(parts) - 1), nil
}

// Parts are all that a board may have.
func Parts() []Part {
	out := make([]Part, 0, len(parts)-1)
	for p := range parts[1:] {
		out = append(out, Part(p+1))
	}
	return out
}

var roles = [...]string{RoleDAC: "dac", RoleMirrorDAC: "mirror dac", RoleADC: "adc", RoleLatch: "latch", RoleLaneEnable: "lane_enable",
	RoleMux: "mux", RoleTemperature: "temperature", RoleRail: "rail", RoleMemory: "memory", RoleModule: "module", RoleBridge: "bridge", RolePattern: "pattern"}

func (r Role) String() string { return roles[r] }
