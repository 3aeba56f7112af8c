package sim

// GPU is one GPU of a board.
type GPU struct {
	Board BoardID
	Index int
}

// Cycles is what a walk through the light found.
type Cycles struct {
	Closed [][]GPU // each once, in order of walking
	Open   [][]GPU // from end to end
}

// Walk is completed below.
func (w *World) Walk(alive func(BoardID) bool) Cycles { return Cycles{} }
