// Package cose holds what Ringlight seals against veraison/go-cose, which it shares
// no line with. It is a module of its own, so that the judge is no dependency.
package cose
