// Package procs judges the product as it is shipped: broker, planner, boards and agents,
// each a process of its own, are killed, starved, lied to, damaged and upgraded, and the
// boards' own record of their light says what came of it. It is all tests: make
// bench-procs, soak, bench-jobs, bench-keys, bench-lies, bench-damage and bench-upgrade.
package procs
