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
// What an OCSTrx adds, in lower memory and on pages B0h to B4h, docs/module.md has byte by byte.
//
// Multi-byte numbers are big-endian, as everywhere in CMIS.
//
// What is not known for certain: the OIF text was not at hand. Offsets were
// cross-checked against public implementations and register tables of revisions
// 5.0 to 5.4; the command check code is read in two ways by them, see CheckCode;
// whether a summary of flags leaves out masked ones is not said by any (here it
// does not).
package cmis
