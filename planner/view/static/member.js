// A ring, a node, and why.
import { LIGHT, STANDING } from './wire.js';
import { COLOUR, stamp, ray, hook, standingWords } from './draw.js';
import { el, get, keep, link, dBm, fit, ringPill, sentences, plural, causeWords } from './parts.js';

const failure = (e) => el('p.dead', e.message);

// endOf finds what a node measures on its side towards a neighbour.
function endOf(node, side) {
  const r = node.reported, s = r?.sides.find((x) => x.side === side);
  if (!s || s.current < 0) return null;
  const c = (r.rings[0]?.[side] ?? [])[s.current];
  return c ? { candidate: c, bundle: r.bundles.find((b) => b.bundle === c.bundle), side: s } : null;
}

export function ringPage(root, app, id) {
  const head = el('div.head'), canvas = el('canvas.drawn', { role: 'img', ariaLabel: `ring ${id}: its members in order, and the light between them` }), members = el('section'), sheet = el('div.sheet', head, el('section', canvas), members);
  root.append(sheet);
  let data = null;
  const draw = () => {
    if (!data || !canvas.clientWidth) return; // no answer yet, or the page was left before it came
    const p = app.picture, nodes = data.ring.nodes, index = new Map(nodes.map((n, i) => [n, i]));
    const perRow = Math.min(nodes.length, Math.max(4, Math.floor(canvas.clientWidth / 86))), rows = Math.ceil(nodes.length / perRow), tall = 152;
    const [g, w] = fit(canvas, rows * tall + 10), step = w / perRow, r = 13;
    g.clearRect(0, 0, w, rows * tall + 10);
    const at = (i) => [(i % perRow + 0.5) * step, Math.floor(i / perRow) * tall + 78];
    const across = (i, j, draw) => { // a link may go over the end of a row
      const [x, y] = at(i), [x1, y1] = at(j);
      if (y === y1) draw(x, x1, y); else { draw(x, Math.min(w, x + step * 0.5), y); draw(Math.max(0, x1 - step * 0.5), x1, y1); }
    };
    g.lineWidth = 1; // fibres that hang there, used or not
    for (const [i, list] of data.fibres.entries()) for (const f of list) {
      const j = index.get(f.node);
      if (j === undefined || j <= i || j === i + 1) continue;
      across(i, j, (x, x1, y) => { const depth = 16 + 13 * (j - i); g.strokeStyle = '#223143'; g.beginPath(); g.moveTo(x, y + r); g.bezierCurveTo(x + 6, y + r + depth, x1 - 6, y + r + depth, x1, y + r); g.stroke(); });
    }
    nodes.forEach((n, i) => {
      const [x, y] = at(i), m = nodes[i + 1];
      if (m !== undefined) {
        let kind = p.right[n]; if (kind === LIGHT.lit && p.left[m] !== LIGHT.lit) kind = p.left[m] || LIGHT.waiting;
        if (kind === LIGHT.lit || kind === LIGHT.moving || kind === LIGHT.waiting) across(i, i + 1, (a, b, c) => ray(g, kind, a, b, c, r, Math.max(p.deficit[n], p.deficit[m])));
      }
      const to = p.right[n] === LIGHT.bypass ? index.get(p.rightPeer[n]) : undefined;
      if (to !== undefined) across(i, to, (a, b, c) => ray(g, LIGHT.bypass, a, b, c, r, 0, 22));
      if (p.right[n] === LIGHT.closed) hook(g, x, y, r, true);
      if (p.left[n] === LIGHT.closed) hook(g, x, y, r, false);
      if (i === 0 || i === nodes.length - 1) hook(g, x, y, r * 0.9, i > 0, COLOUR.lit); // a ring is a line that turns back at both ends
    });
    g.textAlign = 'center';
    nodes.forEach((n, i) => {
      const [x, y] = at(i), node = data.nodes.find((k) => k.node === n);
      g.save(); g.translate(x, y); stamp(g, p.standing[n], false, p.leaving[n], r); g.restore();
      g.fillStyle = '#fff'; g.font = '600 12.5px system-ui,sans-serif'; g.fillText(n, x, y - 58);
      for (const [side, dx] of [['left', -1], ['right', 1]]) {
        const e = node && endOf(node, side);
        if (!e?.bundle || e.bundle.measured_mdbm === null) continue;
        const down = (e.bundle.expected_mdbm ?? e.bundle.measured_mdbm) - e.bundle.measured_mdbm, bx = x + dx * 15, height = 30;
        g.fillStyle = '#16202c'; g.fillRect(bx - 2, y - 51, 4, height);
        const part = Math.max(0.03, Math.min(1, 1 - down / 3000));
        g.fillStyle = down > 1200 ? COLOUR.dead : down > 400 ? COLOUR.bypass : COLOUR.lit; g.fillRect(bx - 2, y - 51 + height * (1 - part), 4, height * part);
        g.fillStyle = COLOUR.dim; g.font = '10.5px system-ui,sans-serif'; g.fillText((e.bundle.measured_mdbm / 1000).toFixed(1), x + dx * 21, y - 10 + (dx > 0 ? 36 : 36));
      }
    });
  };
  const told = keep(async () => {
    try { data = await get(`ring/${id}`); } catch (e) { head.replaceChildren(el('h1', `Ring ${id}`)); members.replaceChildren(failure(e)); data = null; return; }
    const r = data.ring;
    head.replaceChildren(el('h1', `Ring ${id}`), ringPill(r.state), el('span.dim', `${r.links_confirmed} of ${r.links} links lit by both ends, ${r.gpus} GPUs, generation ${r.generation}`));
    const side = (n, name) => { const e = endOf(n, name); if (!e) { const s = n.reported?.sides.find((x) => x.side === name); return el('td.dim', s ? { end: 'turns back here', closed: 'in loopback' }[s.state] ?? s.state : '-'); }
      const on = e.side.current !== e.side.working; return el('td', on ? el('span.bypass', 'bypass to ') : 'to ', link('node', e.candidate.peer), el('span.dim', ` over ${e.candidate.bundle}/${e.candidate.path}  `), dBm(e.bundle?.measured_mdbm), el('span.faint', ` of ${dBm(e.bundle?.expected_mdbm)}`)); };
    members.replaceChildren(el('h2', 'Members, left to right'), el('table', el('tr', ['shape', 'node', 'stands', 'left', 'right', 'losses'].map((h) => el('th', h))),
      r.nodes.map((n, i) => { const node = data.nodes.find((k) => k.node === n); return el('tr', el('td.faint', String(i + 1)), el('td', link('node', n)), el('td', standingWords(app.picture, n)), side(node, 'left'), side(node, 'right'), el('td.n', String((node.reported?.bundles ?? []).reduce((a, b) => a + b.flaps, 0)))); })));
    draw();
  }, 500);
  const sized = new ResizeObserver(draw);
  sized.observe(sheet);
  const again = setInterval(told.soon, 5000);
  return { line: `ocsctl ring show ${id}`, draw, changed: (nodes) => { draw(); if (nodes === null || nodes.some((n) => app.picture.ring[n] === id)) told.soon(); },
    close() { told.close(); sized.disconnect(); clearInterval(again); },
    key(e) { const all = [...app.picture.rings.keys()].sort((a, b) => a - b), to = { ArrowLeft: -1, ArrowRight: 1 }[e.key]; if (!to || !all.length) return false; location.replace(`#/ring/${all[(all.indexOf(id) + to + all.length) % all.length]}`); return true; } };
}

// gauge draws a power against what is expected, down to where the path ends.
function gauge(b) {
  const c = el('canvas', { width: 640, height: 92, ariaHidden: 'true' }); c.style.width = '320px'; c.style.height = '46px';
  const g = c.getContext('2d'); g.scale(2, 2);
  const expected = b.expected_mdbm ?? b.measured_mdbm, x = (m) => 12 + (m - expected + 3400) / 4400 * 296;
  g.fillStyle = '#141d28'; g.beginPath(); g.roundRect(12, 14, 296, 9, 4.5); g.fill();
  g.fillStyle = 'rgba(255,106,31,.35)'; g.fillRect(12, 14, x(expected - 3000) - 12, 9);
  g.fillStyle = 'rgba(255,176,0,.16)'; g.fillRect(x(expected - 3000), 14, x(expected - 400) - x(expected - 3000), 9);
  if (b.measured_mdbm !== null) {
    const at = Math.max(12, Math.min(308, x(b.measured_mdbm))), down = expected - b.measured_mdbm, colour = down > 3000 ? COLOUR.dead : down > 400 ? COLOUR.bypass : COLOUR.lit;
    const glow = g.createLinearGradient(12, 0, at, 0); glow.addColorStop(0, 'rgba(127,211,255,0)'); glow.addColorStop(1, colour);
    g.fillStyle = glow; g.globalAlpha = 0.8; g.fillRect(12, 16.5, at - 12, 4); g.globalAlpha = 1;
    g.fillStyle = colour; g.beginPath(); g.arc(at, 18.5, 5, 0, 7); g.fill();
  }
  g.strokeStyle = '#fff'; g.lineWidth = 1.2; g.beginPath(); g.moveTo(x(expected), 10); g.lineTo(x(expected), 27); g.stroke();
  g.fillStyle = COLOUR.dim; g.font = '10px system-ui,sans-serif'; g.textAlign = 'center';
  g.fillText('expected', x(expected), 38); g.fillText('\u22120.4', x(expected - 400) - 12, 38); g.fillText('path ends \u22123 dB', x(expected - 3000) + 18, 38);
  return c;
}

export function nodePage(root, app, id) {
  const head = el('div.head'), bundles = el('div.cards'), sides = el('section'), why = el('section'), alarms = el('section', { hidden: true });
  root.append(el('div.sheet', head, alarms, bundles, sides, why));
  let lines = null;
  const told = keep(async () => {
    let data;
    try { data = await get(`node/${id}`); } catch (e) { head.replaceChildren(el('h1', `Node ${id}`)); sides.replaceChildren(failure(e)); return; }
    const n = data.nodes[0], r = n.reported, p = app.picture, glyph = el('canvas', { width: 72, height: 72, ariaHidden: 'true' }), g = glyph.getContext('2d');
    glyph.style.width = glyph.style.height = '36px'; glyph.style.alignSelf = 'center';
    g.scale(2, 2); g.translate(18, 18); stamp(g, p.standing[id], !p.ring[id] && p.standing[id] === 1, p.leaving[id], 8.5);
    head.replaceChildren(glyph, el('h1', `Node ${p.called(id)}`), el('span.dim', standingWords(p, id)), n.ring ? link('ring', n.ring) : '', n.reason ? el('span.bypass', n.reason) : '', el('span.faint', `generation ${n.generation} of ${n.want} wanted${n.online ? '' : ', agent offline'}`), el('span', link('why', id, 'why (w)')));
    if (!r) { bundles.replaceChildren(el('p.dim', 'It has not reported yet.')); return; }
    bundles.replaceChildren(...r.bundles.map((b) => el('section', el('h2', `Bundle ${b.bundle}`), el('div', el('b', b.path), '  ', el(b.state === 'tuned' ? 'span.lit' : b.state === 'failed' ? 'span.dead' : 'span.moving', b.state), el('span.dim', `  ${dBm(b.measured_mdbm)} of ${dBm(b.expected_mdbm)} expected${b.cause !== 'none' ? ', ' + causeWords(b.cause) : ''}`)),
      b.measured_mdbm === null ? '' : gauge(b), el('div.dim', `${plural(b.flaps, 'loss', 'losses')} so far. Fibres: `, data.fibres[0].filter((f) => f.bundle === b.bundle).map((f, i) => [i ? ', ' : '', `${f.path} to `, link('node', f.node)])))));
    sides.replaceChildren(el('h2', 'Sides'), el('table', el('tr', ['side', 'state', 'request', 'on', 'candidates, nearest first', 'timer'].map((h) => el('th', h))), r.sides.map((s) => {
      const list = r.rings[0]?.[s.side] ?? [], left = s.until_us - r.uptime_us;
      return el('tr', el('td', s.side), el('td', s.state), el('td.dim', s.request.replaceAll('_', ' ')), el('td', s.current < 0 ? el('span.closed', s.state === 'end' ? 'turns back here' : 'loopback') : [link('node', s.peer), s.current !== s.working ? el('span.bypass', ' bypass') : '']),
        el('td', list.map((c, k) => [k ? ', ' : '', link('node', c.peer, String(c.peer)), el('span.faint', ` ${c.bundle}/${c.path}`), k === s.working ? el('span.dim', ' planned') : '', k === s.current ? el('span.lit', ' in use') : '', s.banned >> k & 1 ? el('span.dead', ' banned') : ''])),
        el('td', s.timer === 'none' ? '-' : `${s.timer.replaceAll('_', ' ')}${left > 0 ? `, ${(left / 1e6).toFixed(1)} s left at the last report` : ''}`));
    })));
    alarms.hidden = !r.alarms.length;
    alarms.replaceChildren(el('h2', 'Alarms of the node'), el('ul', r.alarms.map((a) => el('li', el('span.dead', `${a.kind.replaceAll('_', ' ')}, ${a.severity}`), ` bundle ${a.bundle}: ${a.text}`))));
  }, 400);
  const reasons = keep(async () => { try { lines = (await get(`why/${id}`)).lines; why.replaceChildren(el('h2', 'Why it is so'), sentences(lines)); } catch (e) { why.replaceChildren(failure(e)); } }, 900);
  const again = setInterval(() => { told.soon(); reasons.soon(); }, 5000);
  return { line: `ocsctl why ${id}`, changed(nodes) { if (nodes === null || nodes.includes(id)) { told.soon(); reasons.soon(); } }, close() { told.close(); reasons.close(); clearInterval(again); },
    key(e) {
      const to = { ArrowLeft: -1, ArrowRight: 1 }[e.key], ring = app.picture.ring[id];
      if (to) location.replace(`#/node/${(id + to + app.picture.nodes) % app.picture.nodes}`);
      else if (e.key === 'r' && ring) location.hash = `#/ring/${ring}`;
      else if (e.key === 'w') location.hash = `#/why/${id}`;
      else return false;
      return true;
    } };
}

export function whyPage(root, app, id, bundle) {
  const name = bundle === undefined ? `${id}` : `${id}/${bundle}`, out = el('section');
  root.append(el('div.sheet', el('div.head', el('h1', `Why ${id >= 1 << 20 ? 'switch-' + (id - (1 << 20)) : 'node ' + name}`), id < 1 << 20 ? link('node', id, 'the node') : '', el('span.dim', 'what holds now, then what led to it, the latest first')), out));
  const told = keep(async () => { try { out.replaceChildren(sentences((await get(`why/${name}`)).lines)); } catch (e) { out.replaceChildren(failure(e)); } }, 900);
  const again = setInterval(told.soon, 5000);
  return { line: `ocsctl why ${name}`, changed(nodes) { if (nodes === null || nodes.includes(id)) told.soon(); }, close() { told.close(); clearInterval(again); } };
}
export { STANDING };
