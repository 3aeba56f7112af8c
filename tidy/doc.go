// Package tidy holds the rules of the house that a machine can check, as tests: what may
// import what, purity, sizes, words, links, and that pages, metrics and alerts fit the code.
package tidy
