// Package scpi is the command language of Polatis optical switches, as a client
// (hal.BoxClient) speaks it and as a Server does that lets scripts written for
// such a switch drive any other. It opens no socket and waits for nothing: lines
// go in and come out.
//
// Ports are numbered 1 to N on the input side and N+1 to N+M on the output
// side. Commands that set something answer nothing, neither yes nor no, so the
// client appends "*OPC?" to each, and asks for the whole map. What it sets alone
// is followed by ":syst:err?", which says who or what refuses it.
//
// The syntax is that of drivers in public repositories; the maker's manual was
// not at hand. Unlike a Polatis, the server takes *RST for its own errors and
// not for the light.
package scpi
