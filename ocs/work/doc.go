// Package work is what the machines of ocs that are stepped have in common: bus
// work is put out under a token, and what comes back is told apart from what an
// earlier life of the machine asked for.
//
// It never submits anything: its owner hands the work on.
package work
