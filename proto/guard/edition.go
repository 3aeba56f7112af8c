package guard

import (
	"crypto/ed25519"
	"os"
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// look reads the file again when it has changed.
func (g *Guard) look(now time.Time) {
	if now.Sub(g.looked) < lookEvery {
		return
	}
	g.looked = now
	if g.cfg.Kept == g.cfg.TrustFile {
		return // which nobody else writes
	}
	g.lookAtKey()
	st, err := os.Stat(g.cfg.TrustFile)
	if err != nil || st.ModTime().Equal(g.read) {
		return
	}
	t, err := g.readTrust(g.cfg.TrustFile)
	g.read = st.ModTime()
	if was := g.trust.Load(); err == nil && slices.Equal(t.File(), was.File()) {
		g.bad = ""
		return // the same once more
	} else if err == nil {
		err = t.Follows(was)
	}
	if err != nil {
		if err.Error() != g.bad {
			g.log.Error("the trust document in the file is not taken", "file", g.cfg.TrustFile, "error", err)
		}
		g.bad = err.Error()
		return
	}
	g.take(t)
}

// Changed says what to call when another own key is in use.
func (g *Guard) Changed(again func()) { g.again.Store(&again) }

// lookAtKey reads the own key again, which is replaced in place. Another is used as
// soon as it is trusted.
func (g *Guard) lookAtKey() {
	if g.cfg.KeyFile == "" {
		return
	}
	raw, err := readFile(g.cfg.KeyFile, maxKey)
	if err != nil {
		return
	}
	key, err := seal.ParseKey(raw)
	if err != nil || key.Equal(*g.key.Load()) {
		return
	}
	id := seal.IDOf(key.Public().(ed25519.PublicKey))
	if t := g.trust.Load(); t.KnowsNodes() && !knows(t, id) {
		return
	}
	g.key.Store(&key)
	g.log.Info("the own key has changed", "key", id.String())
	if again := g.again.Load(); again != nil {
		(*again)()
	}
}

// hear takes an edition that the planner has handed on.
func (g *Guard) hear(p *proto.Packet, now time.Time) {
	was := g.trust.Load()
	if g.cfg.Role == proto.RolePlanner || slices.Equal(p.Sealed, was.Sealed()) {
		return // planners have it by file, with what is not told to everybody
	}
	if !g.afford(p.Topic, now) {
		return // it is told again
	}
	t, err := g.parseTrust(p.Sealed)
	if err == nil {
		err = t.Follows(was)
	}
	if err != nil {
		if t == nil || t.Edition > was.Edition {
			g.counts.Refused[Planners][seal.Untrusted]++
			g.log.Warn("a trust document is not taken", "error", err)
		}
		return
	}
	g.take(t)
}

// take makes an edition the one in force. It is on disk before it counts, so that
// the next life does not believe an older one.
func (g *Guard) take(t *seal.Trust) {
	g.keep(t)
	g.trust.Store(t)
	clear(g.known)
	g.log.Info("trust document taken", "edition", t.Edition)
	g.tellOfKey()
}

func (g *Guard) keep(t *seal.Trust) {
	if g.cfg.Kept == "" {
		return
	}
	if err := writeFile(g.cfg.Kept, t.File()); err != nil {
		g.log.Error("the trust document is not kept; the next start may believe an older one", "error", err)
	}
}
