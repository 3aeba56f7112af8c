// Package seal is the form in which a message says who sent it: COSE_Sign1 (RFC
// 9052) with Ed25519, the topic signed along, so that a message is worth nothing
// on another one. A sealed message has exactly one form, and begins with a byte
// that no plain one begins with; whoever knows the format from elsewhere needs
// nothing of ours to read it.
//
// It never decides whom to believe, holds no key and knows no time.
package seal
