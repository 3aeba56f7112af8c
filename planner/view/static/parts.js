// Small parts that pages are made of.
import { RING } from './wire.js';

// el makes an element: el('b', 'text'), el('td.n', {title: 'x'}, child, ..).
export function el(what, ...rest) {
  const [tag, ...classes] = what.split('.'), e = document.createElement(tag || 'div');
  if (classes.length) e.className = classes.join(' ');
  for (const x of rest.flat(Infinity)) {
    if (x === null || x === undefined || x === false) continue;
    if (typeof x === 'object' && !(x instanceof Node)) Object.assign(e, x);
    else e.append(x);
  }
  return e;
}

// causeWords are the causes as proto.Cause.Words has them.
const CAUSES = { late_light: 'light came after the deadline', no_candidate: 'no neighbour in reach' };
export const causeWords = (c) => CAUSES[c] ?? c.replaceAll('_', ' ');

export const link = (kind, id, text) => el('a', { href: `#/${kind}/${id}` }, text ?? `${kind} ${id}`);
const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const day = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false, timeZoneName: 'short' });
export const clock = (ms) => ms ? time.format(ms) : '-';
export const date = (ms) => ms ? day.format(ms) : '-';
export const ago = (ms) => { const s = Math.max(0, (Date.now() - ms) / 1000); return s < 90 ? `${s.toFixed(0)} s ago` : s < 5400 ? `${(s / 60).toFixed(0)} min ago` : s < 129600 ? `${(s / 3600).toFixed(0)} h ago` : `${(s / 86400).toFixed(0)} days ago`; };
export const dBm = (m) => m === null || m === undefined ? '-' : `${(m / 1000).toFixed(2)} dBm`;
export const plural = (n, one, many) => `${n} ${n === 1 ? one : many ?? one + 's'}`;

const RINGCLASS = ['wait', 'lit', 'bypass', 'dead'];
export const ringPill = (state) => { const k = typeof state === 'number' ? state : RING.indexOf(state); return el(`span.pill.${RINGCLASS[k]}`, RING[k].replace('_', ' ')); };

// noLoss says what it means that the forecast has no loss that is not made good
export const noLoss = ({ picture: p }) => !p.rings.size ? el('span.dim', 'No ring stands, so none can break.') : !p.serving || !p.linked ? el('span.dim', 'Not known: nothing is planned now.')
  : el('span.good', 'The loss of any one node or fibre is made good, if fibres that no ring uses are whole.');

export async function get(path) {
  const got = await fetch('/view/' + path);
  const body = await got.json();
  if (!got.ok) throw new Error(body.error?.message ?? got.statusText);
  return body;
}

// keep calls f now, and again soon after something has changed, one call at a time.
export function keep(f, pause = 700) {
  let due = 0, busy = false, closed = false;
  const run = async () => {
    due = 0;
    if (busy) { soon(); return; }
    busy = true;
    try { await f(); } catch (e) { reportError(e); }
    busy = false;
  };
  const soon = () => { if (!due && !closed) due = setTimeout(run, pause); };
  run();
  return { soon, close() { closed = true; clearTimeout(due); } };
}

// fit makes a canvas as large as it is shown, in the pixels of the screen.
export function fit(canvas, height) {
  const w = canvas.clientWidth || canvas.parentElement.clientWidth, h = height ?? canvas.clientHeight, s = devicePixelRatio || 1;
  if (height) canvas.style.height = height + 'px';
  canvas.width = Math.round(w * s); canvas.height = Math.round(h * s);
  const g = canvas.getContext('2d');
  g.setTransform(s, 0, 0, s, 0, 0);
  return [g, w, h];
}

// lineToPaste shows what a person would type.
export function lineToPaste(line, about) {
  const code = document.getElementById('line');
  code.textContent = `${line} -fabric ${about.name} -broker ${about.broker}`;
  code.onclick = async () => {
    getSelection().selectAllChildren(code);
    try { await navigator.clipboard.writeText(code.textContent); code.classList.add('copied'); setTimeout(() => code.classList.remove('copied'), 900); } catch { /* it is selected */ }
  };
}

// sentences are those of ocsctl why: what holds now first, then what led to it.
export function sentences(lines) {
  const now = lines.filter((l) => !l.seq && l.at_ms), was = lines.filter((l) => l.seq || !l.at_ms).reverse();
  return el('table.why', [...now, ...was].map((l) => el(l.seq ? 'tr' : 'tr.now', el('td', { title: l.seq ? date(l.at_ms) : '' }, l.seq ? clock(l.at_ms) : l.at_ms ? 'now' : 'agent'), el('td', l.place),
    el('td', l.text, ' ', el('span.rule', l.rule, l.generation ? `, generation ${l.generation}` : '', l.cause !== 'none' ? `, ${causeWords(l.cause)}` : '')))));
}
