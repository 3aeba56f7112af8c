// Package browser drives a real Chromium for tests of the live view, over the
// DevTools protocol on a pipe: no port that another test could meet, and no
// library. It is for tests alone, and never asserts anything itself.
package browser
