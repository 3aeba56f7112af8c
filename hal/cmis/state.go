package cmis

import "strconv"

// ModuleState is the state of the module state machine, byte 3 bits 3:1.
//
//	ModuleLowPwr --> ModulePwrUp --> ModuleReady --> ModulePwrDn --> ModuleLowPwr
//	      any --> ModuleFault
type ModuleState uint8

const (
	ModuleLowPwr ModuleState = 1
	ModulePwrUp  ModuleState = 2
	ModuleReady  ModuleState = 3
	ModulePwrDn  ModuleState = 4
	ModuleFault  ModuleState = 5
)

var moduleNames = [...]string{1: "ModuleLowPwr", 2: "ModulePwrUp", 3: "ModuleReady", 4: "ModulePwrDn", 5: "ModuleFault"}

func (s ModuleState) String() string { return nameOf(moduleNames[:], uint8(s)) }

// ModuleStateOf is the state in byte 3.
func ModuleStateOf(b byte) ModuleState { return ModuleState(b >> 1 & 7) }

// moduleNext are the legal successors.
var moduleNext = [...]uint8{
	ModuleLowPwr: 1<<ModulePwrUp | 1<<ModuleFault,
	ModulePwrUp:  1<<ModuleReady | 1<<ModulePwrDn | 1<<ModuleFault,
	ModuleReady:  1<<ModulePwrDn | 1<<ModuleFault,
	ModulePwrDn:  1<<ModuleLowPwr | 1<<ModulePwrUp | 1<<ModuleFault,
	ModuleFault:  1 << ModuleLowPwr,
}

// CanBecome reports whether the specification has an edge from s to o. A host
// that polls may miss transient states in between.
func (s ModuleState) CanBecome(o ModuleState) bool {
	return int(s) < len(moduleNext) && moduleNext[s]>>o&1 != 0
}

// DataPathState is the state of a data path, 11h:128-131, four bits a lane.
//
//	DPDeactivated --> DPInit --> DPInitialized <--> DPTxTurnOn --> DPActivated
//	     ^                          |      ^                          |
//	     `------- DPDeinit <--------'      `------ DPTxTurnOff <------'
type DataPathState uint8

const (
	DPDeactivated DataPathState = 1
	DPInit        DataPathState = 2
	DPDeinitState DataPathState = 3 // DPDeinit, whose name the control has
	DPActivated   DataPathState = 4
	DPTxTurnOn    DataPathState = 5
	DPTxTurnOff   DataPathState = 6
	DPInitialized DataPathState = 7
)

var pathNames = [...]string{1: "DPDeactivated", 2: "DPInit", 3: "DPDeinit", 4: "DPActivated", 5: "DPTxTurnOn", 6: "DPTxTurnOff", 7: "DPInitialized"}

func (s DataPathState) String() string { return nameOf(pathNames[:], uint8(s)) }

var pathNext = [...]uint8{
	DPDeactivated: 1 << DPInit,
	DPInit:        1<<DPInitialized | 1<<DPDeinitState,
	DPInitialized: 1<<DPTxTurnOn | 1<<DPDeinitState,
	DPTxTurnOn:    1<<DPActivated | 1<<DPTxTurnOff,
	DPActivated:   1 << DPTxTurnOff,
	DPTxTurnOff:   1<<DPInitialized | 1<<DPTxTurnOn,
	DPDeinitState: 1 << DPDeactivated,
}

// CanBecome reports whether the specification has an edge from s to o.
func (s DataPathState) CanBecome(o DataPathState) bool {
	return int(s) < len(pathNext) && pathNext[s]>>o&1 != 0
}

// Nibble is the value of a lane in a field of four bits a lane, the first lane
// in the low half.
func Nibble(b []byte, lane int) uint8 { return b[lane/2] >> (4 * (lane & 1)) & 0x0F }

// PutNibble sets it.
func PutNibble(b []byte, lane int, v uint8) {
	shift := 4 * (lane & 1)
	b[lane/2] = b[lane/2]&^(0x0F<<shift) | v&0x0F<<shift
}

// ConfigStatus is what came of the configuration of a lane, 11h:202-205.
type ConfigStatus uint8

const (
	ConfigSuccess       ConfigStatus = 1
	ConfigRejected      ConfigStatus = 2
	ConfigInvalidAppSel ConfigStatus = 3
	ConfigInvalidPath   ConfigStatus = 4
	ConfigLaneInUse     ConfigStatus = 6
	ConfigPartialPath   ConfigStatus = 7
	ConfigInProgress    ConfigStatus = 0x0C
)

var configNames = [...]string{0: "undefined", 1: "success", 2: "rejected", 3: "rejected: no such application", 4: "rejected: no such data path",
	5: "rejected: signal integrity settings", 6: "rejected: lanes in use", 7: "rejected: part of a data path", 12: "in progress"}

func (s ConfigStatus) String() string { return nameOf(configNames[:], uint8(s)) }

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return "unknown(" + strconv.Itoa(int(i)) + ")"
}
