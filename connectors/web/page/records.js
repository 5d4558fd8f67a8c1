// A history as a list of records: read, cut, and changed one by one.
import { h, icon, plain } from './dom.js';
import { agentPath, get, readFile, writeFile } from './api.js';
import { callLine } from './store.js';
import { ask, failed, open, toast } from './dialog.js';
import { at as timeOf, count, plural } from './format.js';
import { compact, pretty } from './json.js';
import { redraw } from './redraw.js';

// PAGE is how many records are read at once.
const PAGE = 200;

// BYTES_PER_TOKEN is the usual estimate for text.
const BYTES_PER_TOKEN = 4;

// KINDS name the types of records in a word.
const KINDS = {
  user_message: 'message',
  assistant_message: 'answer',
  tool_started: 'started',
  tool_result: 'result',
  permission: 'permission',
  turn_begin: 'turn',
  turn_end: 'turn ends',
  delivery: 'delivery',
  summary: 'summary',
  note: 'note',
  mark: 'checkpoint',
  rewind: 'rewind',
  start: 'start',
  reset: 'reset',
};

// SEEN are the types that the model reads; only they are worth cutting.
const SEEN = new Set(['user_message', 'assistant_message', 'tool_result', 'summary', 'permission']);

export class Records {
  node = h('div.records', { role: 'group', 'aria-label': 'Records', tabindex: '0' });
  actions = h('span.bar', { 'data-key': 'records' });
  side = h('section');
  #agent;
  #file;
  #list = []; // the records that were read, oldest first
  #before = null;
  #picked = new Set(); // seq
  #last = null; // the row that was picked last, for a range

  constructor(file) {
    this.#file = file;
    this.#agent = file.agent;
  }

  close() {}

  async open() {
    await this.#read(null);
    this.node.scrollTop = this.node.scrollHeight;
  }

  async look() {
    const newest = await get(agentPath(this.#agent.id, '/history?limit=1')).catch(() => null);
    if (newest?.records.at(-1)?.seq !== this.#list.at(-1)?.seq) await this.#read(null);
  }

  async #read(before) {
    try {
      const page = await get(agentPath(this.#agent.id, `/history?limit=${PAGE}${before ? `&before=${before}` : ''}`));
      this.#list = before ? [...page.records, ...this.#list] : page.records;
      this.#before = page.before;
    } catch (err) {
      failed(err);
      return;
    }
    this.#draw();
  }

  #draw() {
    const older = this.#before && h('button.btn.small', { type: 'button', onclick: () => this.#older() }, 'Show older records');
    redraw(this.node, [older, this.#list.map((r) => this.#row(r)), !this.#list.length && h('p.hint', 'No messages yet.')]);
    this.#drawPicked();
  }

  // older adds a page above and keeps what is read where it is.
  async #older() {
    const bottom = this.node.scrollHeight - this.node.scrollTop;
    await this.#read(this.#before);
    this.node.scrollTop = this.node.scrollHeight - bottom;
  }

  #row(r) {
    const box = h('input', {
      type: 'checkbox',
      'aria-label': `Select record ${r.seq}`,
      disabled: !SEEN.has(r.type),
      onclick: (e) => this.#pick(r.seq, e.target.checked, e.shiftKey),
    });
    box.checked = this.#picked.has(r.seq);
    const text = plain(textOf(r));
    return h(
      `div.record.${r.type}`,
      { 'data-seq': r.seq, 'data-key': r.seq },
      h('label', box, h('span.mono', String(r.seq))),
      r.at ? timeOf(r.at) : h('time'),
      h('span.kind', KINDS[r.type] ?? r.type),
      h('span.cut.says', { title: text.slice(0, 500) }, text),
      h('span.right.quiet', SEEN.has(r.type) ? count(tokensOf(r)) : ''),
      h('button.tap', { type: 'button', 'aria-label': `Edit record ${r.seq}`, title: 'Edit', onclick: () => this.#edit(r) }, icon('right')),
    );
  }

  #pick(seq, on, range) {
    const seqs = this.#list.filter((r) => SEEN.has(r.type)).map((r) => r.seq);
    const [from, to] = range && this.#last !== null ? [this.#last, seq].sort((a, b) => a - b) : [seq, seq];
    for (const s of seqs) {
      if (s < from || s > to) continue;
      if (on) this.#picked.add(s);
      else this.#picked.delete(s);
    }
    this.#last = seq;
    for (const row of this.node.querySelectorAll('.record')) row.querySelector('input').checked = this.#picked.has(Number(row.dataset.seq));
    this.#drawPicked();
  }

  #drawPicked() {
    const picked = this.#list.filter((r) => this.#picked.has(r.seq));
    for (const row of this.node.querySelectorAll('.record')) row.classList.toggle('picked', this.#picked.has(Number(row.dataset.seq)));
    const n = picked.length;
    const held = this.actions.contains(document.activeElement);
    redraw(this.actions, [
      h(
        'button.btn',
        {
          type: 'button',
          disabled: n === 0,
          onclick: () => {
            this.#picked.clear();
            this.#draw();
          },
        },
        'Clear',
      ),
      h(
        'button.btn.bad',
        { type: 'button', disabled: n === 0, onclick: () => this.#cut(picked) },
        n ? `Cut ${plural(n, 'record')}` : 'Cut',
      ),
    ]);
    if (held && n === 0) this.node.focus(); // what had it is disabled now
    redraw(this.side, [
      h('h2', 'Cut'),
      h('p', n ? this.#told(picked) : 'Select records to remove them from the conversation. Shift selects a range.'),
    ]);
  }

  // told says in words what the model then no longer knows.
  #told(picked) {
    const kinds = (type, one, many) => {
      const n = picked.filter((r) => r.type === type).length;
      return n ? plural(n, one, many) : null;
    };
    const what = [
      kinds('user_message', 'message'),
      kinds('assistant_message', 'answer'),
      kinds('tool_result', 'result'),
      kinds('summary', 'summary', 'summaries'),
      kinds('permission', 'permission'),
    ]
      .filter(Boolean)
      .join(', ');
    const tokens = picked.reduce((n, r) => n + tokensOf(r), 0);
    const range = `#${picked[0].seq} to #${picked.at(-1).seq}`;
    return `${range}: ${what}, about ${count(tokens)} tokens. The model no longer sees them. Open work and undelivered replies do not change.`;
  }

  async #cut(picked) {
    const yes = await ask({
      title: `Cut ${plural(picked.length, 'record')}?`,
      yes: 'Cut',
      danger: true,
      body: [
        this.#told(picked),
        'daycare appends lines at the end of a history again: to remove the newest turn, rewind the agent instead.',
      ],
    });
    if (!yes) return;
    const gone = new Set(picked.map((r) => r.seq));
    if (!(await this.#rewrite((line) => (gone.has(seqOf(line)) ? null : line), `${plural(picked.length, 'record')} cut`))) return;
    this.#picked.clear();
    this.#draw();
  }

  // edit shows the line of one record as it is in the file, without its checksum, which would not fit what is changed.
  async #edit(r) {
    const read = await readFile(this.#file.path).catch(failed);
    if (!read) return;
    const own = read.text.split('\n').find((line) => seqOf(line) === r.seq);
    if (own) this.#editLine(r, own);
    else failed({ message: `record ${r.seq} is no longer in the file` });
  }

  #editLine(r, own) {
    const field = h('textarea.in.mono', { rows: 14, 'aria-label': `Record ${r.seq} as JSON`, spellcheck: 'false' });
    field.value = pretty(own.replace(/,"crc":"[0-9a-f]{8}"}\s*$/, '}'));
    const wrong = h('p.error', { role: 'alert' });
    const save = async (e) => {
      e.preventDefault();
      try {
        JSON.parse(field.value);
      } catch (err) {
        wrong.textContent = `Not JSON: ${err.message}`;
        return;
      }
      const changed = compact(field.value);
      if (await this.#rewrite((line) => (line === own ? changed : line), `Record ${r.seq} is published`)) dialog.close();
    };
    const dialog = open(
      'box.wide',
      `Record ${r.seq}`,
      h(
        'form',
        { onsubmit: save },
        h(
          'div.body',
          h('h2', `Record ${r.seq}`),
          h('p', 'Change a text, and the model remembers it that way. Open work and undelivered replies do not change.'),
          field,
          wrong,
        ),
        h(
          'div.acts',
          h('button.btn.main', { type: 'submit' }, 'Publish'),
          h('button.btn', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        ),
      ),
    );
    field.focus();
  }

  // rewrite changes lines of the file as it is now; null removes one. What was not changed stays byte by byte.
  async #rewrite(change, done) {
    try {
      const { text, etag } = await readFile(this.#file.path);
      const changed = text
        .split('\n')
        .map(change)
        .filter((line) => line !== null)
        .join('\n');
      if (changed === text) throw new Error('nothing was changed: the file has other records now');
      await writeFile(this.#file.path, changed, etag);
      toast(done);
      await this.#read(null);
      return true;
    } catch (err) {
      failed(err);
      return false;
    }
  }
}

// seqOf returns the number of the record in a line of the file, or undefined.
function seqOf(line) {
  try {
    return JSON.parse(line).seq;
  } catch {
    return undefined;
  }
}

// textOf is a record in one line.
export function textOf(r) {
  switch (r.type) {
    case 'user_message':
    case 'summary':
    case 'note':
      return r.text;
    case 'assistant_message':
      return [r.text, ...(r.toolCalls ?? []).map((c) => callLine(c))].filter(Boolean).join(' · ');
    case 'tool_started':
      return r.name;
    case 'tool_result':
      return `${r.name}: ${typeof r.output === 'string' ? r.output : (r.output?.text ?? '')}`;
    case 'permission':
      return `${r.tag} ${r.event}`;
    case 'turn_end':
      return r.error ? `${r.reason}: ${r.error}` : r.reason;
    case 'delivery':
      return r.error ?? `part ${r.part} of ${r.parts}`;
    case 'mark':
      return r.name;
    case 'rewind':
      return `to ${r.to}`;
    default:
      return r.message ?? r.reason ?? '';
  }
}

function tokensOf(r) {
  const text = [
    r.text ?? '',
    typeof r.output === 'string' ? r.output : (r.output?.text ?? ''),
    r.toolCalls ? JSON.stringify(r.toolCalls) : '',
  ].join('');
  return Math.ceil(text.length / BYTES_PER_TOKEN);
}
