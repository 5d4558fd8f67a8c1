// Records of a history as entries of the transcript.
import { exact, h, icon, named, plain, setRendered, sign } from '../dom.js';
import { agentOf } from '../store.js';
import { titleOf } from '../state.js';
import { at, plural } from '../format.js';
import { attached } from './attached.js';
import { Card, cutText, thinking } from './cards.js';

const ANSWERS = {
  once: 'allowed once',
  always: 'always allowed',
  prefix: 'allowed for commands like it',
  deny: 'denied',
  expired: 'expired',
  freed: 'withdrawn',
  used: 'used',
  revoked: 'revoked',
  profile: 'changed the profile',
  'changed-by-hand': 'changed by hand',
};
const ENDS = {
  canceled: 'stopped',
  limit: 'ended at a limit',
  loop: 'ended because it repeated itself',
  budget: 'ended at a budget',
  error: 'failed',
  poison: 'failed too often and was given up',
  waiting: 'waits',
};

// LONG is from how many characters on an answer is shown as its text, and not all at once.
const LONG = 200_000;

// entriesOf returns the list items of a record, in their order; most records have one, some none. cards are
// the calls by id: calls are added, and results finish them, in whatever order their pages come.
export function entriesOf(record, cards) {
  const make = MAKERS[record.type];
  return make ? make(record, cards).filter(Boolean) : [];
}

const MAKERS = {
  user_message: (r) => [r.silent && !r.text ? null : person(r)],
  assistant_message: (r, cards) => [
    ...(r.thinking ?? []).filter((t) => t.text).map((t) => h('li', thinking(t.text).node)),
    r.text ? answer(r) : null,
    ...(r.toolCalls ?? []).map((c) => cards.of(c).item),
    r.finish === 'max_tokens' ? note('The answer was cut off at the limit of the model.') : null,
    r.finish === 'interrupted' ? note('This answer was interrupted; the model does not see it.') : null,
  ],
  tool_result: (r, cards) => {
    const { text, blocks, blob } = r.output ?? {};
    cards.finish(r.toolCallId, { status: r.status, text, blocks, blob, files: r.files, ms: r.ms });
    return [];
  },
  permission: (r) => [permission(r)],
  turn_begin: (r) => [r.attempt > 1 ? note(`Began again after an interruption, attempt ${r.attempt}`) : null],
  turn_end: (r) => [
    r.reason === 'done' || r.reason === 'waiting'
      ? null
      : note(`The turn ${ENDS[r.reason] ?? r.reason}${r.error ? `: ${r.error}` : ''}`, { error: r.reason !== 'canceled', mark: 'warn' }),
  ],
  delivery: (r) => [
    r.error
      ? note(`Part ${r.part} of ${r.parts} was not delivered${r.final ? '' : ' yet'}: ${r.error}`, { error: true, mark: 'warn' })
      : null,
  ],
  summary: (r) => [summary(r)],
  reset: (r) => [note(`New conversation${r.message ? `: ${r.message}` : ''}`, { rule: true })],
  start: (r) => [r.forkedFrom ? note('Continues another agent from here', { rule: true }) : null],
  mark: (r) => [note(`Checkpoint ${r.name}`, { rule: true, mark: 'mark' })],
  rewind: () => [note('Rewound: the model no longer sees the greyed part above', { rule: true, mark: 'rewind' })],
  note: (r) => [note(r.text)],
};

function person(r) {
  const from = r.origin ? sender(r.origin) : (r.context?.sender ?? '');
  return h(
    'li',
    h(
      `div.you${r.origin ? '.other' : ''}`,
      cutText('div.text', r.text ?? ''),
      attached(r.files),
      h(
        'small',
        from ? `${plain(from)} · ` : '',
        at(r.at),
        r.route?.connector && !r.origin ? ` · ${plain(r.route.connector)}` : '',
        ` · #${r.seq}`,
        r.untrusted ? ' · from outside' : '',
      ),
    ),
  );
}

function sender(origin) {
  if (origin === 'system') return 'daycare';
  const agent = agentOf(origin);
  return agent ? titleOf(agent) : origin;
}

// answer is what the model said: the HTML that the server made of it, or its text.
function answer(r) {
  const gone = r.finish === 'interrupted' ? '.forgotten' : '';
  if (!r.html || r.text.length > LONG) return h(`li${gone}`, h('div.said.raw', cutText('div', r.text)));
  const node = h('div.said');
  setRendered(node, r.html);
  return h(`li${gone}`, node);
}

function permission(r) {
  if (r.silent || r.event === 'used') return null;
  const what = h(
    'span',
    r.event === 'asked' ? 'Asked for ' : `${ANSWERS[r.event] ?? r.event}: `,
    h('code', exact(r.tag ?? '')),
    r.by ? ` · ${plain(r.by)}` : '',
  );
  what.firstChild.data = what.firstChild.data.replace(/^./, (c) => c.toUpperCase());
  const mark = r.event === 'asked' ? sign('ask') : icon(r.event === 'deny' || r.event === 'expired' ? 'close' : 'check');
  return h('li.note', mark, what, at(r.at));
}

function summary(r) {
  return h(
    'li',
    h(
      'details.tool',
      h(
        'summary',
        icon('info'),
        h('strong', 'Summary'),
        h('span.cut.second', `${plural(r.keptFrom - r.from, 'record')} before this; the model reads the summary instead`),
        h('span.grow'),
        h('span.turn', icon('right')),
      ),
      h('div.thought', named(r.text ?? '')),
    ),
  );
}

// note is a line about what happened; rule draws a line behind it, mark is an icon.
export function note(text, { rule = false, error = false, mark = '' } = {}) {
  return h(`li.note${rule ? '.rule' : ''}${error ? '.error' : ''}`, mark ? icon(mark) : null, h('span', named(text.slice(0, 4000))));
}

// Cards are the calls of a transcript by id.
export class Cards {
  #agent;
  #cards = new Map();
  #early = new Map(); // results whose call is on a page that was not read yet

  // agent is the id of the agent whose calls they are.
  constructor(agent) {
    this.#agent = agent;
  }

  // of returns the card of a call, a new one if there is none.
  of(call) {
    let card = this.#cards.get(call.id);
    if (!card) {
      card = new Card(call, this.#agent);
      this.#cards.set(call.id, card);
      const result = this.#early.get(call.id);
      if (result) card.finish(result);
      this.#early.delete(call.id);
    }
    return card;
  }

  get(id) {
    return this.#cards.get(id);
  }

  delete(id) {
    this.#cards.delete(id);
  }

  finish(id, result) {
    const card = this.#cards.get(id);
    if (card) card.finish(result);
    else this.#early.set(id, result);
  }

  clear() {
    this.#cards.clear();
    this.#early.clear();
  }
}
