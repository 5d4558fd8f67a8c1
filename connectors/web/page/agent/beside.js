// What is beside a transcript: the inbox, the agents it started, context, cost and permissions.
import { exact, h, icon, named, plain, sign, svg } from '../dom.js';
import { get, post, del, agentPath } from '../api.js';
import { agentOf, childrenOf } from '../store.js';
import { doing, keyOf, nameOf, titleOf, urlOf, WORDS } from '../state.js';
import { ago, count, hour, money, short, when } from '../format.js';
import { announce, ask, failed, toast } from '../dialog.js';
import { redrawIf } from '../redraw.js';
import { wayOf } from './composer.js';

// UNDO_MS is how long what was dropped can be posted again, in milliseconds: enough to find the button by keys.
const UNDO_MS = 15_000;

// PARTS are the parts of a context as the API names them and as they are shown, in the order in which the model
// reads them.
const PARTS = [
  ['system', 'system prompt'],
  ['tools', 'tools'],
  ['memory', 'memory'],
  ['summary', 'summary'],
  ['messages', 'messages'],
  ['answers', 'answers'],
  ['calls', 'calls'],
  ['results', 'results'],
];

export class Beside {
  #id;
  #items = [];

  // changed is called with the items when the inbox changed.
  constructor(agent, changed) {
    this.#id = agent.id;
    this.changed = changed;
    this.inbox = h('section');
    this.family = h('section');
    this.context = h('section');
    this.cost = h('section');
    this.grants = h('section');
    this.node = h(
      'aside.beside',
      { 'aria-label': `About ${plain(titleOf(agent))}` },
      this.inbox,
      this.family,
      this.context,
      this.cost,
      this.grants,
    );
  }

  // read asks for everything that agents do not carry themselves.
  read() {
    this.readInbox();
    this.readGrants();
    this.readContext();
  }

  async readInbox() {
    const answer = await get(agentPath(this.#id, '/inbox')).catch(() => null);
    if (!answer) return;
    this.#items = answer.items;
    this.#drawInbox();
    this.changed(this.#items);
  }

  #drawInbox() {
    const agent = agentOf(this.#id);
    if (!agent) return;
    const waiting = this.#items.filter((i) => i.state === 'waiting');
    const age = waiting.length ? ago(waiting[0].at) : '';
    redrawIf(this.inbox, [this.#items, agent.queue, age], () => [
      h('h2', 'Inbox', waiting.length ? h('span.chip.queued', `${waiting.length} · oldest ${age}`) : h('span.quiet.small', 'empty')),
      ...this.#items.map((item) => this.#item(agent, item)),
    ]);
  }

  #item(agent, item) {
    const taken = item.state !== 'waiting';
    const text = item.text || item.type.replaceAll('_', ' ');
    const how = taken ? 'being worked on' : item.type === 'message' ? wayOf(agent, item) : item.type.replaceAll('_', ' ');
    return h(
      'div.item',
      { 'data-key': item.id },
      h('span', named(text.slice(0, 400))),
      h('small', `${how} · `, when(item.at)),
      taken
        ? null
        : h(
            'div',
            h(
              'button.tap',
              { type: 'button', 'aria-label': 'Move to the front', title: 'Move to the front', onclick: () => this.#front(item) },
              icon('front'),
            ),
            h('button.tap', { type: 'button', 'aria-label': 'Drop', title: 'Drop', onclick: () => this.#drop(item) }, icon('close')),
          ),
    );
  }

  async #front(item) {
    try {
      await post(agentPath(this.#id, `/inbox/${item.id}/front`));
      announce('Moved to the front');
    } catch (err) {
      failed(err);
    }
    this.readInbox();
  }

  // drop removes an item; for some seconds it can be posted again, unless its text is not all of it: then it asks first. The
  // next one gets the focus.
  async #drop(item) {
    const body = 'It has files, is from someone else, or is answered elsewhere. The page cannot post it again.';
    if (item.more && !(await ask({ title: 'Drop this message?', body, yes: 'Drop', danger: true }))) return;
    if (!(await this.remove(item))) return;
    const after = this.inbox.querySelector('.item .tap') ?? this.inbox;
    after.focus?.();
    const undo = { label: 'Undo', run: () => this.#post(item) };
    toast('Dropped', { action: item.type === 'message' && !item.more ? undo : undefined, ms: UNDO_MS });
  }

  async #post(item) {
    try {
      await post(agentPath(this.#id, '/messages'), { text: item.text, ...(item.queue ? { queue: item.queue } : {}) });
    } catch (err) {
      failed(err);
    }
    this.readInbox();
  }

  // remove takes an item out of the inbox and reports whether it was still there.
  async remove(item) {
    let removed = true;
    try {
      await del(agentPath(this.#id, `/inbox/${item.id}`));
    } catch (err) {
      failed(err);
      removed = false;
    }
    await this.readInbox();
    return removed;
  }

  async readContext() {
    const sizes = await get(agentPath(this.#id, '/context')).catch(() => null);
    this.parts = sizes ? PARTS.map(([key, part]) => ({ part, tokens: sizes[key] ?? 0 })).filter((p) => p.tokens > 0) : [];
    this.draw();
  }

  async readGrants() {
    const set = await get(agentPath(this.#id, '/grants')).catch(() => null);
    if (!set) return;
    const own = (set.grants ?? []).map((g) => ({ tag: g.tag, at: g.at, by: g.by, once: Boolean(g.sha256) }));
    redrawIf(this.grants, own, () => [
      h('h2', 'Permissions', h('a.small.aim', { href: `/files/${this.#id}/state.json` }, 'state.json')),
      own.length
        ? h(
            'dl.pairs',
            own.flatMap((g) => [
              h('dt', h('code.cut', { title: plain(g.by ? `${g.tag}, by ${g.by}` : g.tag) }, exact(g.tag)), g.once && ' (one exact call)'),
              h(
                'dd',
                hour(g.at),
                h(
                  'button.tap',
                  { type: 'button', 'aria-label': `Revoke ${plain(g.tag)}`, title: 'Revoke', onclick: () => this.#revoke(g) },
                  icon('close'),
                ),
              ),
            ]),
          )
        : h('p.quiet.small', 'Its workspace; it asks for everything else.'),
    ]);
  }

  // revoke offers to undo it, unless that would give more back: a permission for one exact call cannot be granted anew.
  async #revoke({ tag, once }) {
    const undo = {
      label: 'Undo',
      run: () =>
        post(agentPath(this.#id, '/grants'), { permission: tag })
          .catch(failed)
          .then(() => this.readGrants()),
    };
    try {
      await del(agentPath(this.#id, `/grants?permission=${encodeURIComponent(tag)}`));
      toast(`Revoked ${tag}`, once ? {} : { action: undo });
    } catch (err) {
      failed(err);
    }
    this.readGrants();
  }

  // draw shows what the agent itself says: its agents, context and cost.
  draw() {
    const agent = agentOf(this.#id);
    if (!agent) return;
    this.#drawInbox();
    this.#drawFamily();
    this.#drawContext(agent);
    this.#drawCost(agent);
  }

  #drawFamily() {
    const all = childrenOf(this.#id);
    this.family.hidden = all.length === 0;
    redrawIf(
      this.family,
      all.map((a) => [a.handle, a.name, keyOf(a), doing(a)]),
      () => [
        h('h2', 'Its agents', h('span.quiet.small', all.length)),
        h(
          'div.kin',
          all
            .slice(0, 30)
            .map((a) =>
              h(
                'a',
                { href: urlOf(a), title: titleOf(a), 'data-key': a.id },
                sign(keyOf(a), WORDS[keyOf(a)]),
                h('span.cut', h('span.mono.quiet', a.handle), ' ', nameOf(a)),
                h('span.quiet.small.cut', doing(a).code ?? doing(a).text),
              ),
            ),
        ),
      ],
    );
  }

  #drawContext(agent) {
    this.context.hidden = !agent.context;
    if (!agent.context) return;
    const parts = this.parts ?? [];
    redrawIf(this.context, [agent.context, agent.window, parts], () => [
      h(
        'h2',
        'Context',
        h('span.second.small', agent.window ? `${short(agent.context)} of ${short(agent.window)}` : `${short(agent.context)} tokens`),
      ),
      agent.window ? stack(parts.length ? parts : [{ part: '', tokens: agent.context }], agent.window) : null,
      parts.length
        ? h(
            'dl.pairs',
            parts.flatMap((p, i) => [h('dt', h(`span.dot.c${i % 7}`), p.part), h('dd', count(p.tokens))]),
          )
        : null,
    ]);
  }

  #drawCost(agent) {
    const below = agent.cost - (agent.ownCost ?? agent.cost);
    redrawIf(this.cost, [agent.cost, agent.ownCost, agent.budget], () => [
      h('h2', 'Cost', h('span.second.small', money(agent.cost))),
      agent.budget ? stack([{ part: 'spent', tokens: agent.cost }], agent.budget) : null,
      h(
        'dl.pairs',
        h('dt', 'itself'),
        h('dd', money(agent.ownCost ?? agent.cost)),
        below > 0 ? [h('dt', 'its agents'), h('dd', money(below))] : null,
        agent.budget
          ? [h('dt', `of its budget of ${money(agent.budget)}`), h('dd', `${money(Math.max(0, agent.budget - agent.cost))} left`)]
          : null,
      ),
    ]);
  }
}

// stack is a bar of parts {part, tokens} of a whole.
export function stack(parts, whole) {
  let x = 0;
  const rects = parts.map((p, i) => {
    const width = Math.min(100 - x, (100 * p.tokens) / whole);
    const rect = svg(
      'rect',
      { class: `c${i % 7}`, x, width: Math.max(0, width - 0.2), height: 8 },
      p.part ? svg('title', {}, `${p.part}: ${count(Math.round(p.tokens))}`) : null,
    );
    x += width;
    return rect;
  });
  return svg(
    'svg',
    { class: 'stack', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'c7', width: 100, height: 8 }),
    rects,
  );
}
