// Package script plays the scripted tests of the whole module: machines are
// told things line by line, and what they say is compared with what the file
// holds. Tests alone import it.
//
// A file is blocks with an empty line between them. A block of comments begins
// a case, with everything fresh; any other block is commands, a line of four
// dashes and what they give:
//
//	# the agent restarts | what is lit stays lit
//
//	ring left=0/1>4! right=1/1>6!
//	restart # everything after it is for readers
//	----
//	watch ring 1
//
// A test with -update rewrites its files; the diff is the review.
//
// It never interprets a command: that is for the code under test.
package script
