// Package fabric describes what the planner plans for: nodes in HBD order,
// their OCSTrx bundles, and the fibres between them, as data that one can
// read, edit and check. The default wiring of [IHBD] sec 4.2 is only one way
// to fill it in.
//
// Core describes the optical switches between pods, alone or beside nodes.
//
// It holds no algorithm that chooses anything, and it reads no file.
package fabric
