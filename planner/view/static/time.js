// The timeline: all events that the planner keeps, and the fabric as they tell
// that it was.
import { LIGHT, Picture, entries } from './wire.js';
import { FabricCanvas, COLOUR } from './draw.js';
import { el, get, keep, fit, date, clock, link, plural } from './parts.js';

// codes of events (proto/event.go); 0 is a note of the planner
const EV = { lost: 1, found: 2, switched: 3, restored: 4, closed: 5, isolated: 7, returned: 8, hostFault: 9, hostOK: 10, applied: 12, alarm: 14, pathFailed: 16, started: 19 };
const CLASS = (e) => e.kind === 0 ? 3 : e.kind === EV.lost || e.kind === EV.switched || e.kind === EV.closed ? 0 : e.kind === EV.isolated || e.kind === EV.hostFault || e.kind === EV.pathFailed || e.kind === EV.alarm && !e.resolved ? 1 : 2;
const CLASSES = [['light lost, bypass, loopback', COLOUR.bypass], ['node or path out', COLOUR.dead], ['light found, back, applied', COLOUR.lit], ['planner', '#50657c']];

// replay lays events over a picture in which all is as planned.
function replay(to, now, list, end) {
  to.rings = now.rings; to.ring.set(now.ring); to.next.set(now.next); to.prev.set(now.prev);
  for (let n = 0; n < to.nodes; n++) {
    to.standing[n] = 1; to.leaving[n] = 0; to.deficit[n] = 0; to.leftPeer[n] = to.rightPeer[n] = -1;
    to.left[n] = to.prev[n] >= 0 ? LIGHT.lit : 0; to.right[n] = to.next[n] >= 0 ? LIGHT.lit : 0;
  }
  for (let i = 0; i < end; i++) {
    const e = list[i], n = e.node;
    if (n < 0 || n >= to.nodes) continue;
    const side = e.right ? to.right : to.left, peer = e.right ? to.rightPeer : to.leftPeer, has = e.right ? to.next[n] >= 0 : to.prev[n] >= 0;
    const lit = () => { if (e.ring) { side[n] = e.bypassed ? LIGHT.bypass : has ? LIGHT.lit : 0; peer[n] = e.bypassed ? e.peer : -1; } };
    switch (e.kind) {
      case 0: if (e.severity === 1) { to.standing[n] = 3; to.left[n] = to.right[n] = 0; } break;
      case EV.lost: if (e.ring) side[n] = LIGHT.moving; break;
      case EV.found: case EV.switched: case EV.restored: lit(); break;
      case EV.closed: side[n] = LIGHT.closed; break;
      case EV.isolated: to.standing[n] = to.standing[n] === 5 ? 5 : 4; to.left[n] = to.right[n] = 0; break;
      case EV.hostFault: to.standing[n] = 5; break;
      case EV.hostOK: case EV.returned: case EV.started: to.standing[n] = 1; break;
      case EV.applied:
        to.standing[n] = 1; to.leftPeer[n] = to.rightPeer[n] = -1;
        to.left[n] = to.prev[n] >= 0 ? LIGHT.lit : 0; to.right[n] = to.next[n] >= 0 ? LIGHT.lit : 0; break;
    }
  }
}

export function timePage(root, app, start) {
  const strip = el('canvas', { tabIndex: 0, role: 'img', ariaLabel: 'events over time' }), stage = el('div.stage'), when = el('div.clock', '\u2014'), about = el('p.dim'), list = el('ul.risks'), what = el('div');
  root.append(el('h1.unseen', 'Timeline'), el('div.split', el('div.time', strip), el('div.row', stage, el('aside', el('section', when, about), el('section', el('h2', 'Around it'), what), el('section', el('h2', 'Key'), el('ul', CLASSES.map(([text, c]) => { const i = el('canvas', { width: 20, height: 20, ariaHidden: 'true' }); i.style.width = i.style.height = '10px'; const g = i.getContext('2d'); g.fillStyle = c; g.fillRect(0, 0, 20, 20); return el('li', i, '  ', text); })), el('p.faint', 'Space plays. The arrows go by one event, with shift by a hundredth. Rings are drawn as they are now; their light is what events told until then.'))))));
  const shown = new Picture(app.about), canvas = new FabricCanvas(stage, shown, { open: (n) => { location.hash = `#/node/${n}`; } });
  let log = [], cursor = -1, playing = 0, follow = true;

  async function load() {
    const from = log.length ? log[log.length - 1].seq + 1 : 0;
    const got = await fetch(`/view/log?from=${from}`), more = entries(new Uint8Array(await got.arrayBuffer()));
    if (!more.length && log.length) return;
    log = log.concat(more);
    if (start !== undefined && cursor < 0) { follow = false; cursor = Math.max(0, log.findIndex((e) => e.seq >= start)); } else if (follow) cursor = log.length - 1;
    draw(); moved();
  }
  const loader = keep(load, 1500);

  const x = (i, w) => { const [a, b] = [log[0].at, log[log.length - 1].at]; return 8 + (b > a ? (log[i].at - a) / (b - a) : 0.5) * (w - 16); };
  function draw() {
    if (strip.clientWidth < 20) return; // the page was left while its answer was under way, or is not laid out yet
    const [g, w, h] = fit(strip);
    g.clearRect(0, 0, w, h);
    g.fillStyle = '#0a0f16'; g.beginPath(); g.roundRect(0, 0, w, h, 10); g.fill(); g.strokeStyle = '#1a2533'; g.stroke();
    if (!log.length) { g.fillStyle = COLOUR.dim; g.font = '13px system-ui'; g.fillText('No event is kept yet.', 16, 30); return; }
    const bins = Math.floor((w - 16) / 3), count = CLASSES.map(() => new Uint32Array(bins + 1));
    log.forEach((e, i) => count[CLASS(e)][Math.min(bins, Math.floor((x(i, w) - 8) / 3))]++);
    let most = 1;
    for (let b = 0; b <= bins; b++) most = Math.max(most, count.reduce((s, c) => s + c[b], 0));
    const tall = h - 34;
    for (let b = 0; b <= bins; b++) {
      const all = count.reduce((s, c) => s + c[b], 0);
      if (!all) continue;
      let y = h - 20;
      const height = Math.max(3, tall * Math.log1p(all) / Math.log1p(most));
      CLASSES.forEach(([, c], k) => { const part = height * count[k][b] / all; g.fillStyle = c; g.fillRect(8 + b * 3, y - part, 2, part); y -= part; });
    }
    g.fillStyle = COLOUR.dim; g.font = '11px system-ui,sans-serif';
    g.textAlign = 'left'; g.fillText(date(log[0].at), 10, h - 6); g.textAlign = 'right'; g.fillText(date(log[log.length - 1].at), w - 10, h - 6);
    g.textAlign = 'center'; g.fillText(plural(log.length, 'event and note', 'events and notes'), w / 2, h - 6);
    if (cursor >= 0) {
      const at = x(cursor, w);
      g.strokeStyle = '#fff'; g.lineWidth = 1.2; g.beginPath(); g.moveTo(at, 4); g.lineTo(at, h - 18); g.stroke();
      g.fillStyle = '#fff'; g.beginPath(); g.moveTo(at - 5, 2); g.lineTo(at + 5, 2); g.lineTo(at, 9); g.fill();
    }
  }
  const sentences = keep(async () => {
    if (cursor < 0 || !log.length) return;
    const first = log[Math.max(0, cursor - 9)].seq, r = await get(`lines?from=${first}`), e = log[cursor];
    what.replaceChildren(el('ul', r.lines.filter((l) => l.seq <= log[Math.min(log.length - 1, cursor + 4)].seq).map((l) => el(l.seq === e.seq ? 'li' : 'li.faint', el('span.dim', clock(l.at_ms), ' '), l.place === 'fabric' ? '' : link('node', l.place.split('/')[0], l.place), ' ', l.text))));
  }, 120);
  let due = 0;
  function moved() { // the last of many moves in one frame
    if (due || cursor < 0 || !log.length) return;
    due = requestAnimationFrame(() => {
      due = 0;
      const e = log[cursor];
      replay(shown, app.picture, log, cursor + 1);
      canvas.selected = e.node < app.about.nodes ? e.node : -1;
      canvas.redraw(null);
      when.textContent = clock(e.at);
      const c = shown.count();
      about.replaceChildren(`${date(e.at)}`, el('br'), `event ${cursor + 1} of ${log.length}`, el('br'), `${c.confirmed} of ${c.links} links lit, ${c.bypass} sides on a bypass`);
      draw(); sentences.soon();
    });
  }
  const to = (i) => { follow = i >= log.length - 1; cursor = Math.max(0, Math.min(log.length - 1, i)); moved(); };
  const seek = (e) => {
    if (!log.length || !(e.buttons & 1)) return;
    const b = strip.getBoundingClientRect(), at = log[0].at + (e.clientX - b.left - 8) / (b.width - 16) * (log[log.length - 1].at - log[0].at);
    let low = 0, high = log.length - 1; // the last event at or before that time
    while (low < high) { const m = (low + high + 1) >> 1; if (log[m].at <= at) low = m; else high = m - 1; }
    to(low);
  };
  strip.addEventListener('pointerdown', (e) => { strip.setPointerCapture(e.pointerId); seek(e); });
  strip.addEventListener('pointermove', seek);
  const sized = new ResizeObserver(draw);
  sized.observe(strip);
  const stop = () => { clearInterval(playing); playing = 0; };
  return { line: 'ocsctl watch', canvas, get log() { return log; }, get cursor() { return cursor; }, shown, to,
    changed: () => loader.soon(),
    close() { canvas.close(); loader.close(); sentences.close(); sized.disconnect(); stop(); },
    key(e) {
      const big = Math.max(1, Math.round(log.length / 100)), step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (step) to(cursor + step * (e.shiftKey ? big : 1));
      else if (e.key === 'Home') to(0);
      else if (e.key === 'End') to(log.length - 1);
      else if (e.key === ' ') { if (playing) stop(); else { if (cursor >= log.length - 1) to(0); playing = setInterval(() => { if (cursor >= log.length - 1) stop(); else to(cursor + 1); }, 120); } }
      else return false;
      return true;
    } };
}
