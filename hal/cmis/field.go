package cmis

// Access tells what may be done with a field.
type Access uint8

const (
	RO  Access = iota // read
	RW                // read and write; volatile
	NV                // read and write; non-volatile, held off for tWRITENV
	WO                // write; reads back nothing
	COR               // read; the read clears it
)

// Writable reports whether a host may write it.
func (a Access) Writable() bool { return a == RW || a == NV || a == WO }

// Field is one row of the memory map. Offsets below 128 are lower memory,
// which has no page.
type Field struct {
	Name           string
	Page           uint8
	Banked         bool
	Offset, Length uint8
	Access         Access
	Since          uint8 // revision as in byte 1: 0x50 is 5.0
}

// Offsets in lower memory.
const (
	Identifier      = 0
	Revision        = 1
	Management      = 2
	StateByte       = 3 // GlobalStatus
	FlagSummary     = 4
	ModuleFlags     = 8
	Temperature     = 14
	Supply          = 16
	ModuleControl   = 26
	ModuleMasks     = 31
	CDBStatus1      = 37
	ActiveFirmware  = 39
	FaultCause      = 41
	CustomLower     = 64
	MediaType       = 85
	Applications    = 86
	Password        = 122
	BankSelect      = 126
	PageSelect      = 127
	LowPwrAllowHW   = 1 << 6 // of ModuleControl
	LowPwrRequest   = 1 << 4
	SoftwareReset   = 1 << 3
	SteppedConfig   = 1 << 6
	MaxSpeed1MHz    = 1 << 2 // of Management; MaxHertz reads it
	FlagStateChange = 1 << 0 // of ModuleFlags
	ModuleFlagBytes = 6
	// InterruptDeasserted, of StateByte: no flag stands that is not masked.
	InterruptDeasserted = 1 << 0
	SummaryLaneStatus   = 1 << 0 // of FlagSummary: flags stand on page 11h
)

// fields is the memory map as far as this package uses it, in order of page
// and offset.
var fields = []Field{
	{"Identifier", 0, false, Identifier, 1, RO, 0x30},
	{"CmisRevision", 0, false, Revision, 1, RO, 0x30},
	{"ManagementCharacteristics", 0, false, Management, 1, RO, 0x30},
	{"GlobalStatus", 0, false, StateByte, 1, RO, 0x30},
	{"FlagsSummary", 0, false, FlagSummary, 4, RO, 0x30},
	{"ModuleFlags", 0, false, ModuleFlags, ModuleFlagBytes, COR, 0x30},
	{"TempMonValue", 0, false, Temperature, 2, RO, 0x30},
	{"VccMonValue", 0, false, Supply, 2, RO, 0x30},
	{"AuxMonValues", 0, false, 18, 8, RO, 0x30},
	{"ModuleGlobalControls", 0, false, ModuleControl, 1, RW, 0x30},
	{"ModuleFlagMasks", 0, false, ModuleMasks, ModuleFlagBytes, RW, 0x30},
	{"CdbStatus", 0, false, CDBStatus1, 2, RO, 0x40},
	{"ActiveFirmware", 0, false, ActiveFirmware, 2, RO, 0x40},
	{"ModuleFaultCause", 0, false, FaultCause, 1, RO, 0x40},
	{"OcsTrigger", 0, false, Trigger, 1, RW, 0x50},
	{"OcsStatus", 0, false, TriggerAnswer, 6, RO, 0x50},
	{"OcsLock", 0, false, LockMode, 1, RW, 0x50},
	{"OcsLockState", 0, false, LockState, LockBytes - 1, RO, 0x50},
	{"OcsBias", 0, false, Bias, BiasBytes, RO, 0x50},
	{"MediaType", 0, false, MediaType, 1, RO, 0x30},
	{"ApplicationDescriptors", 0, false, Applications, 32, RO, 0x30},
	{"PasswordEntry", 0, false, Password, 4, WO, 0x30},
	{"BankSelect", 0, false, BankSelect, 1, RW, 0x30},
	{"PageSelect", 0, false, PageSelect, 1, RW, 0x30},

	{"AdministrativeInformation", 0x00, false, 128, 94, RO, 0x30},
	{"PageChecksum00", 0x00, false, 222, 1, RO, 0x30},
	{"CustomNV", 0x00, false, 223, 33, NV, 0x30},
	{"Advertisements", 0x01, false, 128, 127, RO, 0x30},
	{"PageChecksum01", 0x01, false, 255, 1, RO, 0x30},
	{"Thresholds", 0x02, false, 128, 102, RO, 0x30},
	{"ThresholdsCustom", 0x02, false, 230, 25, RO, 0x30},
	{"PageChecksum02", 0x02, false, 255, 1, RO, 0x30},

	{"DPDeinit", PageLaneControl, true, DPDeinit, 1, RW, 0x40},
	{"LaneControls", PageLaneControl, true, 129, 14, RW, 0x40},
	{"ApplyDPInit", PageLaneControl, true, ApplyDPInit, 1, WO, 0x40},
	{"ApplyImmediate", PageLaneControl, true, ApplyImmediate, 1, WO, 0x40},
	{"StagedControlSet0", PageLaneControl, true, StagedSet, 33, RW, 0x40},
	{"LaneMasks", PageLaneControl, true, LaneMasks, LaneFlagBytes, RW, 0x40},

	{"DPState", PageLaneStatus, true, DPStates, 4, RO, 0x40},
	{"OutputStatus", PageLaneStatus, true, OutputStatusRx, 2, RO, 0x40},
	{"LaneFlags", PageLaneStatus, true, LaneFlags, LaneFlagBytes, COR, 0x40},
	{"OpticalPowerTx", PageLaneStatus, true, TxPower, 16, RO, 0x40},
	{"LaserBiasTx", PageLaneStatus, true, TxBias, 16, RO, 0x40},
	{"OpticalPowerRx", PageLaneStatus, true, RxPower, 16, RO, 0x40},
	{"ConfigStatus", PageLaneStatus, true, ConfigStatuses, 4, RO, 0x40},
	{"ActiveControlSet", PageLaneStatus, true, ActiveSet, 29, RO, 0x40},
	{"DPInitPending", PageLaneStatus, true, DPInitPending, 1, RO, 0x50},

	{"LoopbackCapabilities", PagePattern, true, 128, 1, RO, 0x40},
	{"PatternCapabilities", PagePattern, true, 129, 13, RO, 0x40},
	{"HostPatternGenerator", PagePattern, true, 144, 8, RW, 0x40},
	{"MediaPatternGenerator", PagePattern, true, Generator, patternBytes, RW, 0x40},
	{"HostPatternChecker", PagePattern, true, 160, 8, RW, 0x40},
	{"MediaPatternChecker", PagePattern, true, Checker, patternBytes, RW, 0x40},
	{"MeasurementControls", PagePattern, true, 176, 2, RW, 0x40},
	{"LoopbackControls", PagePattern, true, 180, 4, RO, 0x40},

	{"DiagnosticsSelector", PageCounts, true, Selector, 1, RW, 0x40},
	{"DiagnosticsData", PageCounts, true, Counts, countBytes, RO, 0x40},

	{"VdmDescriptors", PageMonitors, true, 128, 128, RO, 0x40},
	{"VdmSamples", PageSamples, true, 128, 128, RO, 0x40},
	{"VdmThresholds", PageMonitorLimits, true, 128, 128, RO, 0x40},
	{"VdmFlags", PageMonitorFlags, true, 128, 128, COR, 0x40},
	{"VdmGroups", PageMonitorGroups, true, VDMGroups, 1, RO, 0x40},
	{"VdmControl", PageMonitorGroups, true, VDMControl, 1, RW, 0x40},

	{"CdbMessage", PageCDB, true, 128, 128, RW, 0x40},

	{"OcsIdentity", PageOCS, false, 128, 12, RO, 0x50},
	{"OcsApply", PageOCS, false, Apply, 1, WO, 0x50},
	{"OcsApplyAnswer", PageOCS, false, ApplyAnswer, 1, RO, 0x50},
	{"OcsCodesA", PageCodesA, false, 128, 72, RW, 0x50},
	{"OcsCodesB", PageCodesB, false, 128, 72, RW, 0x50},
	{"OcsLevels", PageService, false, Levels, 32, RO, 0x50},
	{"OcsRaised", PageService, false, Raised, 96, RO, 0x50},

	{"OcsCalibration", PageCalibrate, false, CalMode, 1, RW, 0x50},
	{"OcsCalibrationAnswer", PageCalibrate, false, CalAnswer, 1, RO, 0x50},
	{"OcsCalibrationLasers", PageCalibrate, false, CalLasers, 1, RW, 0x50},
	{"OcsCalibrationTimes", PageCalibrate, false, CalTimes, 5, RO, 0x50},
	{"OcsCalibrationDrive", PageCalibrate, false, CalDrive, 72, RW, 0x50},
	{"OcsCalibrationLevels", PageCalibrate, false, CalLanes, 24, RO, 0x50},
}

// Pages.
const (
	PageAdmin       = 0x00
	PageAdvertise   = 0x01
	PageThresholds  = 0x02
	PageLaneControl = 0x10
	PageLaneStatus  = 0x11
	PagePattern     = 0x13 // bit patterns: generators and checkers
	PageCounts      = 0x14 // what the checkers count
	PageCDB         = 0x9F
	PageOCS         = 0xB0
	PageCodesA      = 0xB1
	PageCodesB      = 0xB2
	PageService     = 0xB3
	PageCalibrate   = 0xB4
)

// Offsets on PageLaneControl, one bit or byte a lane.
const (
	DPDeinit        = 128
	OutputDisableTx = 130
	ApplyDPInit     = 143
	ApplyImmediate  = 144
	StagedSet       = 145
	LaneMasks       = 213 // of the flags from LaneFlags on
	LaneFlagBytes   = 20
)

// Offsets on PageLaneStatus.
const (
	DPStates       = 128
	OutputStatusRx = 132
	OutputStatusTx = 133
	LaneFlags      = 134 // DPStateChangedFlag
	TxFault        = 135
	RxLOS          = 147
	TxPower        = 154
	TxBias         = 170
	RxPower        = 186
	ConfigStatuses = 202
	ActiveSet      = 206
	DPInitPending  = 235
)

// Banked reports whether a page has one copy per bank; for the others the
// bank is 0 whatever was asked for.
func Banked(page uint8) bool {
	return page >= 0x10 && page < 0x9F || page == PageCDB || page >= 0xA0 && page <= 0xAF
}

// extended is the payload of the command data block on every one of its pages.
var extended = Field{"CdbExtendedPayload", PageEPL, true, 128, 128, RW, 0x40}

// At is the field that holds a byte.
func At(page, offset uint8) (Field, bool) {
	if page >= PageEPL && page < PageEPL+EPLPages && offset >= 128 {
		return extended, true
	}
	for _, f := range fields {
		if offset >= f.Offset && int(offset) < int(f.Offset)+int(f.Length) && (offset < 128 || f.Page == page) {
			return f, true
		}
	}
	return Field{}, false
}

// writable is the access of a run of bytes: the slowest of its fields, and
// whether a host may write every one.
func writable(page, offset uint8, n int) (slow Access, ok bool) {
	slow = RW
	for i := range n {
		f, known := At(page, offset+uint8(i))
		if !known || !f.Access.Writable() {
			return 0, false
		}
		if f.Access == NV {
			slow = NV
		}
	}
	return slow, true
}

// latched reports whether a run of bytes holds one that a read clears.
func latched(page, offset uint8, n int) bool {
	for i := range n {
		if f, known := At(page, offset+uint8(i)); known && f.Access == COR {
			return true
		}
	}
	return false
}
