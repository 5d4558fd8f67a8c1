// Agent: its conversation, live; what is written to it; what waits, what it costs, what it may do.
import { fill, h, icon, plain, sign } from '../dom.js';
import { get, agentPath } from '../api.js';
import { agentOf, askOf, ready as loaded, subscribe } from '../store.js';
import { doing, keyOf, markRead, nameOf, titleOf, WORDS } from '../state.js';
import { Stream } from '../events.js';
import { on } from '../live.js';
import { Transcript } from '../agent/transcript.js';
import { working } from '../agent/working.js';
import { Composer } from '../agent/composer.js';
import { Beside } from '../agent/beside.js';
import * as actions from '../agent/actions.js';
import { showWhy } from '../agent/why.js';
import { COMPACTED, meter } from '../meter.js';
import { open } from '../dialog.js';
import { setHeading } from '../frame.js';
import { go } from '../router.js';
import { redraw, redrawIf } from '../redraw.js';

// NAMED_BY_TASKS are the types of agents that have the name of what they run for.
const NAMED_BY_TASKS = ['cron', 'heartbeat'];

export function title(params) {
  const agent = agentOf(params.path[0] ?? '');
  return agent ? titleOf(agent) : 'Agent';
}

export function render(params) {
  return new AgentView(params.path[0] ?? '', params).view();
}

class AgentView {
  #ref;
  #off = [];
  #stream = null;
  #agent = null;
  #items = [];
  #models = null;
  #retry = null;
  #begun = false; // everything was read

  constructor(ref, params) {
    this.#ref = ref;
    this.params = params;
    this.node = h('div.agent');
  }

  view() {
    this.#off.push(
      subscribe('agents', () => this.#changed()),
      subscribe('asks', () => this.#changed()),
      on('state', (s) => this.#connected(s)),
    );
    this.#changed();
    const visible = () => this.#watch();
    document.addEventListener('visibilitychange', visible);
    this.#off.push(() => document.removeEventListener('visibilitychange', visible));
    return {
      node: this.node,
      ready: () => this.transcript?.toEnd(),
      update: (p) => this.#update(p),
      again: () => this.#again(),
      close: () => this.#close(),
      keys: this.#keys(),
      actions: () => this.#actions(),
    };
  }

  #close() {
    this.#off.forEach((off) => off());
    this.#stream?.stop();
    this.transcript?.close();
    this.composer?.keep();
  }

  #update(params) {
    if ((params.path[0] ?? '') !== this.#ref) return false;
    this.#why(params);
    return true;
  }

  // changed draws what the store knows, and the whole view once the agent is known.
  #changed() {
    const agent = agentOf(this.#agent?.id ?? this.#ref);
    if (!agent) {
      if (loaded()) this.#missing();
      return;
    }
    if (!this.#agent) this.#begin(agent);
    this.#agent = agent;
    this.#drawHead();
    this.#drawState();
    this.composer.draw();
    this.beside.draw();
    this.transcript.members();
    if (this.transcript.atEnd) markRead(agent);
  }

  #missing() {
    if (this.#agent)
      fill(this.node, [
        h(
          'div.empty',
          h('h1', 'This agent was removed'),
          h('p', 'It is in the trash. You can restore it from there.'),
          h('a.btn', { href: '/trash' }, 'Trash'),
        ),
      ]);
    else
      fill(this.node, [
        h('div.empty', h('h1', 'No such agent'), h('p', `Nothing has the handle ${plain(this.#ref)}.`), h('a.btn', { href: '/' }, 'Home')),
      ]);
  }

  #begin(agent) {
    this.#agent = agent;
    this.head = h('header.head');
    this.state = h('div', { 'aria-live': 'off' });
    this.transcript = new Transcript(agent, {
      actionsOf: (r) => this.#buttons(r),
      loaded: () => {
        if (this.transcript.atEnd) markRead(this.#agent);
      },
    });
    this.transcript.node.append(h('div.entries-end', this.state));
    this.beside = new Beside(agent, (items) => {
      this.#items = items.filter((i) => i.state === 'waiting');
      this.composer.drawWaiting(this.#agent, items);
      this.#drawHead();
    });
    this.composer = new Composer(agent, {
      takeBack: (item) => this.beside.remove(item),
      sent: () => {
        this.transcript.toEnd();
        this.beside.readInbox();
      },
    });
    fill(this.node, [this.head, this.transcript.node, this.beside.node, this.composer.node]);
    this.composer.load();
    this.#watch();
    get('/v1/models').then(
      (m) => {
        this.#models = m.models;
        this.#drawHead();
      },
      () => {},
    );
  }

  // watch follows the agent word by word while the page is visible; a hidden one reads again when it is shown.
  #watch() {
    if (!this.#agent) return;
    if (document.hidden) {
      this.composer.keep(); // a page that is loaded anew or closed is hidden first
      this.#stream?.stop();
      this.#stream = null;
      this.#first();
      return;
    }
    if (this.#stream) return;
    this.#stream = new Stream(`/v1/events?agent=${this.#agent.id}`, {
      event: (e) => this.#take(e),
      gap: () => this.transcript.refresh(),
      state: (s) => {
        if (s.live || !this.#begun) this.#resync();
      },
      refused: () => {},
    });
    this.#stream.start();
  }

  // first reads everything, once: when the stream of the agent is there, so that nothing is missed and nothing has
  // to be read twice.
  #first() {
    if (this.#begun) return false;
    this.#begun = true;
    this.transcript.load().then(() => this.#why(this.params));
    this.beside.read();
    return true;
  }

  // resync reads what happened before the stream of the agent began.
  #resync() {
    if (this.#first()) return;
    this.transcript.refresh();
    this.transcript.draft();
    this.beside.readInbox();
  }

  #again() {
    this.#resync();
    this.beside.read();
  }

  #connected(s) {
    this.composer?.draw();
    if (s.live && this.#stream) this.#stream.retry();
  }

  #take(e) {
    if (e.type === 'retry') this.#retry = { ...e, until: Date.parse(e.at) + e.inMs };
    else if (/^(message|tool|turn)\./.test(e.type)) this.#retry = null;
    this.transcript.take(e);
    if (/^(item|turn)\./.test(e.type)) this.beside.readInbox();
    if (/^permission\.(granted|revoked|decided)$/.test(e.type)) this.beside.readGrants();
    if (e.type === 'turn.finished' || e.type === 'agent.compacted') this.beside.readContext();
    if (!e.type.startsWith('message.') && e.type !== 'tool.progress') this.#drawState();
  }

  #drawHead() {
    const a = this.#agent;
    const key = keyOf(a);
    const busy = key === 'work' || key === 'retry' || key === 'ask';
    const shown = JSON.stringify([
      key,
      a.name,
      a.handle,
      a.context,
      a.window,
      a.model,
      a.channelId,
      this.#items.length,
      Boolean(this.#models),
    ]);
    if (this.shown === shown) return;
    this.shown = shown;
    setHeading(titleOf(a));
    redraw(this.head, [
      h('h1', sign(key, WORDS[key]), h('span.mono', a.handle), h('span.cut', { title: titleOf(a) }, nameOf(a))),
      a.connector ? h('span.chip.roomy', plain(`${a.connector}:${a.channelId}`).slice(0, 40)) : null,
      h('span.grow'),
      a.window
        ? h('span.context.roomy', `Context ${Math.round((100 * (a.context ?? 0)) / a.window)}%`, meter((a.context ?? 0) / a.window, { tick: COMPACTED }))
        : null,
      this.#models ? h('span.roomy', { 'data-key': 'model' }, this.#modelChoice(a)) : null,
      this.#headButton('fork', 'Fork', () => actions.fork(a)),
      this.#headButton('rewind', 'Rewind', () => actions.rewind(a)),
      this.#headButton('mark', 'Mark', () => actions.mark(a)),
      busy
        ? h('button.btn.bad', { type: 'button', 'data-key': 'stop', onclick: () => actions.stop(this.#agent) }, icon('stop'), 'Stop')
        : null,
      h(
        'button.btn.narrow',
        { type: 'button', 'data-key': 'about', onclick: () => this.#about() },
        this.#items.length ? `${this.#items.length} waiting` : 'About',
      ),
    ]);
  }

  #headButton(name, label, run) {
    return h('button.btn.roomy', { type: 'button', 'data-key': name, onclick: run }, icon(name), label);
  }

  #modelChoice(agent) {
    const all = this.#models;
    const known = all.some((m) => m.model === agent.model || m.choice === agent.model);
    return h(
      'select.in',
      { 'aria-label': 'Model', onchange: (e) => actions.chooseModel(agent, e.target.value) },
      known ? null : h('option', { value: '', selected: true, disabled: true }, plain(agent.model)),
      h('option', { value: 'default' }, 'as in the settings'),
      all.map((m) => h('option', { value: m.choice, selected: m.model === agent.model || m.choice === agent.model }, plain(m.model))),
    );
  }

  // about shows what is beside the transcript where there is no room for it.
  #about() {
    const dialog = open(
      'sheet',
      `About ${titleOf(this.#agent)}`,
      h(
        'div.head',
        h('h1', 'About ', plain(this.#agent.handle)),
        h('span.grow'),
        h('button.tap', { type: 'button', 'aria-label': 'Close', onclick: () => dialog.close() }, icon('close')),
      ),
      h(
        'div.bar.pads',
        ['fork', 'rewind', 'mark'].map((name) =>
          h(
            'button.btn',
            {
              type: 'button',
              onclick: () => {
                dialog.close();
                actions[name](this.#agent);
              },
            },
            icon(name),
            name[0].toUpperCase() + name.slice(1),
          ),
        ),
        this.#models ? this.#modelChoice(this.#agent) : null,
      ),
      this.beside.node,
    );
    dialog.addEventListener('close', () => this.transcript.node.after(this.beside.node));
  }

  // drawState is the line behind the transcript: what the agent does now.
  #drawState() {
    const agent = this.#agent;
    const key = keyOf(agent);
    const does = doing(agent);
    const text = this.#retry
      ? `tries again, ${this.#retry.n} of ${this.#retry.of}: ${plain(this.#retry.reason)}`
      : `${does.text}${does.code ?? ''}`;
    const quiet = key === 'idle' || key === 'new';
    const ask = askOf(agent.id);
    redrawIf(this.state, [quiet, text, agent.since, key, ask?.token], () => (quiet ? [] : [working(text, agent.since, key, ask)]));
  }

  // buttons are those at a record: why, fork, rewind.
  #buttons(record) {
    if (record.type !== 'user_message' && !(record.type === 'assistant_message' && record.text)) return null;
    const why = record.item ?? record.turn;
    return h(
      'div.acts-at',
      why ? actions.button('why', 'Why', () => this.#openWhy(why)) : null,
      actions.button('fork', `Fork at #${record.seq}`, () => actions.fork(this.#agent, record.seq)),
      actions.button('rewind', `Rewind to #${record.seq}`, () => actions.rewind(this.#agent, record.seq)),
    );
  }

  #openWhy(id) {
    go(`${location.pathname}?why=${encodeURIComponent(id)}`);
  }

  #why(params) {
    const id = params.query.get('why');
    if (!id || this.whyShown === id) return;
    this.whyShown = id;
    showWhy(id, this.#agent, () => {
      this.whyShown = '';
      go(location.pathname, { replace: true });
    });
  }

  #keys() {
    return [
      { key: 'm', label: 'Write', run: () => this.composer?.text.focus() },
      { key: 'x', label: 'Stop', action: true, danger: true, icon: 'stop', run: () => actions.stop(this.#agent) },
      { key: 'w', label: 'Why the newest answer', action: true, icon: 'why', run: () => this.#whyNewest() },
    ];
  }

  async #whyNewest() {
    const page = await get(agentPath(this.#agent.id, '/history?limit=50'));
    const turn = page.records.findLast((r) => r.turn)?.turn;
    if (turn) this.#openWhy(turn);
  }

  #actions() {
    const agent = this.#agent;
    if (!agent) return [];
    return [
      { label: 'Fork this agent', icon: 'fork', run: () => actions.fork(agent) },
      { label: 'Set a checkpoint', icon: 'mark', run: () => actions.mark(agent) },
      ...(NAMED_BY_TASKS.includes(agent.type) ? [] : [{ label: 'Rename this agent', icon: 'info', run: () => actions.rename(agent) }]),
      { label: 'Compact its context', icon: 'info', run: () => actions.compact(agent) },
      { label: 'Files of this agent', icon: 'files', run: () => go(`/files/${agent.id}/state.json`) },
      { label: 'Rewind: undo the newest turn', icon: 'rewind', danger: true, run: () => actions.rewind(agent) },
      { label: 'Take back files that it wrote in rewound turns', icon: 'rewind', danger: true, run: () => actions.undo(agent) },
      { label: 'Start a new conversation', icon: 'rewind', danger: true, run: () => actions.reset(agent) },
    ];
  }
}
