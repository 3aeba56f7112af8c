// The pages: what stands after # names one, so that every one has an address.
import { Stream, RING } from './wire.js';
import { el, ago, clock, lineToPaste } from './parts.js';
import { fabricPage } from './fabric.js';
import { ringPage, nodePage, whyPage } from './member.js';
import { nextPage } from './next.js';
import { timePage } from './time.js';

const page = document.getElementById('page'), banner = document.getElementById('banner'), go = document.getElementById('go');
const app = { about: null, stream: null, picture: null, page: null, live: 'waiting', lost: 0, selected: -1, status: null };
globalThis.ringlight = app; // for who looks on with a debugger, and for tests

const routes = [
  [/^\/?$/, fabricPage, 'fabric'], [/^\/ring\/(\d+)$/, ringPage, 'ring'], [/^\/node\/(\d+)$/, nodePage, 'node'],
  [/^\/why\/(\d+)(?:\/(\d+))?$/, whyPage, 'why'], [/^\/next$/, nextPage, 'next'], [/^\/time(?:\/(\d+))?$/, timePage, 'time'],
];

function route() {
  const path = location.hash.slice(1);
  for (const [pattern, make, name] of routes) {
    const m = pattern.exec(path);
    if (!m) continue;
    app.page?.close?.();
    page.replaceChildren();
    page.scrollTop = 0;
    document.title = `Ringlight ${app.about.name}: ${name}${m[1] ? ' ' + m[1] : ''}`;
    for (const a of document.querySelectorAll('nav a')) a.toggleAttribute('aria-current', a.dataset.page === name);
    app.page = make(page, app, ...m.slice(1).map((s) => s === undefined ? undefined : Number(s)));
    lineToPaste(app.page.line ?? 'ocsctl status', app.about);
    return;
  }
  location.replace('#/');
}

function told() {
  const out = document.getElementById('state'), p = app.picture;
  if (!p) return;
  const c = p.count(), parts = [el('b', app.about.name)];
  if (c.rings) parts.push(`  ${c.state[1]} of ${c.rings} rings in service`, c.state[2] ? `, ${c.state[2]} degraded` : '', c.state[3] ? `, ${c.state[3]} down` : '', c.state[0] ? `, ${c.state[0]} forming` : '', `  ·  ${c.confirmed} of ${c.links} links lit`);
  if (p.switches[0]) parts.push(`  ·  ${p.switches[1]} of ${p.switches[0]} switches online`);
  out.replaceChildren(...parts);
}

// what keeps the picture from being true is said across the page
function warn() {
  const p = app.picture, was = banner.textContent;
  let text = null;
  if (app.live === 'silent') text = [el('b', 'The planner does not answer.'), ` What you see is of ${p ? clock(p.wall) : 'no time at all'}. Nodes keep their light and protect it without a planner.`];
  else if (p && !p.linked) { app.lost ||= p.wall; text = [el('b', 'The broker is out of reach'), ` since ${clock(app.lost)}. What you see is of then. Nodes keep their light and protect it; nothing is planned until it is back.`]; }
  else if (p && !p.serving) text = [el('b', 'This planner is not in service:'), ' it listens, gathers or stands by, and plans nothing.'];
  if (!p || p.linked) app.lost = 0;
  banner.hidden = !text;
  if (text && text.map((x) => x.textContent ?? x).join('') !== was) banner.replaceChildren(...text);
}

document.addEventListener('keydown', (e) => {
  if (e.target === go) {
    if (e.key === 'Escape') { go.value = ''; go.blur(); }
    if (e.key !== 'Enter') return;
    const named = app.picture?.names.indexOf(go.value.trim());
    const m = named >= 0 ? [null, 'node', named] : /^\s*(?:(node|ring|why|n|r|w)\s*)?(\d+)(?:\/(\d+))?\s*$/i.exec(go.value);
    if (m) { location.hash = `#/${{ n: 'node', r: 'ring', w: 'why' }[m[1]?.[0]?.toLowerCase()] ?? 'node'}/${m[2]}`; go.value = ''; go.blur(); }
    else go.select();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (app.page?.key?.(e)) { e.preventDefault(); return; }
  const to = { f: '#/', n: '#/next', t: '#/time' }[e.key];
  if (to) location.hash = to;
  else if (e.key === '/') { go.focus(); e.preventDefault(); }
  else if (e.key === 'Escape') history.length > 1 ? history.back() : location.hash = '#/';
});

async function begin() {
  try {
    const got = await fetch('/view/fabric');
    if (!got.ok) throw new Error();
    app.about = await got.json();
  } catch { app.live = 'silent'; warn(); setTimeout(begin, 1000); return; }
  app.stream = new Stream(app.about, (nodes) => { told(); warn(); app.page?.changed?.(nodes); }, (how) => { if (app.live !== how) { app.live = how; warn(); } },
    (about) => { app.about = about; app.picture = app.stream.picture; app.selected = -1; route(); });
  app.picture = app.stream.picture;
  addEventListener('hashchange', route);
  route();
}
begin();
export { app, RING, ago };
