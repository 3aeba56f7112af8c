// Package plugin is what a kubelet asks before it starts a pod whose claim has a
// ring: it waits until light is confirmed on every link of it, and hands the pod by
// CDI the order of its GPUs, as files and as environment variables.
//
// It keeps nothing but those files, each named after its claim: who starts anew
// writes the same again, and takes away what is to go. It never asks for a ring or
// gives one back.
package plugin
