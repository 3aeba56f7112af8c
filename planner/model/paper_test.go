package model

import "testing"

// Goal: a table of 512 columns of 8 bytes on one of 16 servers that train 8,192
// samples each sends 32 MB to every other server and gets as much from it.
// Method: the traffic of a model with that one table.
// Reference: [TOPO] sec 2.1, appendix D.
func TestTrafficOfOneTableIsThePapers(t *testing.T) {
	m := &Model{Name: "one", BatchPerGPU: 8192, BytesPerValue: 8, Layers: []Layer{{Kind: Dense, Count: 1, Inputs: 1, Outputs: 1}}, Embeddings: []Embedding{{1, 10_000_000, 512}}}
	s := m.dataParallel(16)
	_, demands, err := m.Traffic(Cluster{Servers: 16, GPUsPerServer: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(demands) != 30 {
		t.Errorf("%d pairs", len(demands))
	}
	for _, d := range demands {
		if (d.From == 0) == (d.To == 0) || d.Bytes != 32<<20 {
			t.Errorf("%+v", d)
		}
	}
	// Everywhere, its gradient of 41 GB goes round a ring nearly twice.
	s.Table[0] = Everywhere
	groups, demands, err := m.Traffic(Cluster{Servers: 16, GPUsPerServer: 1}, s)
	if err != nil || len(demands) != 0 || len(groups) != 1 {
		t.Fatal(groups, demands, err)
	}
	if each := groups[0].Bytes / 16; each != 2*15*(10_000_000*512*8+8)/16 {
		t.Errorf("%d bytes from each server", each)
	}
}
