// The transcript of one agent: pages of its history, and what streams at its end. It stays where the reader
// is: it follows the end only while the end is in view.
import { h, plain } from '../dom.js';
import { get, agentPath } from '../api.js';
import { agentOf, callLine } from '../store.js';
import { announce, failed } from '../dialog.js';
import { AGENT_TOOLS, family } from './cards.js';
import { Cards, entriesOf } from './entries.js';
import { Stream as Text } from './streaming.js';

const PAGE = 100; // records of one request
const STEP = 40; // records that scrolling adds and lets go at a time: few, so that no frame takes long
const MOST = 500; // records in the page; those far from the reader are let go, and read again on scrolling there
const NEAR = 600; // how near the top older records are asked for, in pixels
const END = 48; // how near the bottom is at the end, in pixels

export class Transcript {
  #agent;
  #records = []; // {record, nodes}, oldest first
  #before = null; // what to ask for the page before; null: there is none
  #below = []; // what was let go at the end, in pieces: the seq of the newest record of each, the nearest one last
  #cards;
  #families = [];
  #text;
  #live = new Map(); // list items of calls that have no record yet, by id
  #atEnd = true;
  #unseen = 0;
  #reading = null;
  #again = false;
  #closed = false;
  #top = 0; // where the reader was last
  #newest = () => this.#records.at(-1)?.record.seq ?? 0;
  #grown = new ResizeObserver(() => this.#follow()); // after the layout of a frame, so that none is made for it

  // actionsOf makes the buttons of a record; loaded is called after each reading.
  constructor(agent, { actionsOf, loaded }) {
    this.#agent = agent;
    this.#cards = new Cards(agent.id);
    this.actionsOf = actionsOf;
    this.loaded = loaded;
    this.list = h('ol.entries');
    this.#text = new Text(this.list);
    this.newer = h('button.btn.small.newer.keep', { type: 'button', hidden: true, onclick: () => this.toEnd() });
    this.node = h(
      'div.log',
      { tabindex: 0, role: 'region', 'aria-label': `Transcript of ${plain(agent.name)}`, onscroll: () => this.#scrolled() },
      this.list,
      this.newer,
    );
    this.#grown.observe(this.list);
  }

  close() {
    this.#closed = true;
    this.#grown.disconnect();
    this.#text.clear();
  }

  // load reads the newest page, and what streams.
  async load() {
    try {
      const page = await this.#page();
      if (this.#closed) return;
      this.#clear();
      this.#before = page.before;
      for (const record of page.records) this.#append(record);
      if (this.#records.length === 0)
        this.list.replaceChildren(h('li.hint', 'No messages yet. Write below: it reads your message when you send it.'));
      this.toEnd();
      this.loaded?.();
      await this.draft();
    } catch (err) {
      if (!this.#closed) failed(err);
    }
  }

  #page(before, limit = PAGE) {
    const query = new URLSearchParams({ limit, html: 1, ...(before ? { before } : {}) });
    return get(agentPath(this.#agent.id, `/history?${query}`));
  }

  #clear() {
    this.#records = [];
    this.#below = [];
    this.#families = [];
    this.#cards.clear();
    this.#live.clear();
    this.#text.clear();
    this.list.replaceChildren();
  }

  // refresh reads the records that were written since, soon; several calls become one reading.
  refresh() {
    if (this.#below.length) return;
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = setTimeout(async () => {
      try {
        await this.#readNewer();
      } catch {
        /* the connection is lost, or the agent is gone: what is shown stays */
      }
      this.#reading = null;
      if (this.#again) {
        this.#again = false;
        this.refresh();
      }
    }, 120);
  }

  async #readNewer() {
    const read = await this.#since(this.#newest());
    if (this.#closed || this.#below.length) return;
    if (!read) {
      await this.load();
      return;
    }
    const fresh = read.filter((r) => r.seq > this.#newest()); // others may have come meanwhile
    for (const record of fresh) this.#append(record);
    if (fresh.length) this.#count(fresh);
    this.loaded?.();
  }

  // since reads the records behind a seq, oldest first; null if they are more than a few pages.
  async #since(newest) {
    let fresh = [];
    let before = null;
    for (let pages = 0; pages < MOST / PAGE; pages++) {
      const page = await this.#page(before);
      const here = page.records.filter((r) => r.seq > newest);
      fresh = [...here, ...fresh];
      before = page.before;
      if (here.length < page.records.length || before === null) return fresh;
    }
    return null;
  }

  // append shows a record at the end. What streamed of it gives way; a call keeps its card.
  #append(record) {
    if (this.#records.length === 0) this.list.querySelector('.hint')?.remove();
    if (record.type === 'assistant_message') this.#text.recorded(record.text ?? '');
    if (record.type === 'turn_end') this.#text.clear();
    const nodes = this.#make(record);
    for (const node of nodes) this.#live.delete(node.dataset.call);
    this.#put(nodes, this.#firstLive());
    this.#records.push({ record, nodes });
    if (record.type === 'rewind') this.#forget(record);
    if (this.#atEnd) this.#trim();
  }

  // put inserts list items before another one. A call that was there already is not moved, as somebody may read it.
  #put(nodes, before) {
    for (const node of nodes.toReversed()) {
      if (node.parentNode !== this.list || node.nextSibling !== before) this.list.insertBefore(node, before);
      before = node;
    }
  }

  // firstLive is the first item that has no record yet: records are put before it.
  #firstLive() {
    const live = [this.#live.values().next().value, this.#text.first()].filter((n) => n?.isConnected);
    return live.sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))[0] ?? null;
  }

  // make returns the list items of a record, with its buttons.
  #make(record) {
    const nodes = entriesOf(record, this.#cards);
    const actions = nodes.length ? this.actionsOf(record) : null;
    if (actions) nodes[0].append(actions);
    if (record.type === 'assistant_message') this.#group(record, nodes);
    return nodes;
  }

  // group puts one card for all agents in the place of three or more calls that start some.
  #group(record, nodes) {
    const calls = (record.toolCalls ?? []).filter((c) => AGENT_TOOLS.has(c.name));
    if (calls.length < 3) return;
    const shared = family(this.#agent.id);
    this.#families.push(shared);
    const first = nodes.findIndex((n) => n.dataset.call === calls[0].id);
    for (const n of nodes) if (calls.some((c) => c.id === n.dataset.call)) n.hidden = true;
    nodes.splice(first, 0, h('li', shared.node));
  }

  // members redraws the cards of agents: called when agents changed.
  members() {
    for (const f of this.#families) f.draw();
  }

  // forget greys what a rewind took out of the context.
  #forget(rewind) {
    for (const { record, nodes } of this.#records) {
      if (record.seq > rewind.to && record.seq < rewind.seq) for (const n of nodes) n.classList.add('forgotten');
    }
  }

  #trim() {
    while (this.#records.length > MOST) {
      this.#letGo(this.#records.splice(0, STEP));
      this.#before = this.#records[0].record.seq;
    }
  }

  // trimEnd lets go of the newest records, and of what streams behind them, while the reader is far above.
  #trimEnd() {
    while (this.#records.length > MOST) {
      const gone = this.#records.splice(-STEP);
      this.#below.push(gone.at(-1).record.seq);
      this.#letGo(gone);
    }
    if (!this.#below.length) return;
    this.#text.clear();
    for (const node of this.#live.values()) node.remove();
    this.#live.clear();
    this.#offer();
  }

  // letGo removes records from the page. A call whose result stays keeps its card: the result would not come again.
  #letGo(gone) {
    const results = new Set(this.#records.map(({ record }) => record.toolCallId));
    for (const { record, nodes } of gone) {
      for (const node of nodes) node.remove();
      for (const call of record.toolCalls ?? []) if (!results.has(call.id)) this.#cards.delete(call.id);
    }
    this.#families = this.#families.filter((f) => f.node.isConnected);
  }

  // older reads the page before the first record, newer what was let go behind the last one. Neither moves what is
  // on the screen.
  async #older() {
    const before = this.#before;
    if (before === null || this.#closed || this.reading) return;
    this.reading = true;
    let page = null;
    try {
      page = await this.#page(before, STEP);
    } catch (err) {
      failed(err);
    }
    this.reading = false;
    if (!page || this.#closed) return;
    if (this.#before === before) this.#above(page);
    else this.#scrolled(); // the first record is another one now, and this page is not the one before it
  }

  // above shows a page before the first record.
  #above(page) {
    const first = this.list.firstElementChild;
    this.#still(first, () => {
      const made = page.records.map((record) => ({ record, nodes: this.#make(record) }));
      this.list.prepend(...made.flatMap((m) => m.nodes));
      this.#records.unshift(...made);
      for (const { record } of this.#records) if (record.type === 'rewind') this.#forget(record);
      this.#before = page.before;
      this.#trimEnd();
    });
  }

  async #newer() {
    const below = this.#below.at(-1);
    if (!below || this.#closed || this.reading) return;
    this.reading = true;
    try {
      const page = await this.#page(below + 1, STEP);
      if (this.#closed || this.#below.at(-1) !== below) return;
      const { record: last } = this.#records.at(-1);
      this.#still(this.list.lastElementChild, () => {
        for (const record of page.records) if (record.seq > last.seq) this.#append(record);
        this.#trim();
      });
      this.#below.pop();
      this.#offer();
    } catch (err) {
      failed(err);
    } finally {
      this.reading = false;
    }
    if (!this.#below.length) {
      this.refresh();
      this.draft();
    }
  }

  // still makes a change without moving an item on the screen.
  #still(item, change) {
    const place = item?.getBoundingClientRect().top;
    change();
    if (item?.isConnected) this.node.scrollTop += item.getBoundingClientRect().top - place;
  }

  // scrolled follows the end again when it is in view; only scrolling up ends that, not what grows below.
  #scrolled() {
    const top = this.node.scrollTop;
    const left = this.node.scrollHeight - top - this.node.clientHeight;
    const near = left < END && !this.#below.length;
    if (near) this.#seen();
    if (near || top < this.#top - 2) this.#atEnd = near;
    this.#top = top;
    if (top < NEAR) this.#older();
    else if (left < NEAR) this.#newer();
  }

  #count(fresh) {
    const said = fresh.filter((r) => (r.type === 'assistant_message' && r.text) || (r.type === 'user_message' && !r.silent)).length;
    if (this.#atEnd) this.toEnd();
    else {
      this.#unseen += said;
      this.#offer();
    }
  }

  // offer shows the way to the end, where there is something that was not seen or was let go.
  #offer() {
    this.newer.textContent = this.#unseen ? `${this.#unseen} new` : 'To the newest';
    this.newer.hidden = !this.#unseen && !this.#below.length;
  }

  #seen() {
    this.#unseen = 0;
    this.#offer();
  }

  // toEnd goes to the end and follows it.
  toEnd() {
    if (this.#below.length) {
      this.load();
      return;
    }
    this.#atEnd = true;
    this.#seen();
    this.node.scrollTop = this.node.scrollHeight;
  }

  #follow() {
    if (this.#atEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  get atEnd() {
    return this.#atEnd && !document.hidden;
  }

  // draft fills in the answer under way from what is on disk: at the beginning, and where pieces were missed.
  async draft() {
    const draft = await get(agentPath(this.#agent.id, '/draft')).catch(() => null);
    if (!draft?.turn || this.#closed || this.#below.length) return;
    this.#text.fill('message.thinking', draft.thinking ?? '');
    this.#text.fill('message.delta', draft.text);
  }

  // take shows an event of the agent. Far above the end only the number of new answers changes.
  take(e) {
    if (this.#below.length && e.type !== 'file.edited') {
      if (e.type === 'turn.finished') this.#unseen++;
      this.#offer();
      return;
    }
    switch (e.type) {
      case 'message.delta':
      case 'message.thinking':
        if (this.#text.piece(e.type, e.offset, e.text)) this.draft();
        break;
      case 'tool.started':
        this.#started(e);
        break;
      case 'tool.progress':
        this.#cards.get(e.toolCallId)?.progress(e.text);
        break;
      case 'sub_agent_start':
        this.#cards.get(e.toolCallId)?.child(agentOf(e.subAgentId));
        break;
      case 'sub_agent_progress':
        if (e.event?.type === 'tool.started') this.#cards.get(e.toolCallId)?.progress(`${callLine(e.event)}\n`);
        break;
      case 'tool.finished':
        this.#cards.get(e.toolCallId)?.finish({ status: e.status, text: e.output, ms: e.ms });
        this.refresh();
        break;
      case 'retry':
        if (e.discard) this.#text.clear();
        break;
      case 'turn.finished':
        if (e.reason === 'done') announce(`${plain(this.#agent.handle)} has answered`);
        this.refresh();
        break;
      case 'file.edited':
        if (e.file?.endsWith('history.jsonl')) this.load();
        break;
      default:
        if (/^(turn|item|agent|permission|outbox|message)/.test(e.type)) this.refresh();
    }
  }

  // started shows a call before its record is read.
  #started(e) {
    this.#text.settle();
    if (this.#cards.get(e.toolCallId)) return;
    const card = this.#cards.of({ id: e.toolCallId, name: e.name, arguments: e.arguments });
    this.#live.set(e.toolCallId, card.item);
    this.list.append(card.item);
    this.refresh();
  }
}
