package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// patience bounds everything that the browser is asked. chosen: a loaded
// machine draws its first page in seconds.
const patience = 60 * time.Second

// Browser is one page in a Chromium without a screen.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
	frames []float64     // milliseconds of processor time
	whole  chan struct{} // closed when the trace is whole
}

// Start starts a browser with a page of a size, or skips the test and says why.
func Start(t testing.TB, width, height int) *Browser {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	at := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if at < 0 {
		t.Skip("skipped: no chromium (package chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(names[at]), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox wants an ordinary user
	}
	ctx, kill := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end(); kill() })
	b := &Browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Skipf("skipped: %s does not start: %v", names[at], err)
	}
	b.Resize(width, height)
	return b
}

func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.errors = append(b.errors, text)
	case *log.EventEntryAdded:
		b.errors = append(b.errors, fmt.Sprintf("%+v", e.Entry))
	case *tracing.EventDataCollected:
		for _, raw := range e.Value {
			var span struct {
				Name string
				TDur float64 // in microseconds of processor time
			}
			if json.Unmarshal(raw, &span) == nil && span.Name == "FireAnimationFrame" {
				b.frames = append(b.frames, span.TDur/1000)
			}
		}
	case *tracing.EventTracingComplete:
		close(b.whole)
	}
}

// must has the browser do something, and decodes what it answers.
func (b *Browser) must(method string, params map[string]any, into any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (raw json.RawMessage, err error) {
		err = t.Call(ctx, method, params, &raw)
		return raw, err
	})
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		b.t.Fatalf("browser: %s: %v", method, err)
	}
}

// Frames gives the processor time, in milliseconds, of each callback that drew a frame
// while f ran: what a page costs however busy the machine is.
func (b *Browser) Frames(f func()) (ms []float64) {
	b.t.Helper()
	b.mu.Lock()
	b.frames, b.whole = nil, make(chan struct{})
	b.mu.Unlock()
	b.must("Tracing.start", map[string]any{"transferMode": "ReportEvents", "traceConfig": map[string]any{"includedCategories": []string{"devtools.timeline"}}}, nil)
	f()
	b.must("Tracing.end", nil, nil)
	select {
	case <-b.whole:
	case <-time.After(patience):
		b.t.Fatalf("browser: no trace within %v", patience)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.frames
}

// Open goes to an address.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.must("Page.navigate", map[string]any{"url": url}, nil)
}

// Resize makes the window so many pixels wide and high.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
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
	b.must("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
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
	b.must("Input.dispatchKeyEvent", params, nil)
	b.must("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Shot is the page as a PNG.
func (b *Browser) Shot() []byte {
	b.t.Helper()
	var r struct{ Data []byte }
	b.must("Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	return r.Data
}

// Errors are what the page complained of, a refused script or style too.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.errors...)
}
