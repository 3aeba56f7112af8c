// Package freeport finds ports for tests that start a program which is told its port.
package freeport
