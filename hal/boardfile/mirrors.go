package boardfile

import (
	"fmt"

	"ringlight/hal"
)

// mirrors compiles a circuit switch.
func (m *maker) mirrors(f *Mirrors) {
	ports := len(f.A)
	m.span("mirrors.a", int64(ports), 1, hal.MaxCrossbarPorts)
	m.when(len(f.B) != ports, "mirrors.b", fmt.Sprintf("%d mirrors, as of a", ports), "%d", len(f.B))
	t := &f.Temperature
	out := &hal.Mirrors{Ports: ports, DAC: m.part("mirrors.dac", f.DAC, hal.RoleMirrorDAC), ADC: m.part("mirrors.adc", f.ADC, hal.RoleADC),
		Temp: hal.MirrorTemp{Part: m.part("mirrors.temperature.part", t.Part, hal.RoleTemperature), Bus: m.onBus("mirrors.temperature.bus", t.Bus, "i2c"), Addr: uint16(t.Addr)}}
	m.when(out.ADC != hal.NoPart && out.ADC.Like() != hal.ADS7138, "mirrors.adc", "ads7138, or one like it", "nobody reads monitors by %s", out.ADC)
	for i, d := range f.DACs {
		at := fmt.Sprintf("mirrors.dacs[%d].", i)
		m.span(at+"select", int64(d.Select), 0, maxSelect)
		out.DACs = append(out.DACs, hal.MirrorDAC{SPI: m.onBus(at+"spi", d.SPI, "spi"), ChipSelect: uint16(d.Select)})
	}
	electrodes, lights := map[int]string{}, map[hal.Monitor]string{}
	sides := map[hal.Monitor]int{} // of each ADC: Channel is 0
	for side, list := range [hal.NumSides][]Mirror{f.A, f.B} {
		for port := range list {
			in, at := &list[port], fmt.Sprintf("mirrors.%c[%d].", "ab"[side], port)
			var mirror hal.Mirror
			if len(in.Electrodes) != hal.NumElectrodes {
				m.bad(at+"electrodes", fmt.Sprint(hal.NumElectrodes), "%d", len(in.Electrodes))
				continue
			}
			for e, n := range in.Electrodes {
				field := fmt.Sprintf("%selectrodes[%d]", at, e)
				m.span(field, int64(n), 0, int64(hal.MirrorDACChannels*len(f.DACs)-1))
				if first, twice := electrodes[n]; twice {
					m.bad(field, "a channel of its own", "%d is %s", n, first)
				}
				electrodes[n], mirror.Electrodes[e] = field, uint16(n)
			}
			mon := hal.Monitor{Bus: m.onBus(at+"bus", in.Bus, "i2c"), Addr: uint16(in.ADC), Channel: uint8(in.Channel)}
			m.span(at+"channel", int64(in.Channel), 0, int64(out.ADC.Data().Channels-1))
			if first, twice := lights[mon]; twice {
				m.bad(at+"channel", "a channel of its own", "it is %s", first)
			}
			adc := hal.Monitor{Bus: mon.Bus, Addr: mon.Addr}
			if other, known := sides[adc]; known && other != side {
				m.bad(at+"adc", "an ADC with ports of one side", "%#02x of bus %q has ports of side %c", uint16(in.ADC), in.Bus, "ab"[other])
			}
			lights[mon], sides[adc] = at+"channel", side
			out.Arrays[side], out.Monitors[side] = append(out.Arrays[side], mirror), append(out.Monitors[side], mon)
		}
	}
	m.b.Mirrors = out
}
