package live

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/planner/view/browser"
)

// gate is the demo's screen: at a line that holds a mark the demo stands still,
// its light and its agents too, until the test has seen enough.
type gate struct {
	t    testing.TB
	text bytes.Buffer
	mark string
	at   chan string
	on   chan string // the next mark
}

func (g *gate) Write(p []byte) (int, error) {
	g.text.Write(p)
	if g.mark != "" && bytes.Contains(p, []byte(g.mark)) {
		g.at <- string(p)
		g.mark = <-g.on
	}
	return len(p), nil
}

// webTests asks for RINGLIGHT_WEB: a browser takes longer than all of a test's
// time.
func webTests(t testing.TB) {
	if os.Getenv("RINGLIGHT_WEB") == "" {
		t.Skip("skipped: RINGLIGHT_WEB is not set (make bench-web)")
	}
}

// Goal: what happens to a board is seen: a node loses its power, and pixel,
// sentence and risk list change; a broker that is gone is said; the timeline
// takes the bypass back; no page breaks its content policy. Method: the demo's
// real agents on simulated boards, a real Chromium; its pixels are those of the
// picture that it takes of itself. Screenshots go to docs when RINGLIGHT_WEB is
// "docs".
func TestViewInARealBrowser(t *testing.T) {
	webTests(t)
	b := browser.Start(t, 1180, 700)
	s := newScenario(42, 1, 30)
	s.at(5, 12, true, "Power Supply")
	s.at(7, 20, true, "GPU")
	s.at(8.5, 30, true, "GPU") // the broker is down
	s.at(9.5, 33, true, "Power Supply")
	cfg := small()
	cfg.Nodes, cfg.Spares, cfg.Days, cfg.TP, cfg.K, cfg.Modules = 42, 2, 30, 32, 3, 2
	cfg.BrokerDown = &Outage{Day: 8, Days: 1}
	cfg.Hold, cfg.HTTP = true, "127.0.0.1:0"
	g := &gate{t: t, mark: "planner  term", at: make(chan string), on: make(chan string)}
	cfg.Screen = g
	cfg.Trace, cfg.TraceName = &s.trace, "by hand"
	finished := make(chan struct{})
	cfg.Finished = func(*Result) { close(finished) }
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	ended := make(chan error, 1)
	go func() { _, err := Demo(ctx, cfg); ended <- err }()
	defer func() {
		cancel()
		ran := make(chan struct{})
		defer close(ran)
		go func() { // a test that failed waits for no line of the demo
			for {
				select {
				case <-g.at:
				case g.on <- "":
				case <-ran:
					return
				}
			}
		}()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	until := func() {
		t.Helper()
		select {
		case <-g.at:
		case <-finished:
			t.Fatalf("the demo is over:\n%s", g.text.String())
		case err := <-ended:
			ended <- err
			t.Fatalf("%v\n%s", err, g.text.String())
		}
	}
	until()
	_, after, _ := strings.Cut(g.text.String(), "view     ")
	url := strings.Fields(after)[0]
	b.Open(url + "/")
	b.Until("ringlight.picture.count().confirmed === 35 && /and \\d more/.test(document.getElementById('risks').innerText)")
	dark := color.RGBA{0xff, 0x6a, 0x1f, 0xff}
	if n := marks(t, b, 12, dark); n > 0 {
		t.Errorf("%d pixels of a node with light say that it is dark", n)
	}
	b.Open(url + "/#/why/12")
	b.Until("document.querySelector('.why').innerText.includes('which is in_service')")
	b.Open(url + "/#/")
	b.Until("ringlight.page.canvas")

	g.on <- "day   7.0" // everything about node 12 has settled by then
	until()
	b.Until("ringlight.picture.standing[12] === 3")
	b.Eval("new Promise((done) => setTimeout(done, 1600))", nil) // what changed has stopped to shine
	if n := marks(t, b, 12, dark); n < 20 {
		t.Errorf("only %d pixels of a node without light say so", n)
	}
	b.Key("ArrowRight")
	b.Key("Escape")

	g.on <- "day   8.5"
	until()
	b.Until("!document.getElementById('banner').hidden && document.getElementById('banner').innerText.includes('broker is out of reach')")
	shot(t, b, "view-broker-gone")
	g.on <- ""
	select {
	case <-finished:
	case err := <-ended:
		ended <- err
		t.Fatalf("%v\n%s", err, g.text.String())
	}
	b.Until("document.getElementById('banner').hidden && /and \\d\\d more/.test(document.getElementById('risks').innerText)")

	b.Open(url + "/#/why/12")
	b.Until("document.querySelector('.why').innerText.includes('have lost its light')")
	b.Open(url + "/#/time")
	b.Until("ringlight.page.log?.length > 100")
	// back to the first bypass of a member of node 12's ring
	b.Eval(`ringlight.page.to(ringlight.page.log.findIndex((e) => e.kind === 3 && e.bypassed))`, nil)
	b.Until("[...ringlight.page.shown.right, ...ringlight.page.shown.left].includes(2) && document.querySelector('aside .clock').innerText.length > 4")
	b.Eval("new Promise((done) => setTimeout(done, 800))", nil)
	shot(t, b, "view-time")
	reads(t, b, "view-time")
	for _, p := range []struct{ name, at, until string }{
		{"view-fabric", "/#/", "/and \\d\\d more/.test(document.getElementById('risks').innerText)"},
		{"view-ring", "/#/ring/2", "document.querySelectorAll('td').length > 20"},
		{"view-node", "/#/node/11", "document.querySelectorAll('.why tr').length > 4 && document.querySelector('.cards canvas')"},
		{"view-next", "/#/next", "document.querySelectorAll('td').length > 20"},
	} {
		b.Open(url + p.at)
		b.Until(p.until)
		b.Eval("new Promise((done) => setTimeout(done, 1800))", nil)
		shot(t, b, p.name)
		reads(t, b, p.name)
	}
	// keys alone: from the fabric to a node, its ring, why, and back
	b.Open(url + "/#/")
	b.Until("ringlight.page.canvas")
	for _, k := range []string{"ArrowRight", "ArrowRight", "Enter"} {
		b.Key(k)
	}
	b.Until("location.hash === '#/node/1'")
	b.Key("r")
	b.Until("location.hash === '#/ring/1'")
	b.Key("t")
	b.Until("location.hash === '#/time'")
	b.Key("/")
	for _, k := range []string{"w", "5", "Enter"} {
		b.Key(k)
	}
	b.Until("location.hash === '#/why/5' && document.title.endsWith('why 5')")
	// a page that is left while its answer is under way draws nothing
	for i := range 40 {
		b.Eval(fmt.Sprintf("location.hash = '%s'; new Promise((done) => setTimeout(() => { location.hash = '#/'; done(); }, %d))", []string{"#/time", "#/ring/1", "#/node/1", "#/why/1", "#/next"}[i%5], i/5*3), nil)
	}
	b.Until("ringlight.page.canvas")
	if e := b.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %v", e)
	}
}

// faint lists texts of a page with less contrast than 4.5 to what is behind them
// (WCAG 2.2, 1.4.3), and drawings that say nothing to who does not see them.
const faint = `(() => {
  const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return [m[0], m[1], m[2], m[3] ?? 1]; };
  const lum = (c) => c.slice(0, 3).map((x) => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4).reduce((s, x, i) => s + x * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [5, 7, 11, 1]; };
  const bad = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility() || e.closest('noscript')) continue;
    const [a, b] = [lum(rgb(getComputedStyle(e).color)), lum(behind(e))], ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.add(ratio.toFixed(2) + ': ' + n.data.trim().slice(0, 30));
  }
  for (const c of document.querySelectorAll('canvas')) if (c.ariaHidden !== 'true' && !(c.role === 'img' && c.ariaLabel)) bad.add('a canvas without role and name');
  return [...bad];
})()`

// reads looks whether a page can be read: by who sees little, by who sees nothing, and on
// a telephone 390 pixels wide.
func reads(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	var bad []string
	if b.Eval(faint, &bad); len(bad) > 0 {
		t.Errorf("%s: %q", name, bad)
	}
	axe(t, b, name)
	b.Resize(390, 844)
	b.Eval("new Promise((done) => setTimeout(done, 300))", nil)
	axe(t, b, name+" at 390 pixels")
	if dir := os.Getenv("RINGLIGHT_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+"-390.png"), b.Shot(), 0o644); err != nil {
			t.Error(err)
		}
	}
	var wide int
	b.Eval("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth, document.getElementById('page').scrollWidth)", &wide)
	if wide > 390 {
		t.Errorf("%s: %d pixels wide on a screen of 390", name, wide)
	}
	b.Resize(1180, 700)
}

// axe has axe-core judge a page, where RINGLIGHT_AXE names its axe.min.js: nothing that
// it calls serious or critical may stand there.
func axe(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	file := os.Getenv("RINGLIGHT_AXE")
	if file == "" {
		return
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b.Eval(string(source)+"; 0", nil)
	var found struct {
		Passed int
		Bad    []string
	}
	b.Eval(`axe.run().then((r) => ({Passed: r.passes.length, Bad: r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
  .map((v) => v.id + ': ' + v.help + ': ' + v.nodes.map((n) => n.html.slice(0, 90)).join(' | '))}))`, &found)
	if found.Passed < 5 || len(found.Bad) > 0 {
		t.Errorf("%s: axe-core has %d rules passed, and against it %q", name, found.Passed, found.Bad)
	}
}

// marks counts the pixels of a colour about a node of the fabric.
func marks(t *testing.T, b *browser.Browser, node int, want color.RGBA) (n int) {
	t.Helper()
	var at [3]float64
	b.Eval(fmt.Sprintf("(() => { const c = ringlight.page.canvas, box = c.over.getBoundingClientRect(), [x, y] = c.place(%d); return [x + box.left, y + box.top, c.r]; })()", node), &at)
	img, err := png.Decode(bytes.NewReader(b.Shot()))
	if err != nil {
		t.Fatal(err)
	}
	for y := int(at[1] - at[2]*1.2); y <= int(at[1]+at[2]*1.2); y++ {
		for x := int(at[0] - at[2]*1.2); x <= int(at[0]+at[2]*1.2); x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			near := func(a, b uint8) bool { return max(a, b)-min(a, b) < 24 }
			if near(c.R, want.R) && near(c.G, want.G) && near(c.B, want.B) {
				n++
			}
		}
	}
	return n
}

// maxShot keeps the repository small.
const maxShot = 150 << 10

// shot takes a picture of the page, in 5 bits a colour, which a page bears and
// a repository thanks for.
func shot(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b.Shot()))
	if err != nil {
		t.Fatal(err)
	}
	out := image.NewRGBA(img.Bounds())
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			out.SetRGBA(x, y, color.RGBA{c.R&0xf8 | 4, c.G&0xf8 | 4, c.B&0xf8 | 4, 0xff})
		}
	}
	var raw bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&raw, out); err != nil {
		t.Fatal(err)
	}
	if raw.Len() > maxShot {
		t.Errorf("%s: %d KB", name, raw.Len()>>10)
	}
	dir := t.ArtifactDir()
	if os.Getenv("RINGLIGHT_WEB") == "docs" {
		dir = "../../docs"
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), raw.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s.png: %d KB", name, raw.Len()>>10)
}
