// Package sonic is the language of optical circuit switches that run SONiC: RESTCONF
// (RFC 8040) with the data of sonic-ocs.yang and sonic-ocs-states.yang, as a client of a
// box and as what serves a switch of ours.
//
// Boxes of the field say how they are in one of two dialects:
//
//	tables  OCS_PORT_TABLE and OCS_CROSS_CONNECT_TABLE of sonic-ocs: config_status,
//	        oper_status; a port with light is connected
//	states  sonic-ocs-states: state, status; it is tuned
//
// A connection has a key, such as 1A-17B, in a list of what is wanted; whether the box does
// it is another list's. Read: the page of sonic-molex/sonic-buildimage on its platform
// ocs-molex, sonic-ocs.yang there, sonic-ocs-states.yang of sonic-ocs/sonic-buildimage, and
// sonic-net/SONiC pull request 2269.
//
// It opens no connection; who carries its bytes does.
package sonic
