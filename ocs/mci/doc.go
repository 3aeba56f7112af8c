// Package mci drives the CMIS controllers of a bundle's modules: a Set has a
// port to each, and one trigger byte for all.
//
//	bring up: codes staged and applied, data paths initialised
//	armed:    every module on the service page, nothing written any more
//	fire:     the trigger byte, once to all modules of a segment
//	account:  what each module says that it did, and its levels
//	upgrade:  other firmware for one of them, by its command data block
//
// A controller answers when it likes. Whoever asks hands in requests and what
// to do when they are over; a module is asked one thing at a time, and the
// newest question replaces the one before.
//
// It never decides what path a bundle is on, nor what a level means: that is for
// its Owner and for whoever fires.
package mci
