// Package nats holds Ringlight against nats-server, whose MQTT is another's: rights by
// name, what a single server and a cluster lack, and a fleet whose brokers die in turn. It
// is a module of its own, so that the judge is no dependency.
package nats
