package self

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"ringlight/proto/metric"
)

// Process is what is measured of a process.
type Process struct {
	Program, Version string
	// Files are PEM files of certificates by what they are for; "" is none.
	Files []File

	began     time.Time
	cpuMicros int64
	resident  int64 // bytes; -1: not known
	open      int   // descriptors; -1: not known
	expiry    []int64
}

// File is a PEM file of certificates.
type File struct{ Use, Path string }

// New begins with the process, which has started now.
func New(program, version string, files ...File) *Process {
	p := &Process{Program: program, Version: version, began: time.Now()}
	for _, f := range files {
		if f.Path != "" {
			p.Files = append(p.Files, f)
		}
	}
	return p
}

// Look reads how the process stands.
func (p *Process) Look() {
	p.cpuMicros, p.resident, p.open = 0, -1, -1
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		p.cpuMicros = (use.Utime.Nano() + use.Stime.Nano()) / 1000
	}
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		if words := bytes.Fields(raw); len(words) > 1 {
			if pages, err := strconv.ParseInt(string(words[1]), 10, 64); err == nil {
				p.resident = pages * int64(os.Getpagesize())
			}
		}
	}
	if names, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.open = len(names)
	}
	p.expiry = p.expiry[:0]
	for _, f := range p.Files {
		p.expiry = append(p.expiry, expires(f.Path))
	}
}

// expires is when the first certificate of a file that ends does, in Unix
// seconds; 0 when there is none to be read.
func expires(path string) (first int64) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			return first
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && (first == 0 || cert.NotAfter.Unix() < first) {
			first = cert.NotAfter.Unix()
		}
	}
}

type family = metric.Family

// Measures of a process that was looked at.
var Measures = []metric.Measure[*Process]{
	metric.Of(family{Name: "ringlight_build_info", Help: "1; what runs.", Labels: []string{"program", "version", "go"}},
		func(p *Process, out *metric.Page) { out.Word(p.Program).Word(p.Version).Word(runtime.Version()).Is(1) }),
	metric.Of(family{Name: "ringlight_certificate_expiry_seconds", Labels: []string{"file"},
		Help: "Time until the first certificate of a file ends, by this machine's clock; negative: it has. -1e9 where none can be read."},
		func(p *Process, out *metric.Page) {
			for i, at := range p.expiry {
				left := int64(-1e9)
				if at != 0 {
					left = at - time.Now().Unix()
				}
				out.Word(p.Files[i].Use).Is(left)
			}
		}),
	metric.Of(family{Name: "process_start_time_seconds", Help: "Start of the process, in Unix time.", Places: metric.Milli},
		func(p *Process, out *metric.Page) { out.Is(p.began.UnixMilli()) }),
	metric.Of(family{Name: "process_cpu_seconds_total", Kind: metric.Counter, Help: "Processor time of the process.", Places: metric.Micro},
		func(p *Process, out *metric.Page) { out.Is(p.cpuMicros) }),
	metric.Of(family{Name: "process_resident_memory_bytes", Help: "Memory that the process has in the machine's."},
		func(p *Process, out *metric.Page) {
			if p.resident >= 0 {
				out.Is(p.resident)
			}
		}),
	metric.Of(family{Name: "process_open_fds", Help: "Descriptors that the process has open."},
		func(p *Process, out *metric.Page) {
			if p.open >= 0 {
				out.Is(int64(p.open))
			}
		}),
}
