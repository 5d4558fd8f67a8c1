// Why: everything that led from a message to its answer: what came in, what the model was given, what
// happened and when.
import { h, named, plain, svg } from '../dom.js';
import { get } from '../api.js';
import { sheet } from '../dialog.js';
import { absolute, count, money, short, span } from '../format.js';
import { agentOf, subjectOf } from '../store.js';
import { titleOf } from '../state.js';
import { stack } from './beside.js';

// showWhy opens the pane for an item, turn, answer or call; closed is called when it is closed.
export async function showWhy(id, agent, closed) {
  const body = h('div', h('p.hint.pads', 'Reading the history …'));
  sheet('Why this answer', `${id.slice(0, 4)}… · ${titleOf(agent)}`, body).addEventListener('close', closed);
  try {
    body.replaceChildren(...sections(await get(`/v1/why/${encodeURIComponent(id)}`)));
  } catch (err) {
    body.replaceChildren(h('p.hint.pads', err.status === 404 ? 'The history no longer contains this.' : err.message));
  }
}

function sections(why) {
  const records = why.records.map((r) => ({ ...r.fields, seq: r.seq, at: r.at, type: r.type }));
  const steps = stepsOf(records);
  return [came(why, records), given(why), happened(steps), total(why, records)].filter(Boolean);
}

function came(why, records) {
  const users = records.filter((r) => r.type === 'user_message');
  if (users.length === 0 && why.waiting) return h('section', h('h2', 'Message'), h('p', 'It waits in the inbox.'));
  return h(
    'section',
    h('h2', 'Message'),
    users.map((r) => {
      const item = (why.inbound ?? []).find((i) => i.id === r.item);
      const waited = item?.at ? Date.parse(r.at) - Date.parse(item.at) : -1;
      return [
        h('p.quote', named((r.text ?? '').slice(0, 2000))),
        h(
          'p.small.quiet',
          `${absolute(item?.at ?? r.at)} · ${plain(source(r))}${waited >= 0 ? ` · read after ${span(waited)}` : ''} · #${r.seq}`,
        ),
      ];
    }),
  );
}

function source(r) {
  if (!r.origin) return r.route?.connector ?? 'daycare';
  const agent = agentOf(r.origin);
  return agent ? titleOf(agent) : r.origin;
}

function given(why) {
  const parts = (why.prompt ?? []).filter((p) => p.tokens > 0);
  if (parts.length === 0) return null;
  const all = parts.reduce((n, p) => n + p.tokens, 0);
  return h(
    'section',
    h('h2', `The model was given about ${count(all)} tokens`),
    stack(parts, all),
    h(
      'ul.legend',
      parts.map((p, i) => h('li', h(`span.dot.c${i % 7}`), `${p.part} `, h('strong', count(p.tokens)))),
    ),
  );
}

// stepsOf turns the records of a turn into steps {name, code?, from, to, first?, kind, tokens?, cost?, under?}, times
// in ms; first is when an answer began to come. A model call of which it is not known how long it took begins when
// what was before it ended.
function stepsOf(records) {
  const steps = [];
  const calls = new Map();
  let clock = Date.parse(records.find((r) => r.type === 'turn_begin')?.at ?? records[0]?.at);
  let model = 0;
  let asked = null;
  for (const r of records) {
    const at = Date.parse(r.at);
    if (r.type === 'assistant_message') {
      const t = r.tokens ?? {};
      const input = (t.input ?? 0) + (t.cacheRead ?? 0) + (t.cacheWrite ?? 0);
      steps.push({
        name: `Model call ${++model}${r.finish === 'interrupted' ? ', interrupted' : ''}`,
        from: r.ms ? at - r.ms : clock,
        to: at,
        first: r.ms && r.firstMs ? at - r.ms + r.firstMs : 0,
        kind: 'c0',
        cost: r.cost,
        estimated: t.estimated,
        tokens: `${short(input)} + ${short(t.output ?? 0)}`,
      });
      for (const c of r.toolCalls ?? []) calls.set(c.id, c);
    } else if (r.type === 'tool_result') {
      const call = calls.get(r.toolCallId);
      steps.push({
        name: r.name,
        code: plain(subjectOf(call?.arguments)).slice(0, 80),
        from: at - r.ms,
        to: at,
        kind: r.status === 'ok' ? 'ok' : 'bad',
        under: true,
      });
    } else if (r.type === 'permission' && r.event === 'asked') asked = at;
    else if (r.type === 'permission' && asked) {
      steps.push({ name: 'Waited for you', from: asked, to: at, kind: 'wait', under: true });
      asked = null;
    } else if (r.type === 'delivery')
      steps.push({ name: `Delivered, part ${r.part} of ${r.parts}`, from: clock, to: at, kind: r.error ? 'bad' : 'c1' });
    clock = at;
  }
  return withGaps(steps);
}

// GAP_MS is how long nothing runs before that is a step of its own, in milliseconds; or GAP of the whole, if that is more.
const GAP_MS = 100;
const GAP = 0.02;

// withGaps puts the steps in the order of time, and one more wherever nothing ran.
function withGaps(steps) {
  steps.sort((a, b) => a.from - b.from);
  const least = Math.max(GAP_MS, GAP * (Math.max(...steps.map((s) => s.to)) - steps[0]?.from));
  const all = [];
  let ended = steps[0]?.from;
  for (const s of steps) {
    if (s.from - ended > least) all.push({ name: 'Nothing ran', from: ended, to: s.from, kind: 'gap', under: true });
    ended = Math.max(ended, s.to);
    all.push(s);
  }
  return all;
}

function happened(steps) {
  if (steps.length === 0) return null;
  const from = Math.min(...steps.map((s) => s.from));
  const whole = Math.max(1, Math.max(...steps.map((s) => s.to)) - from);
  const head = [
    h('span.top', absolute(from)),
    h(
      'span.top.axis',
      ['0', whole < 4 ? '' : span(whole / 2), span(whole)].map((t) => h('span', t)),
    ),
    ...['Took', 'Tokens', 'Cost'].map((t, i) => h(`span.top.right${i === 1 ? '.tokens' : ''}`, t)),
  ];
  return h(
    'section',
    h('h2', `What happened, in ${span(whole)}`),
    h(
      'div.waterfall',
      head,
      steps.flatMap((s) => row(s, from, whole)),
    ),
  );
}

function row(s, from, whole) {
  const x = (1000 * (s.from - from)) / whole;
  const width = Math.max(3, (1000 * (s.to - s.from)) / whole);
  const name = h(
    `span${s.under ? '.under' : ''}${s.kind === 'bad' ? '.error' : ''}`,
    { title: `${s.name} ${s.code ?? ''}` },
    s.name,
    s.code ? [' ', h('code', s.code)] : null,
  );
  const lines = [0, 250, 500, 750, 1000].map((at) => svg('line', { x1: at, x2: at, y1: 0, y2: 26, 'vector-effect': 'non-scaling-stroke' }));
  return [
    name,
    svg(
      'svg',
      { viewBox: '0 0 1000 26', height: 26, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      lines,
      svg('rect', { class: s.kind, x: Math.min(x, 997), y: 8, width, height: 10, 'vector-effect': 'non-scaling-stroke' }),
      s.first ? svg('rect', { class: 'before', x: Math.min(x, 997), y: 8, width: (1000 * (s.first - s.from)) / whole, height: 10 }) : null,
    ),
    h('span.right', { title: s.first ? `the answer started after ${span(s.first - s.from)}` : null }, span(s.to - s.from)),
    h('span.right.tokens.quiet', s.tokens ?? ''),
    h('span.right', s.cost ? money(s.cost, s.estimated) : ''),
  ];
}

// first is how long the first piece of an answer took to come, of the call that took longest.
function first(records) {
  const most = Math.max(0, ...records.map((r) => r.firstMs ?? 0));
  return most ? [h('dt', 'First piece of an answer after'), h('dd', span(most))] : [];
}

function total(why, records) {
  const allowed = records.filter((r) => r.type === 'permission' && r.event !== 'asked' && r.event !== 'used');
  return h(
    'section',
    h('h2', 'Total'),
    h(
      'dl.pairs',
      allowed.flatMap((r) => [h('dt', `${r.event}: `, h('code', named(r.tag))), h('dd', plain(r.by ?? ''))]),
      h('dt', 'Model calls'),
      h('dd', count(why.calls)),
      ...first(records),
      h('dt', 'Tokens in, of which cached'),
      h(
        'dd',
        `${count((why.tokens?.input ?? 0) + (why.tokens?.cacheRead ?? 0) + (why.tokens?.cacheWrite ?? 0))} · ${count(why.tokens?.cacheRead ?? 0)}`,
      ),
      h('dt', 'Tokens out'),
      h('dd', count(why.tokens?.output ?? 0)),
      h('dt', 'Cost'),
      h('dd', h('strong', money(why.cost, why.tokens?.estimated))),
    ),
  );
}
