package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// patience bounds everything that the browser is asked. chosen: a loaded
// machine draws its first page in seconds.
const patience = 60 * time.Second

// Browser is one page in a Chromium without a screen.
type Browser struct {
	t       testing.TB
	in      *os.File
	session string

	mu     sync.Mutex
	last   int
	wait   map[int]chan reply
	errors []string
	ended  error
	traced []traceEvent
	whole  chan struct{} // closed when the trace is whole
}

// traceEvent is one span of a thread, in microseconds.
type traceEvent struct {
	Name string
	Dur  float64 // on the clock
	TDur float64 // of processor time
}

type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts a browser with a page of a size, or skips the test and says why.
func Start(t testing.TB, width, height int) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("skipped: no chromium (package chromium)")
	}
	toRead, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--user-data-dir=" + t.TempDir(), "about:blank"}
	if os.Getuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // its sandbox wants an ordinary user
	}
	cmd := exec.Command(path, args...)
	cmd.ExtraFiles = []*os.File{toRead, toWrite}
	if err := cmd.Start(); err != nil {
		t.Skipf("skipped: %s does not start: %v", path, err)
	}
	toRead.Close()
	toWrite.Close()
	b := &Browser{t: t, in: in, wait: map[int]chan reply{}}
	read := make(chan struct{})
	go func() { defer close(read); b.read(out) }()
	t.Cleanup(func() {
		_, _ = b.call("", "Browser.close", nil)
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		select {
		case <-gone:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-gone
		}
		in.Close()
		<-read
		out.Close()
	})
	var target struct{ TargetID string }
	b.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.must(b.session, domain+".enable", nil, nil)
	}
	b.must(b.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	return b
}

func (b *Browser) read(out *os.File) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ended = errors.New("browser: it has ended")
			for id, c := range b.wait { // any order: all are told
				delete(b.wait, id)
				close(c)
			}
			return
		}
		var m reply
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		switch {
		case m.ID != 0 && b.wait[m.ID] != nil:
			b.wait[m.ID] <- m
			delete(b.wait, m.ID)
		case m.Method == "Tracing.dataCollected":
			var data struct{ Value []traceEvent }
			if json.Unmarshal(m.Params, &data) == nil {
				b.traced = append(b.traced, data.Value...)
			}
		case m.Method == "Tracing.tracingComplete" && b.whole != nil:
			close(b.whole)
			b.whole = nil
		case m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded":
			b.errors = append(b.errors, string(m.Params))
		}
		b.mu.Unlock()
	}
}

func (b *Browser) call(session, method string, params any) (json.RawMessage, error) {
	m := map[string]any{"method": method}
	if params != nil {
		m["params"] = params
	}
	if session != "" {
		m["sessionId"] = session
	}
	c := make(chan reply, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return nil, b.ended
	}
	b.last++
	m["id"] = b.last
	b.wait[b.last] = c
	raw, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case r, ok := <-c:
		switch {
		case !ok:
			return nil, errors.New("browser: it has ended")
		case r.Error != nil:
			return nil, fmt.Errorf("browser: %s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("browser: %s: no answer within %v", method, patience)
	}
}

func (b *Browser) must(session, method string, params, into any) {
	b.t.Helper()
	raw, err := b.call(session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Frames gives the processor time, in milliseconds, of each callback that drew a frame
// while f ran: what a page costs however busy the machine is.
func (b *Browser) Frames(f func()) (ms []float64) {
	b.t.Helper()
	whole := make(chan struct{})
	b.mu.Lock()
	b.traced, b.whole = nil, whole
	b.mu.Unlock()
	b.must(b.session, "Tracing.start", map[string]any{"transferMode": "ReportEvents", "traceConfig": map[string]any{"includedCategories": []string{"devtools.timeline"}}}, nil)
	f()
	b.must(b.session, "Tracing.end", nil, nil)
	select {
	case <-whole:
	case <-time.After(patience):
		b.t.Fatalf("browser: no trace within %v", patience)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.traced {
		if e.Name == "FireAnimationFrame" {
			ms = append(ms, e.TDur/1000)
		}
	}
	return ms
}

// Open goes to an address.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.must(b.session, "Page.navigate", map[string]any{"url": url}, nil)
}

// Resize makes the window so many pixels wide and high.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.must(b.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Eval runs an expression on the page, waits for its promise, and decodes what
// it gives.
func (b *Browser) Eval(expression string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.must(b.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if x := r.ExceptionDetails; x != nil {
		b.t.Fatalf("%s: %s %s", expression, x.Text, x.Exception.Description)
	}
	if into != nil {
		if err := json.Unmarshal(r.Result.Value, into); err != nil {
			b.t.Fatalf("%s: %v: %s", expression, err, r.Result.Value)
		}
	}
}

// Until waits for an expression to be true on the page, looked at with every
// frame; what the page shows then is told when it does not come true.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	var ok bool
	b.Eval(fmt.Sprintf(`new Promise((done) => { const end = performance.now() + %d, look = () => {
		let is = false; try { is = (%s); } catch {}
		if (is || performance.now() > end) done(!!is); else setTimeout(look, 20); }; look(); })`, (patience-10*time.Second).Milliseconds(), expression), &ok)
	if !ok {
		var text string
		b.Eval("document.body.innerText", &text)
		b.t.Fatalf("not within %v: %s\nthe page shows:\n%s\nerrors: %v", patience, expression, text, b.Errors())
	}
}

// Key presses and lets go a key, by its DOM name.
func (b *Browser) Key(key string) {
	b.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		params["text"] = key
	}
	if key == "Enter" {
		params["text"] = "\r"
	}
	b.must(b.session, "Input.dispatchKeyEvent", params, nil)
	b.must(b.session, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Shot is the page as a PNG.
func (b *Browser) Shot() []byte {
	b.t.Helper()
	var r struct{ Data []byte }
	b.must(b.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	return r.Data
}

// Errors are what the page complained of, a refused script or style too.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.errors...)
}
