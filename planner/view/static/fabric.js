// The fabric: strips of rings, and beside them where it stands.
import { LIGHT } from './wire.js';
import { FabricCanvas, ray, hook, stamp } from './draw.js';
import { el, get, keep, link, noLoss, plural, lineToPaste, ago } from './parts.js';

// swatch draws a class as the fabric does.
export function swatch(kind, value) {
  const c = el('canvas', { width: 88, height: 36, ariaHidden: 'true' }), g = c.getContext('2d');
  g.scale(2, 2);
  if (kind === 'node') { g.translate(22, 9); stamp(g, value, false, false, 5); return c; }
  if (kind === 'spare') { g.translate(22, 9); stamp(g, 1, true, false, 5); return c; }
  if (kind === 'leaving') { g.translate(22, 7); stamp(g, 1, false, true, 4.5); return c; }
  if (value === LIGHT.closed) hook(g, 10, 9, 9, true);
  else ray(g, value, 4, 40, value === LIGHT.bypass ? 14 : 9, 5, 0, value === LIGHT.bypass ? 6 : 0);
  return c;
}

export function legend() {
  const list = el('ul.legend'), rows = [];
  const row = (kind, value, text, count) => { const out = el('output'), li = el('li', swatch(kind, value), text, out); rows.push([li, out, count]); list.append(li); };
  row('ray', LIGHT.lit, 'lit, by both ends', (c) => c.confirmed);
  row('ray', LIGHT.bypass, 'bypass', (c) => c.bypass);
  row('ray', LIGHT.moving, 'switching', (c) => c.moving);
  row('ray', LIGHT.closed, 'loopback', (c) => c.closed);
  row('ray', LIGHT.waiting, 'not lit yet', (c) => c.waiting);
  row('node', 1, 'well, in a ring', (c) => c.standing[1] - c.spare);
  row('spare', 1, 'spare', (c) => c.spare);
  row('node', 2, 'agent silent', (c) => c.standing[2]);
  row('node', 3, 'dark', (c) => c.standing[3]);
  row('node', 4, 'own optics failed', (c) => c.standing[4]);
  row('node', 5, 'host down', (c) => c.standing[5]);
  row('node', 6, 'drained', (c) => c.standing[6]);
  row('leaving', 1, 'being drained', (c) => c.leaving);
  row('node', 7, 'cannot be planned with', (c) => c.standing[7]);
  row('node', 0, 'not heard yet', (c) => c.standing[0]);
  return [list, (c) => rows.forEach(([li, out, count]) => { const n = count(c); out.textContent = n || ''; li.classList.toggle('some', n > 0); })];
}

export function riskRow(b) {
  return el('li', el('span', 'lose ', link('node', b.node, b.lose)), el('small', b.text));
}

export function fabricPage(root, app) {
  const stage = el('div.stage'), [list, counts] = legend();
  const risks = el('ul.risks', { id: 'risks' }), alarms = el('ul.risks'), facts = el('div'), health = el('div.big', { role: 'status' });
  const side = el('aside', el('section', health, facts), el('section', el('h2', el('a', { href: '#/next' }, 'What breaks next')), risks), el('section', el('h2', 'Alarms'), alarms), el('section', el('h2', 'Light and nodes'), list));
  root.append(el('h1.unseen', 'Fabric'), stage, side);
  const canvas = new FabricCanvas(stage, app.picture, { open: (n) => { location.hash = `#/node/${n}`; },
    select: (n) => { app.selected = n; lineToPaste(n < 0 ? 'ocsctl status' : `ocsctl why ${n}`, app.about); } });
  if (app.about.nodes === 0) stage.append(el('p.dim', `This fabric has no rings: ${app.about.core ?? ''}. See ocsctl circuit list.`));
  if (app.selected >= 0) canvas.select(app.selected);
  const told = () => {
    const c = app.picture.count();
    counts(c);
    facts.replaceChildren(el('div.big', `${c.confirmed}`, el('small', `of ${c.links} links lit`)), el('div.dim', `${c.state[1]} of ${plural(c.rings, 'ring')} in service, ${plural(c.spare, 'spare')}, term ${app.picture.term}`));
  };
  const breaks = keep(async () => {
    const r = await get('next');
    risks.replaceChildren(...r.breaks_next.slice(0, 6).map(riskRow), r.losses > 6 ? el('li.dim', el('a', { href: '#/next' }, `and ${r.losses - 6} more`)) : r.losses ? '' : el('li', noLoss(app)));
  });
  const standing = keep(async () => {
    const r = await get('status');
    app.status = r.status;
    health.className = `big ${{ ok: 'good', degraded: 'bypass' }[r.status.health] ?? 'dead'}`;
    health.textContent = r.status.health.replaceAll('_', ' ');
    alarms.replaceChildren(...r.alarms.slice(0, 6).map((a) => el('li', el('span', el(a.severity === 'Critical' ? 'span.dead' : 'span.bypass', a.severity === 'Critical' ? '\u25b2 ' : '\u25c6 '), a.node !== null && a.peer === null && a.node < 1 << 20 ? link('node', a.node, `node ${a.node} ${a.what}`) : a.ring && a.subject.startsWith('ring') ? link('ring', a.ring, a.what) : a.what), el('small', a.since_ms ? ago(a.since_ms) : '', a.why ? ` ${a.why}` : ''))),
      r.alarms_total > 6 ? el('li.dim', `and ${r.alarms_total - 6} more: ocsctl alarm list`) : r.alarms_total ? '' : el('li.good', 'None.'));
  }, 1200);
  told();
  const again = setInterval(() => { breaks.soon(); standing.soon(); }, 5000);
  return {
    canvas, line: 'ocsctl status',
    changed(nodes) { canvas.redraw(nodes, true); told(); breaks.soon(); standing.soon(); },
    close() { canvas.close(); breaks.close(); standing.close(); clearInterval(again); },
    key(e) {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -canvas.cols, ArrowDown: canvas.cols }[e.key], n = canvas.selected;
      if (step) { canvas.select(n < 0 ? 0 : n + step >= 0 && n + step < app.picture.nodes ? n + step : n); return true; }
      if (n < 0) return false;
      if (e.key === 'Enter') location.hash = `#/node/${n}`;
      else if (e.key === 'r' && app.picture.ring[n]) location.hash = `#/ring/${app.picture.ring[n]}`;
      else if (e.key === 'w') location.hash = `#/why/${n}`;
      else if (e.key === 'Escape') canvas.select(-1);
      else return false;
      return true;
    },
  };
}
