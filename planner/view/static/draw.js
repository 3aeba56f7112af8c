// The fabric on a canvas: nodes in HBD order, row under row, each link by colour
// and by shape. Rows that did not change are not drawn again.
import { LIGHT } from './wire.js';

export const COLOUR = { lit: '#7fd3ff', bypass: '#ffb000', moving: '#f5e663', closed: '#dd8fc0', wait: '#70839a', dead: '#ff6a1f', host: '#b59cff', drained: '#9fb4c9', text: '#d3dde8', dim: '#7d8fa3', faint: '#33424f' };

// stamp draws a node of a standing about 0, 0 with radius r.
export function stamp(g, standing, spare, leaving, r) {
  g.lineWidth = Math.max(1, r * 0.28);
  g.lineJoin = 'round'; g.lineCap = 'round';
  const line = (c, ...points) => {
    g.strokeStyle = c; g.beginPath();
    points.forEach(([x, y, m], i) => i && !m ? g.lineTo(x, y) : g.moveTo(x, y));
    g.stroke();
  };
  const circle = (k, c, fill) => { g.beginPath(); g.arc(0, 0, r * k, 0, 7); if (fill) { g.fillStyle = c; g.fill(); } else { g.strokeStyle = c; g.stroke(); } };
  switch (standing) {
    case 0: circle(0.3, COLOUR.faint, true); break;
    case 2: g.setLineDash([r * 0.5, r * 0.5]); circle(0.9, COLOUR.dim); g.setLineDash([]); circle(0.3, COLOUR.dim, true); break;
    case 3: line(COLOUR.dead, [-r * 0.8, -r * 0.8], [r * 0.8, r * 0.8], [r * 0.8, -r * 0.8, true], [-r * 0.8, r * 0.8]); break;
    case 4: g.fillStyle = '#2c1222'; g.beginPath(); g.moveTo(0, -r); g.lineTo(r, r * 0.8); g.lineTo(-r, r * 0.8); g.closePath(); g.fill(); g.strokeStyle = COLOUR.closed; g.stroke(); break;
    case 5: g.fillStyle = '#1a1430'; g.fillRect(-r * 0.8, -r * 0.8, r * 1.6, r * 1.6); g.strokeStyle = COLOUR.host; g.strokeRect(-r * 0.8, -r * 0.8, r * 1.6, r * 1.6); break;
    case 6: line(COLOUR.drained, [-r * 0.4, -r * 0.8], [-r * 0.4, r * 0.8], [r * 0.4, -r * 0.8, true], [r * 0.4, r * 0.8]); break;
    case 7: g.fillStyle = '#1d1a08'; g.beginPath(); g.moveTo(0, -r); g.lineTo(r, 0); g.lineTo(0, r); g.lineTo(-r, 0); g.closePath(); g.fill(); g.strokeStyle = COLOUR.moving; g.stroke(); break;
    default:
      if (spare) { circle(0.72, COLOUR.dim); break; }
      const glow = g.createRadialGradient(0, 0, r * 0.2, 0, 0, r * 1.9);
      glow.addColorStop(0, 'rgba(127,211,255,.55)'); glow.addColorStop(1, 'rgba(127,211,255,0)');
      g.fillStyle = glow; g.fillRect(-2 * r, -2 * r, 4 * r, 4 * r);
      circle(0.82, '#e4f6ff', true);
  }
  if (leaving) line(COLOUR.drained, [-r * 0.5, r * 1.35], [r * 0.5, r * 1.35]);
}

// ray draws one link from x0 to x1 at y by its class; k is the size of a node.
export function ray(g, kind, x0, x1, y, k, deficit = 0, lift = 0) {
  const mid = (x0 + x1) / 2, top = y - Math.abs(lift);
  const path = () => { g.beginPath(); g.moveTo(x0, y); if (lift) g.quadraticCurveTo(mid, top - Math.abs(lift), x1, y); else g.lineTo(x1, y); };
  g.lineCap = 'butt';
  switch (kind) {
    case LIGHT.lit:
      path(); g.strokeStyle = COLOUR.lit; g.globalAlpha = 0.2 * (1 - deficit / 40); g.lineWidth = k * 0.75; g.stroke();
      g.globalAlpha = 1 - Math.min(0.6, deficit / 30); g.lineWidth = Math.max(1, k * 0.2); g.stroke(); g.globalAlpha = 1; break;
    case LIGHT.bypass:
      path(); g.strokeStyle = COLOUR.bypass; g.globalAlpha = 0.22; g.lineWidth = k * 0.75; g.stroke();
      g.globalAlpha = 1; g.lineWidth = Math.max(1.2, k * 0.24); g.stroke();
      g.fillStyle = COLOUR.bypass; g.beginPath(); { const d = Math.max(2, k * 0.42); g.moveTo(mid, top - d); g.lineTo(mid + d, top); g.lineTo(mid, top + d); g.lineTo(mid - d, top); } g.fill(); break;
    case LIGHT.moving:
      path(); g.strokeStyle = COLOUR.moving; g.lineWidth = Math.max(1.2, k * 0.26); g.setLineDash([k * 0.55, k * 0.4]); g.stroke(); g.setLineDash([]); break;
    case LIGHT.waiting:
      path(); g.strokeStyle = COLOUR.wait; g.lineWidth = Math.max(1, k * 0.2); g.setLineDash([Math.max(1, k * 0.14), k * 0.34]); g.stroke(); g.setLineDash([]); break;
  }
}

// hook draws a side in loopback: light that turns back.
export function hook(g, x, y, k, right, colour = COLOUR.closed) {
  const d = right ? 1 : -1;
  g.strokeStyle = colour; g.lineWidth = Math.max(1.1, k * 0.22); g.lineCap = 'round';
  g.beginPath(); g.moveTo(x + d * k * 0.7, y - k * 0.5); g.lineTo(x + d * k * 1.6, y - k * 0.5);
  g.arc(x + d * k * 1.6, y, k * 0.5, -Math.PI / 2, Math.PI / 2, !right); g.lineTo(x + d * k * 0.7, y + k * 0.5); g.stroke();
}

const STRIP = ['rgba(112,131,154,.13)', 'rgba(70,140,190,.13)', 'rgba(255,176,0,.15)', 'rgba(255,106,31,.22)'];
const STRIPEDGE = ['rgba(112,131,154,.35)', '', 'rgba(255,176,0,.6)', 'rgba(255,106,31,.9)'];

export class FabricCanvas {
  constructor(stage, picture, { open = () => {}, select = () => {} } = {}) {
    this.stage = stage; this.p = picture; this.open = open; this.onSelect = select;
    this.canvas = document.createElement('canvas'); this.over = document.createElement('canvas');
    this.tip = document.createElement('div'); this.tip.className = 'tip'; this.tip.hidden = true;
    this.canvas.ariaHidden = 'true'; this.over.role = 'img';
    stage.append(this.canvas, this.over, this.tip);
    this.g = this.canvas.getContext('2d', { alpha: true }); this.o = this.over.getContext('2d');
    this.selected = -1; this.hover = -1; this.dirty = null; this.flash = new Map(); this.times = [];
    this.over.addEventListener('pointermove', (e) => this.point(this.at(e)));
    this.over.addEventListener('pointerleave', () => this.point(-1));
    this.over.addEventListener('click', (e) => { const n = this.at(e); if (n >= 0) this.open(n); });
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(stage);
    this.resize();
    this.said();
  }
  // said is what is drawn, for who does not see it
  said() {
    const n = this.selected;
    this.over.ariaLabel = n < 0 ? `the ${this.p.nodes} nodes of the fabric in their rings; the arrows choose one` : describe(this.p, n).map((x) => x.textContent ?? x).join(' ');
  }
  close() { this.sized.disconnect(); this.closed = true; }

  resize() {
    const box = this.stage.getBoundingClientRect(), n = this.p.nodes;
    if (!box.width || !box.height || !n) return;
    this.w = box.width; this.h = box.height; this.scale = devicePixelRatio || 1;
    for (const c of [this.canvas, this.over]) { c.width = Math.round(this.w * this.scale); c.height = Math.round(this.h * this.scale); }
    let best = 0; // the pitch that fills the stage: rows are 1.75 pitches high, for the arcs
    for (let cols = 1; cols <= n; cols++) {
      const rows = Math.ceil(n / cols), pitch = Math.min(this.w / (cols + 0.6), this.h / (rows * 1.75 + 0.3), 64);
      if (pitch > best + 1e-6) { best = pitch; this.cols = cols; }
      if (this.w / cols < best) break;
    }
    this.rows = Math.ceil(n / this.cols);
    this.px = Math.min(this.w / (this.cols + 0.6), best * 1.6);
    this.py = Math.min(this.h / (this.rows + 0.2), this.px * 2.4, best * 2.6);
    this.r = Math.max(1.4, Math.min(best * 0.21, 11));
    this.x0 = (this.w - this.cols * this.px) / 2 + this.px / 2;
    this.y0 = Math.max(0, (this.h - this.rows * this.py) / 2) * 0.5 + this.py * 0.66;
    this.atlas();
    this.redraw(null);
  }

  atlas() { // every node's shape once
    const size = Math.ceil(this.r * 4.4 * this.scale), c = this.shapes = document.createElement('canvas');
    c.width = size * 8; c.height = size * 3;
    const g = c.getContext('2d');
    for (let s = 0; s < 8; s++) for (let v = 0; v < 3; v++) {
      g.setTransform(this.scale, 0, 0, this.scale, (s + 0.5) * size, (v + 0.5) * size);
      stamp(g, s, v === 1, v === 2, this.r);
    }
    this.size = size;
  }

  place(n) { return [this.x0 + (n % this.cols) * this.px, this.y0 + Math.floor(n / this.cols) * this.py]; }
  at(e) {
    const b = this.over.getBoundingClientRect(), col = Math.round((e.clientX - b.left - this.x0) / this.px), row = Math.round((e.clientY - b.top - this.y0) / this.py);
    const n = row * this.cols + col;
    return col >= 0 && col < this.cols && row >= 0 && n < this.p.nodes ? n : -1;
  }

  // changed marks rows; null: all. Those who changed light up for a moment.
  redraw(nodes, flash) {
    if (nodes === null) this.dirty = 'all';
    else if (this.dirty !== 'all') {
      this.dirty ||= new Set();
      for (const n of nodes) this.dirty.add(Math.floor(n / this.cols));
    }
    if (flash && nodes && nodes.length < 400) { const until = performance.now() + 1400; for (const n of nodes) this.flash.set(n, until); }
    if (!this.asked) { this.asked = true; requestAnimationFrame(() => this.frame()); }
  }

  frame() {
    this.asked = false;
    if (this.closed || !this.g || !this.cols) return;
    const begin = performance.now(), whole = this.dirty === 'all';
    if (this.dirty) {
      const g = this.g;
      g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
      if (this.dirty === 'all' || this.dirty.size * 2 > this.rows) {
        g.clearRect(0, 0, this.w, this.h);
        this.draw(0, this.rows - 1);
      } else for (const row of this.dirty) {
        const top = this.y0 + (row - 0.66) * this.py;
        g.save(); g.beginPath(); g.rect(0, top, this.w, this.py); g.clip(); g.clearRect(0, top, this.w, this.py);
        this.draw(row, row); g.restore();
      }
      this.dirty = null;
    }
    this.overlay();
    if (whole) this.times.push(performance.now() - begin); // for who measures
    if (this.times.length > 2000) this.times.splice(0, 1000);
  }

  draw(first, last) {
    const g = this.g, p = this.p, end = Math.min(p.nodes, (last + 1) * this.cols), begin = first * this.cols;
    this.strips(begin, end);
    this.links(begin, end);
    const size = this.size, half = size / 2 / this.scale, side = size / this.scale;
    const small = this.r < 3; // then discs are squares, which cost least
    if (small) {
      g.fillStyle = '#e4f6ff';
      const d = this.r * 1.5;
      for (let n = begin; n < end; n++) if (p.standing[n] === 1 && p.ring[n] && !p.leaving[n]) g.fillRect(this.x0 + (n % this.cols) * this.px - d / 2, this.y0 + Math.floor(n / this.cols) * this.py - d / 2, d, d);
    }
    for (let n = begin; n < end; n++) {
      if (small && p.standing[n] === 1 && p.ring[n] && !p.leaving[n]) continue;
      const s = p.standing[n], v = p.leaving[n] ? 2 : s === 1 && !p.ring[n] ? 1 : 0;
      g.drawImage(this.shapes, s * size, v * size, size, size, this.x0 + (n % this.cols) * this.px - half, this.y0 + Math.floor(n / this.cols) * this.py - half, side, side);
    }
    if (this.px >= 24) this.names(begin, end);
  }

  strips(begin, end) { // a band under each run of a ring's members in a row
    const g = this.g, p = this.p, seen = new Set();
    for (let n = begin; n < end; n++) if (p.ring[n]) seen.add(p.ring[n]);
    const tall = Math.min(this.py * 0.62, this.r * 4.2), pad = Math.min(this.px * 0.42, this.r * 2);
    for (const id of seen) {
      const ring = p.rings.get(id);
      if (!ring) continue;
      for (let k = 0; k < ring.nodes.length;) {
        const row = Math.floor(ring.nodes[k] / this.cols);
        let j = k;
        while (j + 1 < ring.nodes.length && Math.floor(ring.nodes[j + 1] / this.cols) === row) j++;
        if (ring.nodes[k] >= begin && ring.nodes[k] < end) {
          const a = this.place(Math.min(ring.nodes[k], ring.nodes[j])), b = this.place(Math.max(ring.nodes[k], ring.nodes[j]));
          g.fillStyle = STRIP[ring.state];
          if (this.r > 4) {
            g.beginPath(); g.roundRect(a[0] - pad, a[1] - tall / 2, b[0] - a[0] + 2 * pad, tall, tall / 2); g.fill();
            if (STRIPEDGE[ring.state]) { g.strokeStyle = STRIPEDGE[ring.state]; g.lineWidth = 1; g.setLineDash(ring.state === 3 ? [4, 3] : []); g.stroke(); g.setLineDash([]); }
          } else g.fillRect(a[0] - pad, a[1] - tall / 2, b[0] - a[0] + 2 * pad, tall);
          if (this.px >= 14 && !k) { g.fillStyle = COLOUR.dim; g.font = `${Math.min(11, this.px * 0.42)}px system-ui,sans-serif`; g.textAlign = 'left'; g.fillText((this.px > 22 ? 'ring ' : '') + id, a[0] - pad + 3, a[1] - tall / 2 - 3); }
        }
        k = j + 1;
      }
    }
  }

  links(begin, end) {
    const g = this.g, p = this.p, k = this.r, straight = [[], [], [], []];
    this.arcs = [];
    for (let n = begin; n < end; n++) {
      const right = p.right[n], left = p.left[n], row = Math.floor(n / this.cols), x = this.x0 + (n - row * this.cols) * this.px, y = this.y0 + row * this.py;
      if (right === LIGHT.closed) hook(g, x, y, k, true);
      if (left === LIGHT.closed) hook(g, x, y, k, false);
      const m = p.next[n];
      if (m >= 0) {
        // both ends must agree that it is lit; else the worse is shown
        let kind = right, deficit = Math.max(p.deficit[n], p.deficit[m]);
        if (kind === LIGHT.lit && p.left[m] !== LIGHT.lit) kind = p.left[m] === LIGHT.none ? LIGHT.waiting : p.left[m];
        if (kind === LIGHT.lit || kind === LIGHT.moving || kind === LIGHT.waiting) {
          const skip = Math.abs(m - n) > 1;
          if (Math.floor(m / this.cols) === row) {
            if (kind === LIGHT.lit && !skip) straight[Math.min(3, deficit >> 3)].push(x, y, this.px);
            else ray(g, kind, x, this.place(m)[0], y, k, deficit, skip ? this.py * 0.26 : 0);
          } else if (kind === LIGHT.lit) straight[Math.min(3, deficit >> 3)].push(x, y, this.px * 0.55);
          else ray(g, kind, x, x + this.px * 0.55, y, k);
        }
      }
      const q = p.prev[n]; // the other half of a link from the row above
      if (q >= 0 && Math.floor(q / this.cols) !== row && left === LIGHT.lit) straight[0].push(x - this.px * 0.55, y, this.px * 0.55);
      if (right === LIGHT.bypass && p.rightPeer[n] >= 0) this.arc(p.rightPeer[n], x, y);
      else if (left === LIGHT.bypass && p.leftPeer[n] >= 0 && p.rightPeer[p.leftPeer[n]] !== n) this.arc(n, ...this.place(p.leftPeer[n]));
    }
    if (this.arcs.length) { // small ones together
      const a = this.arcs, up = this.py * 0.42, d = Math.max(1.6, k);
      g.strokeStyle = g.fillStyle = COLOUR.bypass; g.lineWidth = 1.4; g.lineCap = 'butt';
      g.beginPath();
      for (let i = 0; i < a.length; i += 3) { g.moveTo(a[i], a[i + 2]); g.lineTo(a[i] + 1, a[i + 2] - up); g.lineTo(a[i + 1] - 1, a[i + 2] - up); g.lineTo(a[i + 1], a[i + 2]); }
      g.stroke();
      for (let i = 0; i < a.length; i += 3) g.fillRect((a[i] + a[i + 1]) / 2 - d / 2, a[i + 2] - up - d / 2, d, d);
    }
    // light runs level: rectangles, which cost least
    const glow = k * 0.8, core = Math.max(1, k * 0.24);
    straight.forEach((list, weak) => {
      g.fillStyle = `rgba(127,211,255,${0.2 - weak * 0.04})`;
      if (k > 2) for (let i = 0; i < list.length; i += 3) g.fillRect(list[i], list[i + 1] - glow / 2, list[i + 2], glow);
      g.fillStyle = `rgba(127,211,255,${0.95 - weak * 0.18})`;
      for (let i = 0; i < list.length; i += 3) g.fillRect(list[i], list[i + 1] - core / 2, list[i + 2], core);
    });
  }

  arc(m, x, y) { // half of it where the row ends
    const [x1, y1] = this.place(m), far = Math.abs(y1 - y) > 1;
    if (this.r >= 3) ray(this.g, LIGHT.bypass, x, far ? x + this.px * 0.6 : x1, y, this.r, 0, this.py * (far ? 0.12 : 0.24));
    else this.arcs.push(x, far ? x + this.px * 0.6 : x1, y);
  }

  names(begin, end) {
    const g = this.g;
    g.font = `${Math.min(11, this.px * 0.3)}px system-ui,sans-serif`; g.textAlign = 'center'; g.fillStyle = COLOUR.dim;
    for (let n = begin; n < end; n++) { const [x, y] = this.place(n); g.fillText(n, x, y + this.r * 2.1 + 9); }
  }

  overlay() {
    const g = this.o, now = performance.now();
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    g.clearRect(0, 0, this.w, this.h);
    for (const [n, until] of this.flash) {
      const left = (until - now) / 1400;
      if (left <= 0) { this.flash.delete(n); continue; }
      const [x, y] = this.place(n);
      g.globalAlpha = left; g.strokeStyle = '#fff'; g.lineWidth = 1.2;
      g.beginPath(); g.arc(x, y, this.r * (1.4 + 2.2 * (1 - left)), 0, 7); g.stroke();
    }
    g.globalAlpha = 1;
    const ring = this.p.rings.get(this.p.ring[this.hover >= 0 ? this.hover : this.selected]);
    if (ring) {
      g.strokeStyle = 'rgba(127,211,255,.8)'; g.lineWidth = 1;
      for (const n of ring.nodes) { const [x, y] = this.place(n); g.beginPath(); g.arc(x, y, this.r * 1.5, 0, 7); g.stroke(); }
    }
    if (this.selected >= 0) {
      const [x, y] = this.place(this.selected), d = this.r * 2.1;
      g.strokeStyle = '#fff'; g.lineWidth = 1.5; g.strokeRect(x - d, y - d, 2 * d, 2 * d);
    }
    if (this.flash.size && !this.asked) { this.asked = true; requestAnimationFrame(() => this.frame()); }
  }

  point(n) {
    if (n === this.hover) return;
    this.hover = n;
    this.over.style.cursor = n >= 0 ? 'pointer' : '';
    this.tip.hidden = n < 0;
    if (n >= 0) {
      const [x, y] = this.place(n);
      this.tip.replaceChildren(...describe(this.p, n));
      this.tip.style.left = Math.max(0, Math.min(this.w - 240, x + this.r * 2.4)) + 'px';
      this.tip.style.top = Math.max(0, Math.min(this.h - 66, y + this.r * 2)) + 'px';
    }
    this.redraw([]);
  }
  select(n) {
    this.selected = n < 0 ? -1 : Math.max(0, Math.min(this.p.nodes - 1, n));
    this.said();
    this.onSelect(this.selected);
    this.hover = -2; this.point(this.selected);
    this.redraw([]);
  }
}

const WORDS = { unheard: 'not heard yet', well: 'well', offline: 'agent silent', dead: 'dark: its neighbours lost its light', isolated: 'own optics failed', host_down: 'host down', drained: 'drained', left_out: 'cannot be planned with' };
const SIDES = ['the ring ends here', 'lit', 'bypass', 'switching', 'in loopback', 'not lit yet'];

export function standingWords(p, n) {
  const s = ['unheard', 'well', 'offline', 'dead', 'isolated', 'host_down', 'drained', 'left_out'][p.standing[n]];
  return s === 'well' && !p.ring[n] ? 'spare' : WORDS[s] + (p.leaving[n] ? ', being drained' : '');
}

export function describe(p, n) {
  const b = document.createElement('b'), ring = p.rings.get(p.ring[n]);
  b.textContent = `node ${p.called(n)}`;
  const out = [b, ` ${standingWords(p, n)}`];
  if (ring) {
    const side = (s, peer, q) => SIDES[s] + (s === LIGHT.bypass ? ` to node ${peer}` : s === LIGHT.lit ? ` to node ${q}` : '');
    out.push(document.createElement('br'), `ring ${ring.id}, member ${ring.nodes.indexOf(n) + 1} of ${ring.nodes.length}`,
      document.createElement('br'), `left ${side(p.left[n], p.leftPeer[n], p.prev[n])}; right ${side(p.right[n], p.rightPeer[n], p.next[n])}`);
    if (p.deficit[n]) out.push(`; ${(p.deficit[n] / 10).toFixed(1)} dB below expected`);
  }
  return out;
}
