package testbed

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// routeWatch notes when the kernel of any namespace got another route.
type routeWatch struct {
	begun   time.Time
	last    atomic.Int64 // nanoseconds since it began; 0: none has changed
	changes atomic.Int64
	ended   atomic.Bool
	all     sync.WaitGroup
}

// lookAgain is how often a watch looks whether it is to end. chosen: nobody waits for it.
const lookAgain = 200 * time.Millisecond

// watchRoutes watches all of a bed's.
func (b *Bed) watchRoutes() (*routeWatch, error) {
	w := &routeWatch{begun: time.Now()}
	for _, d := range b.made {
		var fd int
		err := within(b.NS(d), func() (err error) {
			fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
			return err
		})
		if err == nil {
			wait := unix.NsecToTimeval(int64(lookAgain))
			err = errors.Join(unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.RTNLGRP_IPV4_ROUTE - 1)}),
				unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
		}
		if err != nil {
			if fd > 0 {
				_ = unix.Close(fd)
			}
			w.stop()
			return nil, err
		}
		w.all.Go(func() { w.read(fd) })
	}
	return w, nil
}

func (w *routeWatch) read(fd int) {
	defer unix.Close(fd)
	for buf := make([]byte, 1<<16); !w.ended.Load(); {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if n > 0 || errors.Is(err, unix.ENOBUFS) { // more than it could hold: some have changed
			w.last.Store(int64(time.Since(w.begun)))
			w.changes.Add(1)
		}
	}
}

func (w *routeWatch) stop() {
	w.ended.Store(true)
	w.all.Wait()
}

// since is how long ago the last one changed.
func (w *routeWatch) since() time.Duration { return time.Since(w.begun) - time.Duration(w.last.Load()) }
