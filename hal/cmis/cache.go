package cmis

// pageKey is a page of a bank.
type pageKey struct{ bank, page uint8 }

// Cache keeps what was read of pages that do not change by themselves, keyed by
// bank and page. Lower memory and everything a module changes are never kept.
type Cache struct {
	pages map[pageKey]*cached
}

type cached struct {
	data  [128]byte
	valid [128]bool
}

// keeps reports whether a page may be kept: administration, advertisements and
// thresholds.
func keeps(page, offset uint8) bool { return offset >= 128 && page <= PageThresholds }

func (c *Cache) put(bank, page, offset uint8, b []byte) {
	if !keeps(page, offset) {
		return
	}
	if c.pages == nil {
		c.pages = map[pageKey]*cached{}
	}
	p := c.pages[pageKey{bank, page}]
	if p == nil {
		p = new(cached)
		c.pages[pageKey{bank, page}] = p
	}
	for i, v := range b {
		p.data[int(offset)-128+i], p.valid[int(offset)-128+i] = v, true
	}
}

// get fills b and reports whether all of it was known.
func (c *Cache) get(bank, page, offset uint8, b []byte) bool {
	if !keeps(page, offset) {
		return false
	}
	p := c.pages[pageKey{bank, page}]
	if p == nil {
		return false
	}
	for i := range b {
		if !p.valid[int(offset)-128+i] {
			return false
		}
		b[i] = p.data[int(offset)-128+i]
	}
	return true
}

// forget drops a run of bytes that is being written.
func (c *Cache) forget(bank, page, offset uint8, n int) {
	if p := c.pages[pageKey{bank, page}]; p != nil && offset >= 128 {
		for i := range n {
			p.valid[int(offset)-128+i] = false
		}
	}
}

// Clear forgets everything: the module was exchanged or reset.
func (c *Cache) Clear() { c.pages = nil }
