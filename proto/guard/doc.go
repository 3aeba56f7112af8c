// Package guard stands at a link: it opens what comes sealed and judges it by the
// trust document, seals what goes, and keeps the highest edition of the document
// that was ever seen. It works in the link's goroutines, so that no signature is
// ever checked where light is decided on, and takes so many a second and no more.
//
// It is a shell: it reads files and the clock. It never decides what a message
// means, and what it is asked to judge has passed all that is cheap.
package guard
