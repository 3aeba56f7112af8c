package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// netnsDir is where ip keeps the names of namespaces.
const netnsDir = "/run/netns"

const tunDevice = "/dev/net/tun"

// Lacks is why no testbed can be made here, nil: one can.
func Lacks() error {
	if os.Geteuid() != 0 {
		return errors.New("testbed: needs root, for network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("testbed: needs ip, of iproute2")
	}
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("testbed: needs TAP interfaces: %s: %w", tunDevice, err)
	}
	_ = unix.Close(fd)
	self, ok := ownerOf(os.Getpid())
	if !ok {
		return errors.New("testbed: needs /proc")
	}
	probe := self.name("probe")
	if err := ip("", "netns add "+probe); err != nil {
		return fmt.Errorf("testbed: the kernel or these rights allow no network namespaces: %w", err)
	}
	return ip("", "netns del "+probe)
}

// ip has ip do lines in a namespace, "": where this process is.
func ip(ns string, lines ...string) error {
	args := []string{"-batch", "-"}
	if ns != "" {
		args = []string{"-n", ns, "-batch", "-"}
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("testbed: ip: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}

// sweep takes away what testbeds have left whose process is gone, and says how much.
func sweep() (gone int, err error) {
	entries, err := os.ReadDir(netnsDir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	var errs []error
	for _, e := range entries {
		if o, _, ok := parseName(e.Name()); ok && !o.alive() {
			errs = append(errs, remove(e.Name()))
			gone++
		}
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // the pattern is one
	for _, at := range left {
		if o, _, ok := parseName(filepath.Base(at)); ok && !o.alive() {
			errs = append(errs, os.RemoveAll(at))
		}
	}
	return gone, errors.Join(append(errs, err)...)
}

// remove ends the processes in a namespace, and then it.
func remove(ns string) error {
	pids, err := inside(ns)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.Join(err, ip("", "netns del "+ns))
}

// within runs f on a thread that is in a namespace. What f opens or starts is there too.
func within(ns string, f func() error) error {
	to, err := os.Open(filepath.Join(netnsDir, ns))
	if err != nil {
		return err
	}
	defer to.Close()
	runtime.LockOSThread()
	back, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer back.Close()
	if err := unix.Setns(int(to.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("testbed: %s: %w", ns, err)
	}
	err = f()
	if wrong := unix.Setns(int(back.Fd()), unix.CLONE_NEWNET); wrong != nil {
		return errors.Join(err, wrong) // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// setting writes a file below /proc/sys/net of the namespace of this thread.
func setting(key, value string) error {
	return os.WriteFile("/proc/sys/net/"+key, []byte(value), 0o644)
}

// tap makes a TAP interface in the namespace of this thread.
func tap(name string) (*os.File, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = carrier(fd, false)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("testbed: interface %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// carrier says whether there is light on the cable of an interface.
func carrier(fd int, on bool) error {
	return unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, map[bool]int{true: 1}[on])
}

// running: the kernel uses an interface of a socket's namespace.
func running(socket int, name string) bool {
	request, err := unix.NewIfreq(name)
	return err == nil && unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request) == nil && request.Uint16()&unix.IFF_RUNNING != 0
}

// precedence of this process on its machine, and how many goroutines the runtime lets run
// at once: on few processors the kernel chooses among them sooner than the runtime does,
// and what is late here is late for packets. chosen: at eight the longest gap of a calm
// stream is half of what it is at two.
const precedence, goroutines = -15, 8

// precede lets all threads of this process go before others, where that is allowed; those
// that come later are as the one that makes them.
func precede() {
	runtime.GOMAXPROCS(max(goroutines, runtime.GOMAXPROCS(0)))
	tasks, _ := os.ReadDir("/proc/self/task") // none: nothing goes before
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, precedence)
		}
	}
}
