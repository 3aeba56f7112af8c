// Package scpi is the command language of Polatis optical switches as a pair
// of pure line machines: a Client that sets connections and reads them back,
// and a Server that lets scripts written for such a switch drive any other. It
// opens no socket and waits for nothing: lines go in and come out.
//
// Ports are numbered 1 to N on the input side and N+1 to N+M on the output
// side. Commands that set something answer nothing, neither yes nor no, so the
// client appends "*OPC?" to each, then asks for the whole map and compares, and
// tries again a bounded number of times.
//
// The syntax is that of drivers in public repositories; the maker's manual was
// not at hand. Unlike a Polatis, the server takes *RST for its own errors and
// not for the light.
package scpi
