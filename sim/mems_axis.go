package sim

import (
	"math"

	"ringlight/mzi/detmath"
)

// axis is one axis of one mirror: a torsion spring with damping, driven by the
// difference of two squares,
//
//	x” + 2 zeta omega x' + omega^2 x = omega^2 gain (V1^2 - V2^2)
//
// solved in closed form from the last change of a voltage on. Where the beam
// points is x and what adds to it: how the mirror sits, what has moved since
// the factory, what charges, what creeps.
type axis struct {
	omega, zeta, gain float64
	mount             float64 // radian, known to the factory
	aged              float64 // radian, since the factory

	target, x, v float64 // radian and radian/s at since
	charge       float64 // radian, follows target slowly
	since        int64   // nanoseconds
	torque       float64 // V1^2 - V2^2

	pullAt int64   // when the move under way goes beyond the travel
	pullTo float64 // and to which stop
	pulled float64 // the stop that it hangs on, 0 = free

	creep      float64 // radian/s, planted
	creepSince int64
	crept      float64
}

// What mirrors are. chosen: omega and zeta are in docs/board.md,
// zeta from where a board of them can settle in 10 ms.
const (
	mirrorLowHertz, mirrorHighHertz = 500, 2000
	mirrorLowZeta, mirrorHighZeta   = 0.25, 0.9
	mirrorGain                      = 4.64e-6 // radian per V^2: 65 mrad for 50 V about 70 V
	mirrorGainSpread                = 0.05
	mirrorMount                     = 0.002   // radian, either way
	mirrorAged                      = 0.00025 // radian, either way
	mirrorTravel                    = 0.110   // radian to the stop
	mirrorPullIn                    = 0.8     // of the travel: the electrode wins over the spring
	mirrorRelease                   = 0.4     // of the travel: below it a mirror leaves its stop
	mirrorChargePart                = 0.003   // of the deflection, when fully charged
	mirrorChargeSeconds             = 1800.0
	mirrorPerKelvin                 = 4e-6 // radian, at full sensitivity
	referenceMillicelsius           = 25_000
)

const neverPulled = math.MaxInt64

func (x *axis) draw(seed uint64, ph *MirrorPhysics) {
	u := func(i uint64, lo, hi float64) float64 { return between(derive(seed, i), lo, hi) }
	x.omega = 2 * pi * u(0, mirrorLowHertz, mirrorHighHertz)
	x.zeta = u(1, mirrorLowZeta, mirrorHighZeta)
	x.gain = mirrorGain * (1 + u(2, -mirrorGainSpread, mirrorGainSpread))
	x.mount = u(3, -mirrorMount, mirrorMount)
	x.aged = u(4, -mirrorAged, mirrorAged)
	if ph.Damping > 0 {
		x.zeta = ph.Damping
	}
	if ph.Ageing > 0 {
		x.aged *= ph.Ageing
	}
	x.pullAt = neverPulled
}

func (x *axis) damped() (sigma, omega float64) {
	return x.zeta * x.omega, x.omega * math.Sqrt(1-float64(x.zeta*x.zeta))
}

// amplitudes are the factors of cosine and sine of the motion since since.
func (x *axis) amplitudes() (a, b float64) {
	sigma, omega := x.damped()
	a = x.x - x.target
	return a, (x.v + float64(sigma*a)) / omega
}

const seconds = 1e-9

// at is deflection and speed at a time not before since.
func (x *axis) at(now int64) (pos, vel float64) {
	if x.pulled != 0 {
		return x.pulled, 0
	}
	if now >= x.pullAt {
		return x.pullTo, 0
	}
	t := float64(now-x.since) * seconds
	sigma, omega := x.damped()
	if sigma*t > 40 {
		return x.target, 0
	}
	a, b := x.amplitudes()
	e := detmath.Exp(-sigma * t)
	sin, cos := detmath.Sincos(omega * t)
	pos = x.target + float64(e*(float64(a*cos)+float64(b*sin)))
	vel = e * (float64((float64(b*omega)-float64(sigma*a))*cos) - float64((float64(a*omega)+float64(sigma*b))*sin))
	return pos, vel
}

// drive gives the axis a new torque.
func (x *axis) drive(now int64, torque float64) {
	if torque == x.torque {
		return
	}
	x.charge = x.charged(now)
	pos, vel := x.at(now)
	if now >= x.pullAt {
		x.pulled = pos
	}
	x.torque = torque
	x.x, x.v, x.since, x.target = pos, vel, now, x.gain*torque
	x.pullAt = neverPulled
	if x.pulled != 0 {
		if toward := x.target * x.pulled; toward > 0 && math.Abs(x.target) > mirrorRelease*mirrorTravel {
			return // hangs on
		}
		x.pulled = 0
	}
	x.foresee()
}

// foresee finds whether the move goes beyond pull-in: at one of its first two
// turning points if at all, each later one is smaller.
func (x *axis) foresee() {
	const limit = mirrorPullIn * mirrorTravel
	if math.Abs(x.target) > limit {
		x.pulls(x.target, 1/x.omega)
		return
	}
	sigma, omega := x.damped()
	a, b := x.amplitudes()
	up, down := float64(b*omega)-float64(sigma*a), float64(a*omega)+float64(sigma*b)
	if up == 0 && down == 0 {
		return
	}
	angle := detmath.Atan2(up, down)
	if angle < 1e-6 { // where it starts, at rest, is no turning point ahead
		angle += pi
	}
	for range 2 {
		t := angle / omega
		sin, cos := detmath.Sincos(angle)
		peak := x.target + float64(detmath.Exp(-sigma*t)*(float64(a*cos)+float64(b*sin)))
		if math.Abs(peak) > limit {
			x.pulls(peak, t)
			return
		}
		angle += pi
	}
}

// pulls notes that the move ends on the stop towards peak.
func (x *axis) pulls(peak, after float64) {
	x.pullAt, x.pullTo = x.since+int64(after/seconds), mirrorTravel
	if peak < 0 {
		x.pullTo = -mirrorTravel
	}
}

func (x *axis) charged(now int64) float64 {
	t := float64(now-x.since) * seconds / mirrorChargeSeconds
	if t > 40 {
		return x.target
	}
	return x.target + float64((x.charge-x.target)*detmath.Exp(-t))
}

// points is where the axis sends its beam.
func (x *axis) points(now int64, millicelsius int32) float64 {
	pos, _ := x.at(now)
	sum := pos + x.mount + x.aged + x.crept
	sum += float64(mirrorChargePart * x.charged(now))
	sum += float64(mirrorPerKelvin * (float64(millicelsius-referenceMillicelsius) / 1000))
	return sum + float64(x.creep*float64(now-x.creepSince)*seconds)
}
