// Frames of the planner (package view, wire.go) and the picture they make.

export const LIGHT = { none: 0, lit: 1, bypass: 2, moving: 3, closed: 4, waiting: 5 };
export const STANDING = ['unheard', 'well', 'offline', 'dead', 'isolated', 'host_down', 'drained', 'left_out'];
export const RING = ['forming', 'in_service', 'degraded', 'down'];

class Reader {
  constructor(bytes) { this.b = bytes; this.at = 0; }
  get more() { return this.at < this.b.length; }
  byte() { return this.b[this.at++]; }
  u() { // exact to 2^53
    let n = 0, scale = 1, c;
    do { c = this.b[this.at++]; n += (c & 127) * scale; scale *= 128; } while (c & 128);
    return n;
  }
  z() { const n = this.u(); return n % 2 ? -(n + 1) / 2 : n / 2; }
}

// Picture is what is drawn: typed arrays by node, and rings by id.
export class Picture {
  constructor({ nodes, node_names }) {
    this.nodes = nodes;
    this.names = node_names ?? [];
    this.standing = new Uint8Array(nodes);
    this.leaving = new Uint8Array(nodes);
    this.left = new Uint8Array(nodes);
    this.right = new Uint8Array(nodes);
    this.deficit = new Uint8Array(nodes); // 0.1 dB
    this.leftPeer = new Int32Array(nodes).fill(-1);
    this.rightPeer = new Int32Array(nodes).fill(-1);
    this.ring = new Uint32Array(nodes);
    this.next = new Int32Array(nodes).fill(-1); // planned neighbour on the right
    this.prev = new Int32Array(nodes).fill(-1);
    this.rings = new Map();
    this.seq = -1; this.term = 0; this.last = 0; this.wall = 0; this.linked = false; this.serving = false; this.switches = [0, 0];
  }
  // called is a node's number, and its name where it has one
  called(n) { return this.names[n] ? `${n}, ${this.names[n]}` : String(n); }

  // take lays a frame over it and gives the nodes that changed; null: a frame is missing.
  take(bytes) {
    const r = new Reader(bytes), kind = r.byte(), flags = r.byte(), seq = r.u();
    if (kind === 2 && seq <= this.seq) return [];
    if (kind === 2 && seq !== this.seq + 1) return null;
    this.seq = seq; this.linked = !!(flags & 1); this.serving = !!(flags & 2);
    this.term = r.u(); this.last = r.u(); this.wall = r.u(); this.switches = [r.u(), r.u()];
    const changed = [];
    for (let n = r.u(), id = 0; n > 0; n--) {
      id += r.u();
      const s = r.byte(), sides = r.byte();
      this.standing[id] = s & 15; this.leaving[id] = s >> 4;
      this.left[id] = sides & 15; this.right[id] = sides >> 4;
      this.deficit[id] = r.byte();
      this.leftPeer[id] = this.left[id] === LIGHT.bypass ? id + r.z() : -1;
      this.rightPeer[id] = this.right[id] === LIGHT.bypass ? id + r.z() : -1;
      changed.push(id);
    }
    if (kind === 1) { this.rings.clear(); this.ring.fill(0); this.next.fill(-1); this.prev.fill(-1); }
    const strips = [];
    for (let n = r.u(), id = 0; n > 0; n--) {
      id += r.u();
      const s = { id, state: r.byte(), gen: r.u(), size: r.u(), nodes: new Array(r.u()) };
      for (let k = 0, at = 0; k < s.nodes.length; k++) s.nodes[k] = at = k ? at + r.z() : r.u();
      strips.push(s);
    }
    for (const s of strips) { // those who leave first: another ring of this frame may have them
      const old = this.rings.get(s.id);
      if (old) for (const n of old.nodes) if (this.ring[n] === s.id) { this.ring[n] = 0; this.next[n] = this.prev[n] = -1; changed.push(n); }
      this.rings.delete(s.id);
    }
    for (const s of strips) {
      if (!s.nodes.length) continue;
      this.rings.set(s.id, s);
      s.nodes.forEach((n, k) => {
        this.ring[n] = s.id; this.prev[n] = k ? s.nodes[k - 1] : -1; this.next[n] = k + 1 < s.nodes.length ? s.nodes[k + 1] : -1;
        changed.push(n);
      });
    }
    return changed;
  }

  // count is what there is, for the legend and the head.
  count() {
    const c = { nodes: this.nodes, standing: new Array(STANDING.length).fill(0), spare: 0, leaving: 0, lit: 0, bypass: 0, moving: 0, closed: 0, waiting: 0, links: 0, confirmed: 0, rings: this.rings.size, state: [0, 0, 0, 0] };
    for (let i = 0; i < this.nodes; i++) {
      c.standing[this.standing[i]]++;
      if (!this.ring[i] && this.standing[i] === 1) c.spare++;
      if (this.leaving[i]) c.leaving++;
      const n = this.next[i];
      if (n >= 0) {
        c.links++;
        if (this.right[i] === LIGHT.lit && this.left[n] === LIGHT.lit) c.confirmed++;
      }
      for (const s of [this.left[i], this.right[i]]) {
        if (s === 2) c.bypass++; else if (s === 3) c.moving++; else if (s === 4) c.closed++; else if (s === 5) c.waiting++; else if (s === 1) c.lit++;
      }
    }
    for (const r of this.rings.values()) c.state[r.state]++;
    return c;
  }
}

// entries reads the journal in its short form, from the earliest on.
export function entries(bytes) {
  const r = new Reader(bytes), out = [];
  let seq = 0, at = 0;
  while (r.more) {
    seq += r.u(); at += r.u();
    const e = { seq, at, kind: r.byte(), severity: r.byte() };
    const side = r.byte();
    e.right = side & 1; e.bypassed = side & 2; e.resolved = side & 4;
    e.node = r.u() - 1; e.ring = r.u(); e.peer = e.node + r.z();
    out.push(e);
  }
  return out;
}

// Stream keeps a picture up to date and says so: changed(nodes), state(how), and
// edited(about) when it is of another fabric from now on.
export class Stream {
  constructor(about, changed, state, edited) {
    this.picture = new Picture(about); this.edition = about.edition;
    this.changed = changed; this.state = state; this.edited = edited;
    this.source = null; this.heard = 0; this.retry = 0;
    document.addEventListener('visibilitychange', () => document.hidden ? this.stop() : this.start());
    setInterval(() => { if (!document.hidden && performance.now() - this.heard > 6000) { this.state('silent'); this.start(); } }, 1000);
    this.start();
  }
  stop() { this.source?.close(); this.source = null; }
  async start() {
    const turn = ++this.retry;
    this.stop();
    this.heard = performance.now();
    try {
      const got = await fetch('/view/snapshot');
      if (!got.ok) throw new Error(await got.text());
      const bytes = new Uint8Array(await got.arrayBuffer()), edition = got.headers.get('Ringlight-Fabric');
      let about = null;
      if (edition !== this.edition) {
        about = await (await fetch('/view/fabric')).json();
        if (about.edition !== edition) throw new Error('edited meanwhile');
      }
      if (turn !== this.retry) return;
      if (about) { this.picture = new Picture(about); this.edition = edition; this.edited(about); }
      this.picture.take(bytes);
      this.changed(null);
    } catch { if (turn === this.retry) { this.state('silent'); setTimeout(() => turn === this.retry && this.start(), 1000); } return; }
    const s = this.source = new EventSource('/view/stream?from=' + this.picture.seq);
    const alive = () => { this.heard = performance.now(); this.state('live'); };
    s.addEventListener('alive', alive);
    s.addEventListener('again', () => this.start());
    s.onerror = () => { if (this.source === s) { this.state('silent'); this.stop(); setTimeout(() => turn === this.retry && this.start(), 1000); } };
    s.onmessage = (m) => {
      alive();
      const nodes = this.picture.take(Uint8Array.from(atob(m.data), (c) => c.charCodeAt(0)));
      if (nodes === null) this.start(); else this.changed(nodes);
    };
  }
}
