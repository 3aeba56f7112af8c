package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// owner is the process that a namespace belongs to, so that a later one knows when it is
// nobody's. The start of a process is part of it: numbers are given again.
type owner struct {
	pid   int
	start uint64 // in the kernel's ticks since it booted
}

// numbered are so many things of one kind: up0, up1.
func numbered(kind string, n int) []string {
	return upTo(n, func(i int) string { return kind + strconv.Itoa(i) })
}

// upTo is what of says to every number below n.
func upTo[T any](n int, of func(int) T) (out []T) {
	for i := range n {
		out = append(out, of(i))
	}
	return out
}

// each is what of says to every one of a list.
func each[S, T any](list []S, of func(S) T) []T {
	return upTo(len(list), func(i int) T { return of(list[i]) })
}

const prefix = "ringlight-"

// name is the namespace of a device: node3, leaf2, pod0-spine1.
func (o owner) name(device string) string {
	return fmt.Sprintf("%s%d-%d-%s", prefix, o.pid, o.start, device)
}

// parseName reads what name wrote.
func parseName(ns string) (o owner, device string, ok bool) {
	rest, ok := strings.CutPrefix(ns, prefix)
	parts := strings.SplitN(rest, "-", 3)
	if !ok || len(parts) != 3 || parts[2] == "" {
		return o, "", false
	}
	var bad, wrong error
	o.pid, bad = strconv.Atoi(parts[0])
	o.start, wrong = strconv.ParseUint(parts[1], 10, 64)
	return o, parts[2], bad == nil && wrong == nil && o.pid > 0
}

// startOf reads when a process started from its stat, whose second field may hold
// anything within its last parenthesis.
func startOf(stat string) (uint64, bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}

// ownerOf is a process that runs.
func ownerOf(pid int) (owner, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return owner{}, false
	}
	start, ok := startOf(string(stat))
	return owner{pid, start}, ok
}

// alive: it is the process that it was.
func (o owner) alive() bool {
	now, ok := ownerOf(o.pid)
	return ok && now == o
}
