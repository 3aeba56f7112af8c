package service

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Manager is who started the process.
type Manager struct {
	conn  *net.UnixConn
	every time.Duration // 0: it does not wait to hear that the process is alive
	next  time.Time     // when it is told
}

// Connect finds the manager that the environment names; nil: there is none. What is
// named is forgotten, so that a child does not speak in this process's place.
func Connect() (*Manager, error) {
	path, span, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if path == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	m := &Manager{conn: conn}
	if span != "" && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		us, err := strconv.ParseInt(span, 10, 64)
		if err != nil || us <= 0 || us > int64(time.Hour/time.Microsecond) {
			return nil, fmt.Errorf("WATCHDOG_USEC: %q: want 1 to 3600000000", span)
		}
		m.every = time.Duration(us) * time.Microsecond / 3
	}
	return m, nil
}

// say never waits: a manager that does not read must not hold up what it watches.
func (m *Manager) say(word string) {
	raw, err := m.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) bool {
		_, _ = syscall.Write(int(fd), []byte(word)) // not sent: the manager's loss, who starts the process anew
		return true
	})
}

// Ready tells that the process does its work.
func (m *Manager) Ready() { m.say("READY=1") }

// noBeat is long enough where nobody waits for one.
const noBeat = time.Hour

// Beat tells that it still does, where that is due, and returns after which time it is
// to be called again: a third of the manager's patience.
func (m *Manager) Beat() time.Duration {
	if m.every == 0 {
		return noBeat
	}
	now := time.Now()
	if !now.Before(m.next) {
		m.say("WATCHDOG=1")
		m.next = now.Add(m.every)
	}
	return m.next.Sub(now)
}
