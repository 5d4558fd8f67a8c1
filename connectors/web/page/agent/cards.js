// Cards of the transcript: a tool call in one line, with its output or its change on demand; thinking; a group
// of agents.
import { h, icon, named, plain, sign } from '../dom.js';
import { money, size, span } from '../format.js';
import { agentPath } from '../api.js';
import { childrenOf, subjectOf } from '../store.js';
import { doing, keyOf, nameOf, titleOf, urlOf, WORDS } from '../state.js';
import { redrawIf } from '../redraw.js';
import { attached, download } from './attached.js';

// MOST is how much of a text is shown before all of it is asked for, in characters.
const MOST = 12_000;

// PROGRESS is how much of the output of a running tool is kept, in characters.
const PROGRESS = 16_000;

const SIGNS = { ok: 'check', running: 'work' };
const ENDED = { ok: 'done', error: 'failed', canceled: 'canceled', interrupted: 'interrupted', denied: 'denied', timeout: 'timed out' };

// A Card is one tool call: it is made when the call is known, and finished when its result is.
export class Card {
  #progress = '';

  // call is {id, name, arguments} as history or an event has it, agent the id of the agent that made it.
  constructor(call, agent) {
    this.call = call;
    this.agent = agent;
    this.status = '';
    this.mark = h('span');
    this.took = h('span.took');
    this.summary = h(
      'summary',
      this.mark,
      h('strong', plain(call.name)),
      h('code.subject.cut', { title: plain(subjectOf(call.arguments)).slice(0, 500) }, plain(subjectOf(call.arguments)).slice(0, 300)),
      this.took,
      h('span.turn', icon('right')),
    );
    this.body = h('div');
    this.node = h('details.tool', { ontoggle: () => this.#draw() }, this.summary, this.body);
    this.item = h('li', { 'data-call': call.id }, this.node); // of the transcript
    this.#mark('running', 'is running');
  }

  #mark(status, word) {
    const name = SIGNS[status] ?? 'close';
    const drawn = status === 'running' ? sign(name, word) : icon(name, word);
    drawn.classList.add(status === 'ok' ? 'ran' : status === 'running' ? 'work' : 'failed');
    this.mark.replaceChildren(drawn);
  }

  // progress adds output of a running tool, the newest of which is kept.
  progress(text) {
    if (this.status) return;
    this.#progress = (this.#progress + text).slice(-PROGRESS);
    if (this.node.open) this.#draw();
  }

  // child links the agent that the call started, if an event named it.
  child(agent) {
    if (this.link || !agent) return;
    this.link = h('a.chip', { href: urlOf(agent) }, titleOf(agent));
    this.took.before(this.link);
  }

  // finish shows how the call ended. Failures are open at first, and so are changes of files and pictures. It is called
  // with what the event has, the beginning of the output, and again with the record.
  finish({ status, text, blocks = [], blob, files = [], ms }) {
    this.status = status || 'ok';
    this.text = text ?? '';
    this.blob = blob;
    this.diff = blocks
      .filter((b) => b.type === 'diff')
      .map((b) => b.text)
      .join('\n');
    this.files = [...blocks.map((b) => b.file).filter(Boolean), ...files];
    this.#mark(this.status, ENDED[this.status] ?? this.status);
    this.took.textContent = ms ? span(ms) : '';
    this.node.classList.toggle('bad', this.status !== 'ok');
    this.drawn = '';
    if ((this.status !== 'ok' || this.diff || this.files.length) && !this.opened) this.node.open = this.opened = true;
    this.#draw();
  }

  // draw makes what the card shows, once it is open.
  #draw() {
    if (!this.node.open) return;
    if (!this.status) {
      this.body.replaceChildren(this.#arguments(), this.#progress ? h('pre.output', named(this.#progress)) : '');
      return;
    }
    if (this.drawn === this.status) return;
    this.drawn = this.status;
    this.body.replaceChildren(
      this.diff ? '' : this.#arguments(),
      this.diff ? diff(this.diff) : '',
      this.diff && this.status === 'ok' ? '' : output(this.text),
      attached(this.files) ?? '',
      this.blob ? h('p.more', download(agentPath(this.agent, `/files/blobs%2F${this.blob}`), `${plain(this.call.name)}.txt`)) : '',
    );
  }

  // arguments shows them all where the line above has only a part.
  #arguments() {
    const args = this.call.arguments;
    const subject = subjectOf(args);
    const all = typeof args === 'object' && args !== null ? Object.keys(args) : [];
    if (all.length <= 1 && subject.length < 80 && !subject.includes('\n')) return '';
    return cutText(
      'pre',
      typeof args === 'string'
        ? args
        : all.map((k) => `${k}: ${typeof args[k] === 'string' ? args[k] : JSON.stringify(args[k])}`).join('\n'),
    );
  }
}

function output(text) {
  return text ? cutText('pre.output', text) : h('p.more.quiet.small', 'It gave no output.');
}

// cutText shows a text, of a long one the beginning and a button for the rest.
export function cutText(spec, text) {
  if (text.length <= MOST) return h(spec, named(text));
  const node = h(spec, named(text.slice(0, MOST)));
  const all = h(
    'button.btn.small',
    {
      type: 'button',
      onclick: () => {
        node.replaceChildren(...named(text));
        all.remove();
      },
    },
    `Show all, ${size(text.length)}`,
  );
  return h('div', node, h('div.more', all));
}

// diff shows a unified diff: lines with their numbers, what went in red, what came in green.
export function diff(text) {
  const node = h('div.diff', { role: 'img', 'aria-label': describeDiff(text), tabindex: 0 });
  let number = 0;
  for (const line of text.split('\n').slice(0, 2000)) {
    const at = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line);
    if (at) {
      if (number) node.append(h('div.hunk', h('i'), h('i'), '…'));
      number = Number(at[1]);
    } else if (/^(---|\+\+\+) /.test(line) && number === 0) {
      continue;
    } else if (line.startsWith('+')) node.append(row('add', number++, '+', line));
    else if (line.startsWith('-')) node.append(row('del', number, '−', line));
    else if (line.startsWith(' ')) node.append(row('same', number++, '', line));
  }
  return node;
}

function row(kind, number, mark, line) {
  return h(`div.${kind}`, h('i', number || ''), h('i', mark), h('span', named(line.slice(1, 2000))));
}

function describeDiff(text) {
  const lines = text.split('\n');
  const added = lines.filter((l) => /^\+(?!\+\+ )/.test(l));
  const removed = lines.filter((l) => /^-(?!-- )/.test(l));
  return plain(`Change: ${removed.length} lines removed, ${added.length} added. ${[...removed, ...added].slice(0, 12).join('. ')}`);
}

// thinking shows what a model thought, folded; text may still grow.
export function thinking(text) {
  const body = h('div.thought');
  const first = h('span.cut.second');
  const node = h(
    'details.tool',
    h('summary', icon('info'), h('strong', 'Thinking'), first, h('span.grow'), h('span.turn', icon('right'))),
    body,
  );
  const set = (all) => {
    text = all;
    first.textContent = plain(all.split('\n', 1)[0].slice(0, 200));
    if (node.open) body.replaceChildren(...named(all));
  };
  node.addEventListener('toggle', () => set(text));
  set(text);
  return { node, set };
}

// AGENT_TOOLS are the calls that start agents; three or more of them next to each other share a card.
export const AGENT_TOOLS = new Set(['start_background_agent', 'spawn', 'sessions_spawn']);

// family shows agents that work for another one, each with what it does; a click goes to all it said.
export function family(id) {
  const node = h('section.subs', { 'aria-label': 'Its agents' });
  const draw = () => {
    const all = childrenOf(id);
    node.hidden = all.length === 0;
    const of = (...keys) => all.filter((a) => keys.includes(keyOf(a))).length;
    const parts = [
      [of('work', 'retry', 'queued'), 'working'],
      [of('ask'), 'waiting for you'],
      [of('error', 'paused'), 'failed'],
      [of('idle', 'new', 'ended'), 'done'],
    ];
    const cost = all.reduce((sum, a) => sum + a.cost, 0);
    redrawIf(node, [cost, all.map((a) => [a.handle, a.name, keyOf(a), doing(a), a.cost])], () => [
      h('h3', [`${all.length} agents`, ...parts.filter(([n]) => n).map(([n, word]) => `${n} ${word}`), money(cost)].join(' · ')),
      ...all.map(member),
    ]);
  };
  draw();
  return { node, draw };
}

function member(agent) {
  const does = doing(agent);
  return h(
    'a',
    { href: urlOf(agent), title: titleOf(agent), 'data-key': agent.id },
    sign(keyOf(agent), WORDS[keyOf(agent)]),
    h('span.cut', h('span.mono.quiet', agent.handle), ' ', h('strong', nameOf(agent))),
    h(`span.cut.${keyOf(agent)}`, does.text, does.code ? h('code', does.code) : null),
    h('span.quiet.small', money(agent.cost)),
  );
}
