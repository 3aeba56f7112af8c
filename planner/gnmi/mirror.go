package gnmi

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"ringlight/hal/sonic"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

const (
	// lookPeriod is how often the planner is asked what has changed, while somebody streams.
	// chosen: a tenth of what a collector may wait for.
	lookPeriod = 10 * time.Millisecond
	// streamRest is how much longer it is until the next look where there was news, for each
	// stream that it went to, and longestRest that of many: so what comes close together goes
	// in one message. chosen: what a message costs both ends, for a half of two processors.
	streamRest  = 40 * time.Microsecond
	longestRest = 50 * time.Millisecond
	// somePeriod is that of switches and of jobs, of which each costs a look.
	somePeriod = 40 * time.Millisecond
	// slowPeriod is that of what costs a look at everything: the fabric's figures, alarms.
	slowPeriod = 500 * time.Millisecond
	// keptRecords are for streams that are behind. chosen: all nodes of a cell of 10,000
	// change at once, twice.
	keptRecords = 1 << 16
)

// record is one change: was is nil of what is new, is nil of what is gone. Those of one look
// have the same number.
type record struct {
	was, is *entry
	look    uint64
	again   bool // the look has another before it, of the same entry
}

// mirror is what streams read: the entries of those kinds that anybody wants, and what
// happened to them.
type mirror struct {
	facts
	looking sync.Mutex // one looks

	mu      sync.Mutex
	wanted  [maxKinds]int  // streams, by the kind's bit
	devices map[string]int // streams, by switch
	has     kinds
	entries map[string]*entry
	records []record        // the last ones
	first   uint64          // number of the first of them
	told    uint64          // records of which streams know that they are there
	noted   map[string]bool // keys of those that they do not know of
	news    chan struct{}   // closed when there are more
	running bool

	// Of who looks.
	of      *planner.Planner
	fabric  *fabric.Fabric
	fibres  map[proto.NodeID][]fabric.Fibre
	edition uint64
	event   uint64
	slowAt  time.Time
	someAt  time.Time
	job     uint64
	views   map[string]sonic.View // of switches, guarded by mu
}

func newMirror(f facts) *mirror {
	return &mirror{facts: f, entries: map[string]*entry{}, devices: map[string]int{}, noted: map[string]bool{}, views: map[string]sonic.View{}, news: make(chan struct{})}
}

// join wants kinds and switches until want takes them back; they are there when it returns.
func (m *mirror) join(k kinds, devices []string) error {
	m.want(k, devices, 1)
	m.looking.Lock()
	m.someAt = time.Time{}
	err := m.look(context.Background()) // others rely on it, too
	m.looking.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && !m.running {
		m.running = true
		go m.run()
	}
	return err
}

func (m *mirror) want(k kinds, devices []string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for bit := range m.wanted {
		if k>>bit&1 != 0 {
			m.wanted[bit] += by
		}
	}
	for _, d := range devices {
		if m.devices[d] += by; m.devices[d] == 0 {
			delete(m.devices, d)
			delete(m.views, d)
			maps.DeleteFunc(m.entries, func(_ string, e *entry) bool { return e.device == d })
		}
	}
}

func (m *mirror) wants() (k kinds) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for bit, n := range m.wanted {
		if n > 0 {
			k |= 1 << bit
		}
	}
	return k
}

// run looks until nobody streams.
func (m *mirror) run() {
	rest, told := time.Time{}, uint64(0)
	for now := range time.Tick(lookPeriod) {
		if now.Before(rest) {
			continue
		}
		m.looking.Lock()
		err := m.look(context.Background())
		m.looking.Unlock()
		m.mu.Lock()
		if m.has == 0 || err != nil { // of a planner that has ended streams end, too
			m.running = false
			m.first += uint64(len(m.records)) + 1
			m.records = nil
			m.mu.Unlock()
			m.wake()
			return
		}
		if m.told != told {
			told, rest = m.told, now.Add(min(longestRest, time.Duration(slices.Max(m.wanted[:]))*streamRest))
		}
		m.mu.Unlock()
	}
}

// look takes what has changed. The caller has looking.
func (m *mirror) look(ctx context.Context) error {
	wanted := m.wants()
	m.drop(m.has &^ wanted)
	if wanted == 0 {
		return nil
	}
	m.mu.Lock()
	m.has |= wanted & ofSwitches // which are looked at one by one
	m.mu.Unlock()
	wanted &^= ofSwitches
	defer m.wake()
	var nodes []proto.NodeID
	var rings []proto.RingID
	var last uint64
	var fab *fabric.Fabric
	if err := m.source.Read(ctx, func(p *planner.Planner) {
		if fab, last = p.Fabric, planner.Last(p); p != m.of { // it was made anew
			m.of, m.fabric = p, nil
		}
		nodes, rings, m.edition = p.Rings.Placed.Stamps.Since(m.edition)
	}); err != nil {
		return err
	}
	fresh := wanted &^ m.has
	if fab != m.fabric { // every path may be another's now
		m.fabric, m.fibres, fresh = fab, map[proto.NodeID][]fabric.Fibre{}, wanted
		for _, x := range fab.AllFibres() {
			m.fibres[x.A.Node], m.fibres[x.B.Node] = append(m.fibres[x.A.Node], x), append(m.fibres[x.B.Node], x)
		}
	}
	if err := m.fill(ctx, fresh); err != nil {
		return err
	}
	return m.follow(ctx, wanted&^fresh, nodes, rings, last)
}

// fill takes whole kinds; what is not there any more is gone.
func (m *mirror) fill(ctx context.Context, k kinds) error {
	for bit := range m.wanted {
		kind := k & (1 << bit)
		if kind == 0 {
			continue
		}
		if err := m.swap(m.keys(func(e *entry) bool { return e.kind == kind && kind != ofEvents }), func(give func(*entry)) error {
			return m.all(ctx, kind, nil, nil, give)
		}); err != nil {
			return err
		}
		m.mu.Lock()
		m.has |= kind
		m.mu.Unlock()
	}
	return nil
}

// follow takes what has changed of kinds that are there.
func (m *mirror) follow(ctx context.Context, k kinds, nodes []proto.NodeID, rings []proto.RingID, last uint64) error {
	if both := k & (ofNodes | ofOptics); both != 0 && len(nodes) > 0 {
		var sides []string
		for _, id := range nodes {
			sides = append(sides, sideKey(id, proto.Left), sideKey(id, proto.Right))
		}
		if err := m.swap(sides, func(give func(*entry)) error { return m.nodes(ctx, both, nodes, give) }); err != nil {
			return err
		}
	}
	if k&ofRings != 0 && len(rings) > 0 {
		var keys []string
		for _, id := range rings {
			keys = append(keys, ringKey(id))
		}
		if err := m.swap(keys, func(give func(*entry)) error { return m.rings(ctx, rings, give) }); err != nil {
			return err
		}
	}
	if k&ofLinks != 0 && len(nodes) > 0 {
		var at []fabric.Fibre
		for _, id := range nodes {
			at = append(at, m.fibres[id]...)
		}
		if err := m.links(ctx, at, m.put); err != nil {
			return err
		}
	}
	if k&ofEvents != 0 && last != m.event {
		if err := m.events(ctx, m.event, m.put); err != nil {
			return err
		}
	}
	now := m.now()
	if now.Sub(m.someAt) >= somePeriod {
		m.someAt = now
		if err := m.some(ctx, k); err != nil {
			return err
		}
	}
	if now.Sub(m.slowAt) >= slowPeriod {
		m.slowAt = now
		return m.fill(ctx, k&(ofFabric|ofAlarms))
	}
	return nil
}

// some looks at switches and at jobs.
func (m *mirror) some(ctx context.Context, k kinds) error {
	m.mu.Lock()
	devices := slices.Collect(maps.Keys(m.devices))
	m.mu.Unlock()
	for _, d := range devices {
		v, err := m.view(ctx, d)
		m.mu.Lock()
		same := reflect.DeepEqual(v, m.views[d])
		if m.devices[d] > 0 {
			m.views[d] = v
		}
		m.mu.Unlock()
		if same || err != nil && !errors.As(err, new(*proto.Error)) { // the fabric may have it no more
			continue
		}
		if err := m.swap(m.keys(func(e *entry) bool { return e.device == d }), func(give func(*entry)) error {
			m.device(d, v, give)
			return nil
		}); err != nil {
			return err
		}
	}
	if k&ofJobs == 0 {
		return nil
	}
	was := m.job
	if err := m.source.Read(ctx, func(p *planner.Planner) { m.job = p.Jobs.News() }); err != nil || m.job == was {
		return err
	}
	return m.fill(ctx, ofJobs)
}

// keys are those of entries of some kind.
func (m *mirror) keys(of func(*entry) bool) (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, e := range m.entries { // any order: each is by itself
		if of(e) {
			keys = append(keys, key)
		}
	}
	return keys
}

// swap puts entries in the place of others: those of them that do not come are gone.
func (m *mirror) swap(keys []string, from func(give func(*entry)) error) error {
	there := map[string]bool{}
	if err := from(func(e *entry) { there[e.key] = true; m.put(e) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if !there[key] {
			m.gone(key)
		}
	}
	return nil
}

// put enters what may have changed. An event that is too old goes, and nobody is told.
func (m *mirror) put(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.kind == ofEvents {
		number, _ := e.find(elems("state/number"))
		m.event = uint64(number.(wide))
		delete(m.entries, eventKey(m.event-keptEvents))
	}
	was := m.entries[e.key]
	if was != nil {
		if set, gone := e.diff(was); len(set)+len(gone) == 0 {
			return
		}
	}
	m.entries[e.key] = e
	m.note(e.key, record{was: was, is: e})
}

// gone takes an entry away. The caller has mu.
func (m *mirror) gone(key string) {
	if was := m.entries[key]; was != nil {
		delete(m.entries, key)
		m.note(key, record{was: was})
	}
}

// drop forgets kinds that nobody wants.
func (m *mirror) drop(k kinds) {
	if k == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(_ string, e *entry) bool { return e.kind&k != 0 })
	if m.has &^= k; k&ofEvents != 0 {
		m.event = 0
	}
}

// note keeps a record. The caller has mu.
func (m *mirror) note(key string, r record) {
	r.look, r.again = m.told, m.noted[key]
	m.noted[key] = true
	if len(m.records) >= 2*keptRecords {
		m.first += keptRecords
		m.records = append([]record(nil), m.records[keptRecords:]...)
	}
	m.records = append(m.records, r)
}

// wake tells streams of records that they do not know of.
func (m *mirror) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.first + uint64(len(m.records)); now != m.told {
		m.told = now
		clear(m.noted)
		close(m.news)
		m.news = make(chan struct{})
	}
}

// next is the number of the record that comes next.
func (m *mirror) next() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first + uint64(len(m.records))
}

// begin is every entry that there is, and the number of the record that comes next.
func (m *mirror) begin(k kinds, want func(*entry) bool) (all []*entry, next uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries { // any order: state has none
		if e.kind&k != 0 && want(e) {
			all = append(all, e)
		}
	}
	return all, m.first + uint64(len(m.records))
}

// after are the records from a number on, of whole looks, and what is closed when there are
// more; false: they are not kept any more.
func (m *mirror) after(next uint64) ([]record, <-chan struct{}, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next < m.first {
		return nil, nil, false
	}
	return m.records[next-m.first : max(next, m.told)-m.first], m.news, true
}
