package hal

// MatrixStages is the number of cell columns of the 8 x 8 Benes matrix; each
// has four cells. Cell CellMatrix + 4*stage + row joins ports 2*row and
// 2*row+1 of its column. Light of lane n enters port n of stage 0 from the
// internal side of its MZI1, and port n of the last stage ends on lane n's
// loopback diode. A cell keeps a port's light in its row (bar) or swaps the
// two ports (cross).
const MatrixStages = 5

// matrixWire is the recursive Benes construction: stage 0 assigns its outputs
// to two 4 x 4 networks, stage 1 to four 2 x 2 cells, and back.
var matrixWire = [MatrixStages - 1][Lanes]uint8{
	{0, 4, 1, 5, 2, 6, 3, 7},
	{0, 2, 1, 3, 4, 6, 5, 7},
	{0, 2, 1, 3, 4, 6, 5, 7},
	{0, 2, 4, 6, 1, 3, 5, 7},
}

// Benes is the same by couplers, see Optics.Couplers.
var Benes = [][2]uint8{
	{0, 1}, {2, 3}, {4, 5}, {6, 7},
	{0, 2}, {4, 6}, {1, 3}, {5, 7},
	{0, 4}, {2, 6}, {1, 5}, {3, 7},
	{0, 2}, {4, 6}, {1, 3}, {5, 7},
	{0, 1}, {2, 3}, {4, 5}, {6, 7},
}

// MatrixWire is the port of the following stage to which an output port of a
// stage is led; the last stage has no following one.
func MatrixWire(stage, port int) int { return int(matrixWire[stage][port]) }
