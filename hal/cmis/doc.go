// Package cmis is the management interface of a pluggable module by the
// Common Management Interface Specification (OIF, revisions 5.x): its memory
// map, the machine that reads and writes it within its rules, and what an
// OCSTrx module adds. It never calls a bus: a Port asks for bus work, takes its
// completion and says when it wants to be called again.
//
// The rules, each of which some host has broken in the field:
//
//   - Lower memory is bytes 0-127; bytes 128-255 are the page that bytes 126
//     (bank) and 127 (page) select. Both are written in one write, because the
//     bank takes effect with the page byte, and read back, because a module
//     that lacks the page silently selects 00h.
//   - At most 8 bytes a write, and a read, unless the module advertises more.
//   - After a write the module may hold off: it does not acknowledge its
//     address for up to tBPC (10 ms, after a page change), tWRITE (10 ms) or
//     tWRITENV (80 ms, non-volatile bytes). A Port asks again until it is
//     acknowledged instead of sleeping for the longest time allowed; beyond it
//     the module is broken, and errHoldOff says so.
//   - Latched flags are cleared by being read. Flags is their only reader; a
//     Port refuses the bytes to everybody else.
//
// # What an OCSTrx adds
//
// Lower memory, custom bytes 64-84, so that no page needs to be selected:
//
//	64     Trigger: bit 7 set; bits 1:0 path (0 loopback, 1 external 1,
//	       2 external 2), bit 4 lasers of the upper half on, bit 5 of the lower.
//	       Reads back what was last accepted, 0 after power-on.
//	65     Answer to it, see Answer.
//	66     Triggers carried out, modulo 256.
//	67     In force now, coded as the trigger.
//	68-69  Microseconds from the last trigger to the drive of the heaters.
//	70     Bit 0: codes have been applied and none has been staged since.
//	71     Lock, where advertised: 1 holds MZI1 and MZI2 of the path in force where
//	       they send the least light the wrong way, by what the controller adds to
//	       the codes applied, which read back as they were; 0 leaves what was added.
//	       A trigger freezes it, other codes for a cell drop what was added to it.
//	       More than .1 radian is added when a second look finds it too: a diode may
//	       have been wrong. Where carrying is advertised the matrix gets what those
//	       cells have in common.
//	72     How it stands, bits 1:0: 0 off, 1 seeking, 2 holding, 3 lost, see LockPhase;
//	       bits 7:2, where carrying is advertised: what was added to the cells of the
//	       path, rms about what they have in common, in 2 milliradian, 63: that or more,
//	       or the matrix could not be brought as far
//	73     Looks that came to their end, modulo 256
//	74     Cell of the largest error that the last one found and trimmed
//	75-76  That error, in 10 microradian
//	77-84  Laser bias by lane, where advertised, in 500 microampere; 0: off
//
// A trigger is one byte, so that one write reaches all modules of a segment
// whose mux ports are open. Acknowledgements of several modules meet as a wired
// and: a module that held off is not noticed on the wire. Bytes 65-67 tell.
//
// Page B0h, control:
//
//	128-131  "OCST"       132  format, 1
//	133      advertisement: bit 0 trigger, bit 1 staging, bit 2 raise counters,
//	         bit 3 calibration, page B4h, bit 4 lock, bit 5 laser bias, bit 6 carrying,
//	         bit 7 codes of its own, commands 8000h to 8005h
//	134-135  longest time from trigger to drive, microseconds
//	136-137  longest time from drive to settled light, microseconds
//	138, 139 cells, lanes
//	160      Apply: write 1 to bring the staged codes to the heaters
//	161      Answer to it, see Answer; a code beyond the heater's limits is refused
//
// Page B1h, staged codes: register A of cell n at 128+2n. Page B2h: register B.
// MZI1 takes A for the internal side and B for the external one, MZI2 A for
// external 1 and B for external 2, a matrix cell has only A. Codes are those of
// the chips kind: 16 bits of 10 V.
//
// Page B3h, everything that is read in service, so that no page is changed
// then: 128-143 the guard channels, 144-159 the lane channels (16 bits each,
// left-aligned, scales as in hal), 160-255 how often each flag of RaiseFlags
// was raised, modulo 65536, not cleared by reading.
//
// Page B4h, calibration, where advertised: everything that a search asks for in
// its thousands of measurements, so that no page is changed between them.
//
//	128      Mode: 1 begins, which is refused in service: while a trigger with
//	         lasers is in force. All heaters go cold and nothing toggles. 0, a
//	         trigger without lasers, or a reset ends it: the codes applied last
//	         come back. No other trigger and no Apply is taken meanwhile.
//	129      Answer to it, see Answer
//	130      lane n shines by bit n, of the lanes whose data path is initialised
//	         and whose output is not disabled by 10h:130
//	132-133  microseconds until levels are of a new drive alone
//	134-135  the same of the rail current
//	136      answer to the drive: done, or bad value for good once there was a
//	         code beyond a heater's limits, which moved nothing
//	160-231  the code that heater n is driven with at 160+2n, at once
//	232-247  the lane channels, 248-251 the taps of external 1 and 2, averaged
//	252-253  current of the heater rail, 20 uA
//	254-255  its voltage, mV
//
// Firmware goes by commands 0100h to 010Ah of page 9Fh, in either payload: see
// CommandFirmwareInfo.
//
// A module with codes of its own needs none of pages B1h, B2h and B4h: it shines on its
// default path once its data paths let it, until byte 64 is written, and is staged and
// calibrated by commands 8000h to 8005h: docs/module.md.
//
// Multi-byte numbers are big-endian, as everywhere in CMIS.
//
// What is not known for certain: the OIF text was not at hand. Offsets were
// cross-checked against public implementations and register tables of revisions
// 5.0 to 5.4; the command check code is read in two ways by them, see CheckCode;
// whether a summary of flags leaves out masked ones is not said by any (here it
// does not).
package cmis
