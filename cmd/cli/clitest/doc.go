// Package clitest is what the tests of all commands check of what a person is shown.
// Commands themselves never import it.
package clitest
