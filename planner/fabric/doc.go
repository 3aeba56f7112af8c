// Package fabric describes what the planner plans for: nodes in HBD order,
// their OCSTrx bundles, and the fibres between them, as data that one can
// read, edit and check. The default wiring of [IHBD] sec 4.2 is only one way
// to fill it in.
//
// Core describes optical switches, alone or beside nodes: between pods, between
// leaves and spines, or between servers joined directly.
//
// It holds no algorithm that chooses anything, and it reads no file.
package fabric
