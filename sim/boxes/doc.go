// Package boxes has commercial circuit switches as they are at the far end of a line:
// what one tells is one thing, what its crossbar does another. Their manners, those that
// boxes of the field have been seen to have, are knobs.
//
// Each speaks its makers' language by itself, and nobody's clock: who has one carries
// bytes to it and back when he likes.
package boxes
