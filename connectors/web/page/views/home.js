// Home: all agents, those that need a person first, and what today costs and brings.
import { fill, h, icon, setText, sign } from '../dom.js';
import { get } from '../api.js';
import { allAgents, askOf, ready as loaded, subscribe } from '../store.js';
import { depth, doing, groupOf, GROUPS, keyOf, nameOf, titleOf, urlOf, WORDS } from '../state.js';
import { ago, at, hour, money, plural, until, when } from '../format.js';
import { go, setQuery } from '../router.js';
import { newAgent, firstMessage } from '../newagent.js';
import { nextRuns } from '../clock.js';
import { happened } from '../happened.js';
import { redraw, redrawIf } from '../redraw.js';
import { COMPACTED, meter } from '../meter.js';

export const title = 'Home';

// REGROUP_MS is how often agents change places at most, so that no row jumps away under a pointer. FIRST is how
// many rows are made at first, MORE how many at a time when the end of the list comes near, in NEAR pixels.
const REGROUP_MS = 1000;
const FIRST = 60;
const MORE = 150;
const NEAR = 1500;

export function render(params) {
  return new Home(params).view();
}

class Home {
  #rows = new Map(); // {node, parts} by id
  #heads = new Map(); // {node, count} of groups, by key
  #off = [];
  #today = null; // what was spent since midnight, by handle
  #limitToday = 0; // US dollars that may be spent in a day; 0: no limit
  #next = [];
  #feed = [];
  #grouped = 0;
  #timer = null;
  #limit = FIRST;
  #near = new IntersectionObserver((entries) => this.#grow(entries), { root: document.getElementById('main'), rootMargin: `${NEAR}px` });
  #query;

  constructor(params) {
    this.#query = params.query;
    this.filter = h('input.in', {
      type: 'search',
      placeholder: 'Filter agents',
      'aria-label': 'Filter agents',
      'data-filter': true,
      value: params.query.get('q') ?? '',
      oninput: () => setQuery({ q: this.filter.value }),
    });
    this.strip = h('dl.strip');
    this.rows = h('div.rows', { role: 'table', 'aria-label': 'Agents' });
    this.end = h('p.hint');
    this.#near.observe(this.end);
    this.side = h('aside', { 'aria-label': 'Next and just now' });
    this.node = h('div.page');
  }

  view() {
    this.#off.push(
      subscribe('agents', () => this.#draw()),
      subscribe('asks', () => this.#draw()),
    );
    this.#frame();
    this.#draw();
    this.#read();
    const minute = setInterval(() => this.#drawStrip(), 30_000);
    return {
      node: this.node,
      ready: () => {
        if (this.#query.has('new')) this.#create();
      },
      update: (params) => this.#update(params),
      event: (e) => this.#take(e),
      again: () => this.#read(),
      close: () => {
        this.#off.forEach((off) => off());
        clearTimeout(this.#timer);
        clearInterval(minute);
        this.#near.disconnect();
      },
      keys: [
        { key: 'j', label: 'Next row', run: () => this.#step(1) },
        { key: 'k', label: 'Previous row', run: () => this.#step(-1) },
      ],
    };
  }

  #update(params) {
    this.#query = params.query;
    if (params.query.has('new')) this.#create();
    if (this.filter.value !== (params.query.get('q') ?? '')) this.filter.value = params.query.get('q') ?? '';
    this.#group();
    return true;
  }

  async #create() {
    setQuery({ new: null });
    const agent = await newAgent();
    if (agent) go(urlOf(agent));
  }

  // frame is the page with agents, or the text field of a workspace that has none. What is typed there stays until it
  // is sent, also if an agent comes from elsewhere.
  #frame() {
    if (this.first?.querySelector('textarea').value.trim()) return;
    if (loaded() && allAgents().length === 0) {
      if (!this.first) {
        this.first = firstMessage((agent) => go(urlOf(agent)));
        this.node.replaceChildren(this.first);
      }
      return;
    }
    if (this.first || !this.node.firstChild) {
      this.first = null;
      this.node.replaceChildren(
        h(
          'div.head',
          h('h1', 'Home'),
          h('span.grow'),
          h('span.wide', this.filter),
          h('kbd', '/'),
          h('button.btn.main', { type: 'button', onclick: () => this.#create() }, icon('plus'), 'New agent'),
        ),
        this.strip,
        h('div.cols', this.rows, this.side),
      );
    }
  }

  // read asks for what no event tells: today's cost, and what is due next.
  async #read() {
    const midnight = new Date();
    midnight.setHours(0, 0, 0, 0);
    const [bill, next, settings] = await Promise.all([
      get(`/v1/cost?since=${encodeURIComponent(midnight.toISOString())}`).catch(() => null),
      nextRuns().catch(() => []),
      get('/v1/config').catch(() => null),
    ]);
    this.#limitToday = settings?.budget?.perDay?.usd ?? 0;
    if (bill) this.#today = { total: bill.total, by: new Map(bill.rows.map((r) => [r.key, r])) };
    this.#next = next;
    this.#draw();
    this.#drawSide();
  }

  #take(e) {
    const line = happened(e);
    if (line) {
      this.#feed.unshift({ at: e.at, ...line });
      this.#feed.length = Math.min(this.#feed.length, 12);
      this.#drawSide();
    }
    if (e.type === 'turn.finished' || e.type.startsWith('cron.')) {
      clearTimeout(this.reading);
      this.reading = setTimeout(() => this.#read(), 2000);
    }
  }

  // draw changes rows in their places at once, and moves them between groups at most once a second.
  #draw() {
    this.#frame();
    for (const agent of allAgents()) if (this.#rows.has(agent.id)) this.#drawRow(agent);
    this.#drawStrip();
    const wait = this.#grouped + REGROUP_MS - Date.now();
    clearTimeout(this.#timer);
    if (wait <= 0) this.#group();
    else this.#timer = setTimeout(() => this.#group(), wait);
  }

  #group() {
    this.#grouped = Date.now();
    const groups = grouped(this.#filtered());
    const children = [(this.top ??= header())];
    let left = this.#limit;
    let more = 0;
    for (const { key, title: heading } of GROUPS) {
      const list = groups.get(key) ?? [];
      if (list.length === 0) continue;
      const some = list.slice(0, left);
      left -= some.length;
      more += list.length - some.length;
      if (some.length === 0) continue;
      const n = list.filter((a) => groupOf(a) === key).length;
      children.push(
        this.#head(key, heading, n),
        ...some.map((a) => this.#row(a).node),
      );
    }
    if (!loaded()) children.push(h('p.hint', 'Reading the agents …'));
    else if (groups.size === 0 && this.filter.value) children.push(h('p.hint', 'No agent has this in its handle, name or state.'));
    if (more) children.push(this.end);
    this.end.textContent = `and ${plural(more, 'more', 'more')}`;
    fill(this.rows, children);
  }

  // head is the line above a group of n agents, the same element as long as the view is shown.
  #head(key, heading, n) {
    if (!this.#heads.has(key)) {
      const count = h('span.quiet');
      const cell = h('div.group', { role: 'cell', 'aria-colspan': 7 }, h('h2', heading), count, h('hr'));
      this.#heads.set(key, { node: h('div', { role: 'row' }, cell), count });
    }
    const { node, count } = this.#heads.get(key);
    setText(count, String(n));
    return node;
  }

  // grow shows more rows when the end of the list comes near.
  #grow(entries) {
    if (!entries.some((e) => e.isIntersecting)) return;
    this.#limit += MORE;
    this.#group();
    this.#near.unobserve(this.end); // observing anew tells again if the end is still near
    this.#near.observe(this.end);
  }

  #filtered() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return allAgents();
    return allAgents().filter((a) => {
      const text = `${a.handle} ${a.name} ${WORDS[keyOf(a)]} ${a.connector ?? ''}`.toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }

  #row(agent) {
    if (!this.#rows.has(agent.id)) {
      const parts = {
        who: h('div.who', { role: 'rowheader' }, h('span.mono'), h('a.cut')),
        doing: h('div.doing', { role: 'cell' }),
        inbox: h('div.inbox.right', { role: 'cell' }),
        full: h('div.full-of.spare', { role: 'cell' }),
        cost: h('div.cost.right', { role: 'cell' }),
        next: h('div.right.quiet.spare', { role: 'cell' }),
        last: h('div.right.quiet.spare', { role: 'cell' }),
      };
      this.#rows.set(agent.id, { parts, shown: '', node: h('div.row', { role: 'row' }, Object.values(parts)) });
      this.#drawRow(agent);
    }
    return this.#rows.get(agent.id);
  }

  // drawRow changes a row if what it shows is another than before.
  #drawRow(agent) {
    const row = this.#rows.get(agent.id);
    const key = keyOf(agent);
    const does = doing(agent);
    const ask = askOf(agent.id);
    const spent = this.#today?.by.get(agent.handle)?.cost;
    const next = this.#next.find((n) => n.agentId === agent.id)?.at;
    const shown = JSON.stringify([
      key,
      does,
      ask?.token,
      agent.queued,
      agent.oldestAt,
      agent.context,
      agent.window,
      spent,
      next,
      agent.lastAt,
      agent.name,
      agent.handle,
    ]);
    if (row.shown === shown) return;
    row.shown = shown;
    const { who, doing: cell, inbox, full, cost, next: nextCell, last } = row.parts;
    who.className = `who${depth(agent) ? ' child' : ''}`;
    redraw(who, [
      sign(key, WORDS[key]),
      h('span.mono', agent.handle),
      h('a.cut', { href: urlOf(agent), title: titleOf(agent) }, nameOf(agent)),
    ]);
    cell.className = `doing ${key}`;
    redraw(cell, [
      h('span.cut', { title: `${does.text}${does.code ?? ''}` || null }, does.text, does.code ? h('code', does.code) : null),
      ask &&
        h('a.btn.small.spare', { href: `/approvals/${ask.token}`, 'aria-label': `Review what ${titleOf(agent)} asks` }, 'Review'),
    ]);
    redraw(inbox, [
      agent.queued > 0 &&
        h(
          'span.chip.queued',
          { title: 'in its inbox, and how long the oldest waits' },
          agent.oldestAt ? `${agent.queued} · ${ago(agent.oldestAt)}` : agent.queued,
        ),
    ]);
    redraw(
      full,
      agent.window
        ? [meter(agent.context / agent.window, { tick: COMPACTED }), `${Math.round((100 * (agent.context ?? 0)) / agent.window)}%`]
        : [],
    );
    setText(cost, spent ? money(spent) : '');
    redraw(nextCell, [next && at(next)]);
    redraw(last, [agent.lastAt && when(agent.lastAt)]);
  }

  #drawStrip() {
    if (!loaded()) return;
    const agents = allAgents();
    const needs = agents.filter((a) => groupOf(a) === 'needs').length;
    const busy = agents.filter((a) => keyOf(a) === 'work' || keyOf(a) === 'retry');
    const retries = busy.filter((a) => keyOf(a) === 'retry').length;
    const waits = agents.reduce((n, a) => n + a.queued, 0);
    const oldest = agents
      .map((a) => a.oldestAt)
      .filter(Boolean)
      .sort()[0];
    const next = this.#next[0];
    redraw(this.strip, [
      figure('Need you', h(`span${needs ? '.ask' : ''}`, needs)),
      figure('Working', busy.length, retries ? `${retries} retrying` : ''),
      figure('In inboxes', waits, oldest ? `oldest ${ago(oldest)}` : ''),
      this.#spent(),
      figure('Next run', next ? hour(next.at) : '–', next ? `${next.name}, ${until(next.at)}` : 'nothing is scheduled'),
    ]);
  }

  // spent is what today cost, of what it may cost.
  #spent() {
    const { cost, estimated } = this.#today?.total ?? { cost: 0 };
    const limit = this.#limitToday;
    const shown = figure('Spent today', this.#today ? money(cost, cost > 0 && estimated) : '–', limit ? `of ${money(limit)}` : '');
    if (limit) shown.append(meter(cost / limit));
    return shown;
  }

  #drawSide() {
    const next = this.#next.slice(0, 6).map((n) => h('li', { 'data-key': `${n.path} ${n.at}` }, at(n.at), h('div', h('a', { href: n.path }, n.name), h('small', until(n.at)))));
    const feed = this.#feed.map((f) => h('li', { 'data-key': `${f.path} ${f.at}` }, at(f.at), h('div', h('a', { href: f.path }, f.text), f.more ? h('small', f.more) : null)));
    redrawIf(this.side, [this.#feed, this.#next.slice(0, 6).map((n) => [n, until(n.at)])], () => [
      h('h2', 'Next'),
      next.length ? h('ul.feed', next) : h('p.hint', 'No task is due. ', h('a', { href: '/clocks' }, 'Clocks')),
      h('h2', 'Just now'),
      feed.length ? h('ul.feed', feed) : h('p.hint', 'What happens while this page is open.'),
    ]);
  }

  #step(by) {
    const links = [...this.rows.querySelectorAll('.who a')];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
    return links.length > 0;
  }
}

function header() {
  return h(
    'div.row.top',
    { role: 'row' },
    ...['Agent', 'Doing, or last answer', 'Inbox', 'Context', 'Today', 'Next', 'Last'].map((text, i) =>
      h(`span${i === 2 || i > 3 ? '.right' : ''}`, { role: 'columnheader' }, text),
    ),
  );
}

function figure(name, value, note) {
  return h('div', h('dt', name), h('dd', value, note ? h('small', note) : null));
}

// grouped puts agents into groups. A family stays together, under its most urgent member.
function grouped(agents) {
  const order = GROUPS.map((g) => g.key);
  const families = new Map();
  for (const a of agents) {
    const root = a.handle.split('/')[0];
    if (!families.has(root)) families.set(root, []);
    families.get(root).push(a);
  }
  const groups = new Map();
  for (const family of families.values()) {
    const ended = family.filter((a) => groupOf(a) === 'ended');
    const here = family.filter((a) => groupOf(a) !== 'ended');
    const key = order[Math.min(...here.map((a) => order.indexOf(groupOf(a))), order.length - 1)];
    for (const [group, list] of [
      [key, here],
      ['ended', ended],
    ]) {
      if (list.length) groups.set(group, [...(groups.get(group) ?? []), ...list]);
    }
  }
  return groups;
}
