// What breaks next: every single loss, tried on a copy.
import { el, get, keep, link, noLoss, plural, ago, clock } from './parts.js';

const rows = (head, list) => list.length ? el('table', el('tr', head.map((h) => el('th', h))), list) : null;
const nodes = (ids) => { const out = []; ids.slice(0, 24).forEach((n, i) => out.push(i ? ', ' : '', link('node', n, String(n)))); if (ids.length > 24) out.push(` and ${ids.length - 24} more`); return out; };

export function nextPage(root, app) {
  const head = el('div'), losses = el('section'), ways = el('section'), spares = el('section'), margins = el('section'), ageing = el('section');
  root.append(el('div.sheet', head, losses, el('div.cards', ways, spares), margins, ageing));
  const told = keep(async () => {
    const r = await get('next');
    head.replaceChildren(el('h1', 'What breaks next', el('small', `each of ${app.about.nodes} nodes, and each fibre in use, lost once on a copy, ${clock(r.at_ms)}, in ${(r.took_us / 1000).toFixed(0)} ms`)),
      el('p', r.losses === 0 ? noLoss(app)
        : `${r.losses === 1 ? '1 loss is' : `${r.losses} losses are`} not made good at once. ${plural(r.spares, 'spare')} left.`));
    losses.replaceChildren(el('h2', 'Worst losses'), rows(['lose', 'of', 'rings that end or get smaller', 'GPUs lost', 'until it is mended'], r.breaks_next.slice(0, 60).map((b) => el('tr', el('td', link('node', b.node, b.lose)), el('td', link('ring', b.ring)),
      el('td', b.rings.length ? b.rings.map((x, i) => [i ? ', ' : '', link('ring', x, String(x))]) : '-'), el('td.n', String(b.gpus_lost)), el('td', b.torn ? el('span.dead', 'the ring is in pieces') : 'closed past it')))) ?? el('p.good', 'None.'));
    ways.replaceChildren(el('h2', 'Rings without a second way'), rows(['ring', 'torn by the loss of'], r.no_second_way.map((x) => el('tr', el('td', link('ring', x.ring)), el('td', nodes(x.nodes))))) ?? el('p.good', 'None: every neighbour reaches past every node.'));
    spares.replaceChildren(el('h2', 'Spares out of reach'), el('p.dim', `${plural(r.spares, 'spare')} in the fabric.`), rows(['ring', 'no spare replaces'], r.no_spare.map((x) => el('tr', el('td', link('ring', x.ring)), el('td', x.nodes.length === app.picture.rings.get(x.ring)?.nodes.length ? `any of its ${x.nodes.length} nodes` : nodes(x.nodes))))) ?? el('p.good', 'None: a spare reaches every ring.'));
    const bar = (m) => { const i = el('canvas', { width: 120, height: 10, ariaHidden: 'true' }), g = i.getContext('2d'), part = Math.max(0, Math.min(1, m.margin_mdb / 3000)); g.fillStyle = '#16202c'; g.fillRect(0, 2, 120, 6); g.fillStyle = part < 0.4 ? '#ff6a1f' : part < 0.85 ? '#ffb000' : '#7fd3ff'; g.fillRect(0, 2, 120 * part, 6); return i; };
    margins.replaceChildren(el('h2', 'Margins'), el('p.dim', 'How much more of a bundle\u2019s own light may go until its path counts as not there. ', r.margins_since_ms ? `Followed since ${clock(r.margins_since_ms)}; days are left only where a line through the readings falls for sure.` : ''),
      rows(['bundle', 'margin', 'bar', 'falls by', 'days left'], r.margins.slice(0, 24).map((m) => el('tr', el('td', link('node', m.node, `${m.node}/${m.bundle}`)), el('td.n', `${(m.margin_mdb / 1000).toFixed(2)} dB`), el('td', bar(m)),
        el('td', m.fall_mdb_per_day ? `${(m.fall_mdb_per_day / 1000).toFixed(3)} dB a day` : el('span.faint', 'not for sure')), el('td', m.days_left !== null ? el('b.bypass', m.days_left.toFixed(1)) : '-')))) ?? el('p.dim', 'No bundle has told its light yet.'));
    const of = { laser_bias: ['lasers', 'mA', 1000], heater_power: ['heaters', 'mW', 1000] };
    ageing.replaceChildren(el('h2', 'Ageing'), el('p.dim', 'Lasers that take so much more than at first are worn; heaters that take so much more or less want a calibration. The limits are the description\u2019s.'),
      rows(['module', 'of', 'is', 'limit', 'a day', 'days left'], r.ageing.slice(0, 24).map((a) => { const [what, unit, per] = of[a.what]; return el('tr', el('td', link('node', a.node, `${a.node}/${a.bundle}/${a.module}`)), el('td', what), el('td.n', `${(a.is / per).toFixed(1)} ${unit}`),
        el('td.n', `${(a.limit / per).toFixed(1)} ${unit}`), el('td.n', `${(a.change_per_day / per).toFixed(2)} ${unit}`), el('td', el('b.bypass', a.days_left.toFixed(1)))); })) ?? el('p.dim', 'Nothing ages for sure.'));
  }, 1000);
  const again = setInterval(told.soon, 5000);
  return { line: 'ocsctl status', changed: () => told.soon(), close() { told.close(); clearInterval(again); } };
}
