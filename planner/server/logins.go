package server

import (
	"os"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"

	"ringlight/proto"
	"ringlight/proto/pki"
)

// logins are the users of the embedded broker, where clients log in with passwords.
type logins struct {
	file string

	mu    sync.Mutex
	seen  os.FileInfo
	users *pki.Users
	by    map[*mochi.Client]login
}

// login is a user that logged in, and what was known of the password then.
type login struct{ user, line string }

func openLogins(file string) (*logins, error) {
	l := &logins{file: file, by: map[*mochi.Client]login{}}
	_, err := l.read()
	return l, err
}

// read reads the file when it is another. One that cannot be read leaves the former in force.
func (l *logins) read() (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st, err := os.Stat(l.file)
	if err == nil && l.seen != nil && os.SameFile(st, l.seen) && st.Size() == l.seen.Size() && st.ModTime().Equal(l.seen.ModTime()) {
		return false, nil
	}
	users, err := pki.ReadUsers(l.file)
	if err == nil {
		l.users, l.seen = users, st
	}
	return err == nil, err
}

// come judges a login; nothing is kept of others.
func (l *logins) come(cl *mochi.Client, user, password string) {
	l.mu.Lock()
	users := l.users
	l.mu.Unlock()
	if !users.Check(user, password) {
		return
	}
	l.mu.Lock()
	l.by[cl] = login{user, users.Line(user)}
	l.mu.Unlock()
}

// holder is who a client is; why none, otherwise.
func (l *logins) holder(cl *mochi.Client) (proto.Holder, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, ok := l.by[cl]
	switch {
	case !ok:
		return proto.Holder{}, "it gives no user and password that are known together"
	case by.line != l.users.Line(by.user):
		return proto.Holder{}, "the password of " + by.user + " is another by now, or none"
	}
	h, _ := proto.ParseHolder(by.user) // checked by ReadUsers
	return h, ""
}

func (l *logins) left(cl *mochi.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, cl)
}

// loginRound is how often the file is looked at. chosen: a revoked user is out soon.
const loginRound = time.Second

// followLogins throws out whose password is another, or none.
func (b *Broker) followLogins(stop chan struct{}) {
	tick := time.Tick(loginRound)
	for {
		select {
		case <-stop:
			return
		case <-tick:
			changed, err := b.limits.logins.read()
			if err != nil {
				b.limits.log.Warn("the file of passwords cannot be read; the former holds", "error", err)
			} else if changed {
				b.Revoke()
			}
		}
	}
}
