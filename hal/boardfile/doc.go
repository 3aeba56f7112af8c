// Package boardfile reads a board from a file: JSON, strict, described in
// docs/board-file.md, whose tables are made from what stands beside each field of File. What comes out is a
// hal.Board, the same for hardware and simulator; the default board is such a file.
//
// A file is refused as a whole: every fault of it is told at once, each by its field.
// It never opens a bus, and it knows nothing that is not on the board: who the node
// is, and to whom it reports, is configuration. Of that, Config is the object `board`,
// which names a file or a default board.
package boardfile
