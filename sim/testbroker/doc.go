// Package testbroker ends brokers that tests start in their own process.
package testbroker
