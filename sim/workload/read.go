package workload

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// Heading of a list of one's own; the model may be left out.
const (
	Heading      = "arrival_ms,gpus,duration_ms"
	headingModel = Heading + ",model"
)

const (
	maxTime   = int64(10 * 366 * 24 * time.Hour / time.Millisecond) // ten years, chosen
	maxLine   = 256                                                 // bytes, chosen: three numbers and a name
	maxDigits = 15                                                  // of a number, chosen: a thousand times the longest time
)

// Reader takes jobs one by one from CSV and checks each. Volume, slack and
// models that the list leaves out are drawn from the seed as a generator
// draws them.
type Reader struct {
	r                    *bufio.Reader
	line, fields         int
	last                 int64
	maxGPUs              int
	model, volume, slack *detmath.Random
	err                  error
}

// NewReader reads a list of jobs of at most maxGPUs GPUs.
func NewReader(r io.Reader, maxGPUs int, seed uint64) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 1<<16), maxGPUs: maxGPUs,
		model: detmath.Stream(seed, drawModel), volume: detmath.Stream(seed, drawVolume), slack: detmath.Stream(seed, drawSlack)}
}

// All takes every job.
func (r *Reader) All() (jobs []Job, err error) {
	for {
		j, err := r.Next()
		switch err {
		case nil:
			jobs = append(jobs, j)
		case io.EOF:
			return jobs, nil
		default:
			return nil, err
		}
	}
}

// Next returns the next job, or io.EOF after the last. An error stays.
func (r *Reader) Next() (Job, error) {
	if r.err != nil {
		return Job{}, r.err
	}
	var j Job
	if r.line == 0 {
		r.err = r.heading()
	}
	if r.err == nil {
		j, r.err = r.next()
	}
	return j, r.err
}

// refuse names line, field and limit.
func (r *Reader) refuse(field, limit, format string, args ...any) error {
	return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit,
		Reason: fmt.Sprintf("workload, line %d: ", r.line) + fmt.Sprintf(format, args...)}
}

// text reads a line, which must end: a file that was cut in the middle of a
// number would otherwise be believed.
func (r *Reader) text() (string, error) {
	b, err := r.r.ReadSlice('\n')
	if err == io.EOF && len(b) == 0 {
		return "", io.EOF
	}
	r.line++
	switch {
	case err == bufio.ErrBufferFull || len(b) > maxLine:
		return "", r.refuse("line", fmt.Sprintf("%d bytes", maxLine), "it is longer")
	case err == io.EOF:
		return "", r.refuse("line", "every line ends with a newline", "the file ends in the middle of it, after %q", b)
	case err != nil:
		return "", fmt.Errorf("workload, line %d: %w", r.line, err)
	}
	return strings.TrimSuffix(string(b[:len(b)-1]), "\r"), nil
}

func (r *Reader) heading() error {
	line, err := r.text()
	if err == io.EOF {
		r.line++
	} else if err != nil {
		return err
	}
	switch line {
	case Heading:
		r.fields = 3
	case headingModel:
		r.fields = 4
	default:
		return r.refuse("heading", Heading+"[,model]", "got %q", line)
	}
	return nil
}

func (r *Reader) next() (Job, error) {
	line, err := r.text()
	if err == io.EOF && r.line == 1 {
		r.line++
		return Job{}, r.refuse("line", "at least one job", "the list is empty")
	}
	if err != nil {
		return Job{}, err
	}
	if r.line-1 > MaxJobs {
		return Job{}, r.refuse("line", fmt.Sprintf("%d jobs", MaxJobs), "there are more")
	}
	var cells [4]string
	n := 0
	for rest, more := line, true; more; n++ {
		if n == r.fields {
			return Job{}, r.refuse("line", fmt.Sprintf("%d fields", r.fields), "it has more")
		}
		cells[n], rest, more = strings.Cut(rest, ",")
	}
	if n < r.fields {
		return Job{}, r.refuse(strings.Split(headingModel, ",")[n], fmt.Sprintf("%d fields", r.fields), "missing")
	}
	var v [3]int64
	limits := [3][2]int64{{0, maxTime}, {1, int64(r.maxGPUs)}, {1, maxTime}}
	for i := range v {
		n, err := strconv.ParseUint(cells[i], 10, 63)
		if v[i] = int64(n); err != nil || len(cells[i]) > maxDigits || v[i] < limits[i][0] || v[i] > limits[i][1] {
			return Job{}, r.refuse(strings.Split(Heading, ",")[i], fmt.Sprintf("a whole number from %d to %d", limits[i][0], limits[i][1]), "got %q", cells[i])
		}
	}
	if v[0] < r.last {
		return Job{}, r.refuse("arrival_ms", fmt.Sprintf("at least %d, that of the line before", r.last), "got %d", v[0])
	}
	r.last = v[0]
	j := Job{Arrival: time.Duration(v[0]) * time.Millisecond, Duration: time.Duration(v[2]) * time.Millisecond, GPUs: int32(v[1]), Estimate: thousandth}
	j.Volume, j.Slack = drawVolumeSlack(r.volume, r.slack)
	j.Model, j.Pattern = drawTalk(r.model, j.GPUs)
	if r.fields == 4 {
		return r.named(j, cells[3])
	}
	return j, nil
}

// named gives a job the model that its line asks for, which fixes how it
// meets; a volume is then the model's own.
func (r *Reader) named(j Job, name string) (Job, error) {
	m := slices.IndexFunc(Models[:], func(m Model) bool { return m.Name == name })
	if m < 0 {
		names := make([]string, len(Models))
		for i, m := range Models {
			names[i] = m.Name
		}
		return j, r.refuse("model", "one of "+strings.Join(names, " "), "got %q", name)
	}
	j.Model, j.Volume = uint8(m), thousandth
	switch {
	case j.GPUs == 1 || Models[m].AllReduce+Models[m].AllToAll == 0:
		j.Pattern = Alone
	case Models[m].AllToAll > 0:
		j.Pattern = AllToAll
	case j.Pattern == AllToAll: // was drawn for a mixture of experts
		j.Pattern = Ring
	}
	return j, nil
}
