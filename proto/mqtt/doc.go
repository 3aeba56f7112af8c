// Package mqtt is the only MQTT client code: it carries proto.Packets between
// a machine's shell and any MQTT 3.1.1 broker. A Link keeps itself connected
// and tells when it is up or down; while it is down nothing is stored, because
// both ends of the protocol send again what was not answered.
//
// Every connection is a new library client with an empty store. The library's
// own reconnect was left out on purpose: it has no jitter, completes the
// tokens of lost messages as if they were delivered, and sends a message that
// the broker answers with a disconnect again and again.
//
// Nothing here blocks its caller: handlers and Send put packets into bounded
// queues, in which faults go before commands and commands before telemetry,
// and telemetry is dropped first and counted. A subscription that the broker
// refuses is no error to the library; here the result code is looked at.
package mqtt
