package limit

// Room makes room for one more of a peer where so many places are taken, and says whether
// there is any: who yields has his channel closed.
func Room[T any](places map[chan T]string, most int, peer string) bool {
	if len(places) >= most {
		if out, ok := yields(places, peer); ok {
			delete(places, out)
			close(out)
		}
	}
	return len(places) < most
}

// yields says who gives his place to one more of a peer where all are taken: one of the
// peer that has most, while it still has more than the newcomer. places has the peer
// that each belongs to.
func yields[K comparable](places map[K]string, peer string) (who K, ok bool) {
	count := map[string]int{}
	for _, p := range places { // any order: counted
		count[p]++
	}
	for k, p := range places { // any order: of one peer's places none is better
		if count[p] > count[peer]+1 && (!ok || count[p] > count[places[who]]) {
			who, ok = k, true
		}
	}
	return who, ok
}
