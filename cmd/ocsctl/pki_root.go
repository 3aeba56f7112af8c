package main

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/term"

	"ringlight/cmd/cli"
	"ringlight/proto/pki"
)

// passphrase reads the file, or asks on the terminal; again: twice, the same both times.
func (f *pkiFlags) passphrase(again bool) pki.Passphrase {
	return func() ([]byte, error) {
		if f.words != "" && f.words != "-" {
			raw, err := os.ReadFile(f.words)
			if err != nil {
				return nil, cli.Usage("passphrase", "a readable file", "%w", err)
			}
			line, _, _ := bytes.Cut(raw, []byte("\n"))
			return bytes.TrimRight(line, "\r"), nil
		}
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, cli.Usage("passphrase", "a file with it, or a terminal to ask on", "the root's key is kept under one; %w", err)
		}
		defer tty.Close()
		fmt.Fprint(tty, "passphrase of the root's key: ")
		line, err := term.ReadPassword(int(tty.Fd()))
		if err == nil && again {
			fmt.Fprint(tty, "\nonce more: ")
			var second []byte
			if second, err = term.ReadPassword(int(tty.Fd())); err == nil && !bytes.Equal(line, second) {
				err = cli.Usage("passphrase", "the same twice", "another the second time")
			}
		}
		fmt.Fprintln(tty)
		return line, err
	}
}
