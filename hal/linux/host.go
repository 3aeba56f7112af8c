//go:build !nohost

package linux

// Raspberry Pi, Allwinner, AM335x and other hosts, as far as periph knows them. A
// program for a board controller leaves them out with the tag nohost.
import _ "periph.io/x/host/v3"

// hostDrivers says whether periph's are in this program.
const hostDrivers = ""
