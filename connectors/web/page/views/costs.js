// Costs: what was spent by day, by agent or model, and the budgets.
import { h, fill, plain } from '../dom.js';
import { get } from '../api.js';
import { agentOf } from '../store.js';
import { titleOf, urlOf } from '../state.js';
import { money, short, count, plural } from '../format.js';
import { failed } from '../dialog.js';
import { bars, legend, COLOURS } from '../chart.js';
import { meter } from '../meter.js';
import { redraw, soon } from '../redraw.js';

export const title = 'Costs';

// SPANS are how far back the page looks, in days.
const SPANS = [7, 14, 30, 90];
const KEYS = { agent: 'By agent', model: 'By model', purpose: 'By purpose' };

export function render(params) {
  const view = new Costs();
  view.show(params);
  return {
    node: view.node,
    update: (changed) => {
      view.show(changed);
      return true;
    },
    event: (e) => {
      if (e.type === 'turn.finished' || e.type === 'budget.reached') view.again();
    },
    again: () => view.again(),
  };
}

class Costs {
  node = h('div.page', { 'aria-busy': 'true' });
  #by = 'agent';
  #days = 14;
  again = soon(() => this.#read());

  constructor() {
    fill(this.node, [this.#header()]);
  }

  show({ query }) {
    this.#by = KEYS[query.get('by')] ? query.get('by') : 'agent';
    const days = Number.parseInt(query.get('since') ?? '14', 10);
    this.#days = days >= 1 && days <= 366 ? days : 14;
    this.#read();
  }

  #header() {
    const link = (by, days, text, here) =>
      h('a', { href: `/costs?by=${by}&since=${days}d`, 'aria-current': here ? 'true' : null, 'data-key': `${by}${days}` }, text);
    return h(
      'header.head',
      h('h1', title),
      h('span.grow'),
      h(
        'span.seg',
        { role: 'group', 'aria-label': 'Days' },
        SPANS.map((d) => link(this.#by, d, `${d} days`, d === this.#days)),
      ),
      h(
        'span.seg',
        { role: 'group', 'aria-label': 'Rows' },
        Object.entries(KEYS).map(([by, text]) => link(by, this.#days, text, by === this.#by)),
      ),
    );
  }

  async #read() {
    const by = this.#by;
    const since = midnight(this.#days - 1);
    try {
      const [days, today, all, budgets] = await Promise.all([
        get(`/v1/cost?by=day,${by}&since=${since}`),
        get(`/v1/cost?by=${by}&since=${midnight(0)}`),
        get(`/v1/cost?by=${by}&since=${since}`),
        get('/v1/budgets'),
      ]);
      if (by !== this.#by) return;
      this.#draw({ days, today, all, budgets });
    } catch (err) {
      failed(err);
    }
    this.node.removeAttribute('aria-busy');
  }

  #draw({ days, today, all, budgets }) {
    const series = seriesOf(all, this.#by);
    const columns = columnsOf(days, series, this.#days);
    const limit = dayLimit(budgets.budgets);
    const label = `${money(all.total.cost)} in ${this.#days} days; the table below has the sums`;
    redraw(this.node, [
      this.#header(),
      figures(today, all, this.#days),
      h(
        'div.costs',
        h(
          'section',
          { 'aria-label': 'By day' },
          h('h2', 'By day'),
          bars({ days: columns, series: series.map((s) => s.name), limit, label }),
          legend(
            series.map((s) => s.name),
            limit > 0 && 'line: the limit of a day',
          ),
        ),
        h('section', { 'aria-label': 'Budgets' }, h('h2', 'Budgets'), budgetList(budgets.budgets)),
      ),
      this.#table(today, all),
    ]);
  }

  #table(today, all) {
    const most = Math.max(...all.rows.map((r) => r.cost), 0.0001);
    const now = new Map(today.rows.map((r) => [r.key, r]));
    const heads = [
      { agent: 'Agent', model: 'Model', purpose: 'Purpose' }[this.#by],
      'Calls',
      'In',
      'Out',
      'Cached',
      'Today',
      `${this.#days} days`,
      '',
    ];
    const rows = all.rows
      .toSorted((a, b) => b.cost - a.cost)
      .map((r) =>
        h(
          'tr',
          h('td.cut', nameOf(r, this.#by)),
          h('td.right', count(r.calls)),
          h('td.right', short(r.input)),
          h('td.right', short(r.output)),
          h('td.right', r.input ? `${Math.round((100 * r.cacheRead) / r.input)}%` : ''),
          h('td.right', money(now.get(r.key)?.cost ?? 0)),
          h('td.right', money(r.cost, r.estimated > 0)),
          h('td.share', meter(r.cost / most)),
        ),
      );
    return h(
      'section.panel',
      { 'aria-label': 'Sums' },
      h(
        'table',
        { 'aria-label': 'Sums' },
        h(
          'thead',
          h(
            'tr',
            heads.map((head, i) => h(`th${i > 0 && i < 7 ? '.right' : ''}`, { scope: 'col' }, head || h('span.unseen', 'Share'))),
          ),
        ),
        h('tbody', rows),
      ),
      rows.length === 0 && h('p.hint', 'Nothing has been spent yet. Model calls are listed here with their tokens and cost.'),
    );
  }
}

// midnight is the begin of a day, some days ago, as the API reads times.
function midnight(daysAgo) {
  const day = new Date();
  day.setDate(day.getDate() - daysAgo);
  day.setHours(0, 0, 0, 0);
  return encodeURIComponent(day.toISOString());
}

// seriesOf are the keys that cost most; the last one stands for all others.
function seriesOf(bill, by) {
  const rows = bill.rows.toSorted((a, b) => b.cost - a.cost);
  const most = rows.slice(0, rows.length > COLOURS ? COLOURS - 1 : COLOURS);
  const series = most.map((r) => ({ key: r.key, name: textOf(r, by) }));
  if (rows.length > most.length) series.push({ key: null, name: `${rows.length - most.length} others` });
  return series.length ? series : [{ key: null, name: 'all' }];
}

// columnsOf are the sums of each day, in the order of the series.
function columnsOf(bill, series, days) {
  const columns = new Map();
  for (let back = days - 1; back >= 0; back--) {
    const date = new Date();
    date.setDate(date.getDate() - back);
    const day = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`;
    columns.set(day, { day, parts: series.map(() => 0) });
  }
  for (const row of bill.rows) {
    const column = columns.get(row.key);
    if (!column) continue;
    const at = series.findIndex((s) => s.key === row.then);
    column.parts[at < 0 ? series.length - 1 : at] += row.cost;
  }
  return [...columns.values()];
}

function figures(today, all, days) {
  const { total } = all;
  const cached = total.input ? Math.round((100 * total.cacheRead) / total.input) : 0;
  const unsure = total.calls ? Math.round((100 * (total.estimated ?? 0)) / total.calls) : 0;
  const list = [
    ['Today', money(today.total.cost, today.total.estimated > 0)],
    [`${days} days`, money(total.cost, total.estimated > 0)],
    ['Model calls', count(today.total.calls), 'today'],
    ['From the cache', `${cached}%`, 'of tokens in'],
    ['Estimated', `${unsure}%`, total.unpriced ? `${plural(total.unpriced, 'call')} without a price` : 'of calls'],
  ];
  return h(
    'dl.strip',
    list.map(([name, value, note]) => h('div', h('dt', name), h('dd', h('span', value), note && h('small', note)))),
  );
}

function nameOf(row, by) {
  const agent = by === 'agent' && agentOf(row.key);
  return agent ? h('a', { href: urlOf(agent) }, titleOf(agent)) : textOf(row, by);
}

function textOf(row, by) {
  const agent = by === 'agent' && agentOf(row.key);
  return agent ? titleOf(agent) : plain(`${row.key}${row.name ? ` ${row.name}` : ''}`);
}

// SCOPES name the budgets of the settings.
const SCOPES = { total: 'Everything, ever', perDay: 'All agents, today' };

function dayLimit(budgets) {
  return budgets.find((b) => b.scope === 'perDay')?.limit.usd ?? 0;
}

// budgetList shows every limit with what is spent of it, agents below those they work for.
function budgetList(budgets) {
  const handles = new Set(budgets.map((b) => b.handle).filter(Boolean));
  const below = (handle) => budgets.filter((b) => b.handle && (handles.has(b.parent) ? b.parent : '') === handle);
  const item = (b) => h('li', amounts(b), b.handle && below(b.handle).length > 0 && h('ul', below(b.handle).map(item)));
  const list = [...budgets.filter((b) => !b.handle), ...below('')].filter((b) => b.limit.usd || b.limit.tokens || b.spent.usd);
  if (!list.length) return h('p.hint', 'No budget is set. Add one in the settings, or in the state.json of an agent.');
  return h('ul.budgets', list.map(item));
}

// amounts is one budget: its name, what is spent of its limit in dollars and tokens, and how full it is.
function amounts({ scope, handle, name, limit, spent }) {
  const agent = handle && agentOf(handle);
  const named = agent
    ? h('a.cut', { href: urlOf(agent) }, titleOf(agent))
    : h('span.cut', SCOPES[scope] ?? plain(`${handle} ${name ?? ''}`));
  const part = Math.max(limit.usd ? spent.usd / limit.usd : 0, limit.tokens ? spent.tokens / limit.tokens : 0);
  const said = [
    limit.usd ? `${money(spent.usd)} of ${money(limit.usd)}` : money(spent.usd),
    limit.tokens && `${short(spent.tokens)} of ${short(limit.tokens)} tokens`,
  ];
  const limited = limit.usd > 0 || limit.tokens > 0;
  return [
    h('div', named, h(`span${part >= 1 ? '.error' : '.second'}`, said.filter(Boolean).join(', '), limited ? '' : ', no limit')),
    limited && meter(part, { kind: part >= 1 ? 'error' : '' }),
  ];
}
