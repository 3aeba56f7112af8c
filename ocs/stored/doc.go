// Package stored is the form in which what was measured of a board is kept:
// CBOR whose key 0 is a version, and then its CRC-32 (IEEE), big-endian.
//
// It knows neither files nor what is in a document: whoever reads one checks
// its values.
package stored
