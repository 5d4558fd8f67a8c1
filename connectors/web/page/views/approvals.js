// Approvals: what agents ask to be allowed, exactly, and the answers. Nothing is answered by accident: a request
// opens only when it is chosen, and an answer counts only after all of it was seen.
import { exact, exactText, fill, h, icon, named, plain, sign, unseenIn } from '../dom.js';
import { get, post } from '../api.js';
import { agentOf, openAsks, ready as loaded, subscribe } from '../store.js';
import { firstLine, titleOf, urlOf, WORDS } from '../state.js';
import { absolute, at, hour, since, until, when } from '../format.js';
import { announce, failed } from '../dialog.js';
import { go } from '../router.js';
import { inField } from '../keys.js';
import { redraw, redrawIf } from '../redraw.js';
import { disable, enable, enabled, possible } from '../notify.js';

export const title = 'Approvals';

// SEEN_MS is how long a request must have been visible before an answer counts, in milliseconds.
const SEEN_MS = 400;

const KEYS = { once: 'o', always: 'a', prefix: 'p', deny: 'd' };
const LABELS = { once: 'Once', always: 'Always', prefix: 'Prefix', deny: 'Deny' };
const MEANING = {
  once: 'Exactly this call, one time. Another word, folder or host needs a new approval.',
  deny: 'The agent continues without it, and cannot ask for the same again until you write to it.',
};
const DONE = {
  once: 'Allowed once',
  always: 'Always allowed',
  prefix: 'Allowed, with commands that begin like it',
  deny: 'Denied',
  expired: 'Expired',
};

export function render(params) {
  return new Approvals(params).view();
}

class Approvals {
  #off = [];
  #ask = null; // the request that is read
  #answered = null; // {decision, by, at} of it, once it is
  #busy = false;
  #seen = 0; // since when all of it was visible, in ms; 0: not yet
  #decided = [];
  #observer = null;

  constructor(params) {
    this.list = h('div.list');
    this.detail = h('section.detail', { 'aria-label': 'Request', tabindex: -1 });
    this.node = h('div.two', this.list, this.detail);
    this.params = params;
  }

  view() {
    this.#off.push(
      subscribe('asks', () => this.#changed()),
      subscribe('agents', () => this.#drawList()),
    );
    const hidden = () => this.#watchEnd();
    document.addEventListener('visibilitychange', hidden);
    this.#off.push(() => document.removeEventListener('visibilitychange', hidden));
    this.#choose(this.params.path[0]);
    this.#readDecided();
    return {
      node: this.node,
      update: (params) => {
        this.#choose(params.path[0]);
        return true;
      },
      event: (e) => this.#take(e),
      again: () => this.#readDecided(),
      close: () => {
        this.#off.forEach((off) => off());
        this.#observer?.disconnect();
        clearTimeout(this.timer);
      },
      keys: [
        ...Object.entries(KEYS).map(([decision, key]) => ({
          key,
          label: decision === 'prefix' ? 'Allow commands that begin like it' : LABELS[decision],
          run: () => this.#answer(decision),
        })),
        { key: 'j', label: 'Next request', run: () => this.#step(1) },
        { key: 'k', label: 'Previous request', run: () => this.#step(-1) },
      ],
    };
  }

  #take(e) {
    if (e.type !== 'permission.decided') return;
    if (e.token === this.#ask?.token && !this.#answered) this.#ended({ decision: e.decision, by: e.by, at: e.at });
    this.#readDecided();
  }

  async #readDecided() {
    const answer = await get('/v1/permissions?state=decided&limit=20').catch(() => null);
    this.#decided = (answer?.permissions ?? []).filter((p) => p.decision);
    this.#changed();
  }

  #changed() {
    if (!this.#ask && this.token) this.#choose(this.token);
    else this.#drawList();
  }

  // choose shows a request. One that comes in never takes its place.
  #choose(token) {
    this.token = token;
    const ask = token ? (openAsks().find((a) => a.token === token) ?? this.#decided.find((a) => a.token === token)) : null;
    if (ask && ask.token === this.#ask?.token) return;
    this.#ask = ask ?? null;
    this.#answered = ask?.decision ? { decision: ask.decision, by: ask.decidedBy ?? ask.by, at: ask.decidedAt } : null;
    this.#drawList();
    this.#drawDetail();
  }

  #drawList() {
    const asks = openAsks();
    const names = [...asks, ...this.#decided].map((a) => titleOf(agentOf(a.agentId)));
    const state = [
      asks.map((a) => a.token),
      this.#decided.map((a) => [a.token, a.decision]),
      names,
      this.#ask?.token,
      possible() && enabled(),
    ];
    redrawIf(this.list, state, () => [
      h(
        'div.head',
        h('h1', 'Approvals'),
        h('span.quiet', asks.length ? `${asks.length} to answer` : ''),
        h('span.grow'),
        this.#notifyButton(),
      ),
      asks.length
        ? h(
            'ul',
            asks.map((a) => this.#row(a, sign('ask', WORDS.ask), firstLine(a.shown ?? exactText(a.request)))),
          )
        : h('p.hint.pad8', 'No pending approvals.'),
      this.#decided.length ? h('h2', 'Answered') : null,
      this.#decided.length
        ? h(
            'ul',
            this.#decided.map((a) =>
              this.#row(
                a,
                icon(a.decision === 'deny' ? 'close' : a.decision === 'expired' ? 'clocks' : 'check', DONE[a.decision]),
                `${firstLine(a.shown ?? exactText(a.request))}`,
                `${DONE[a.decision] ?? a.decision}${a.decidedBy ? `, ${plain(a.decidedBy)}` : ''}`,
              ),
            ),
          )
        : null,
    ]);
  }

  #row(ask, mark, line, note) {
    const agent = agentOf(ask.agentId);
    return h(
      'li',
      { 'data-key': ask.token },
      h(
        'a.request',
        { href: `/approvals/${ask.token}`, 'aria-current': this.#ask?.token === ask.token ? 'true' : null },
        mark,
        h(`${note ? 'span' : 'strong'}.cut`, agent ? titleOf(agent) : 'a removed agent'),
        note ? at(ask.decidedAt ?? ask.askedAt) : when(ask.askedAt),
        h('code.line2.cut', line),
        note ? h('span.line2', note) : null,
      ),
    );
  }

  #notifyButton() {
    if (!possible() || Notification.permission === 'denied') return null;
    const on = enabled();
    return h(
      'button.btn.small',
      {
        type: 'button',
        'aria-pressed': String(on),
        onclick: async () => {
          if (on) disable();
          else await enable();
          this.#drawList();
        },
      },
      on ? 'Notifications on' : 'Notify me',
    );
  }

  #drawDetail() {
    const ask = this.#ask;
    this.#seen = 0;
    this.#busy = false;
    if (!ask) {
      const waiting = openAsks().length;
      fill(this.detail, [
        h(
          'p.hint',
          this.token && loaded()
            ? 'This request is no longer open.'
            : waiting
              ? 'Choose a request to read it.'
              : 'When an agent needs a permission that it does not have, its request appears here, exactly as it would be carried out.',
        ),
      ]);
      return;
    }
    const agent = agentOf(ask.agentId);
    this.choices = h('div.choices');
    this.end = h('span');
    this.hint = h('p.quiet.small', { 'aria-live': 'polite' });
    fill(this.detail, [
      h(
        'div.head',
        h('p', agent ? h('a', { href: urlOf(agent) }, titleOf(agent)) : 'A removed agent', this.#lineage(ask, agent)),
        h('span.grow'),
        h(
          'span.quiet.small',
          'asked ',
          h('time', { datetime: ask.askedAt, title: absolute(ask.askedAt) }, since(ask.askedAt)),
          ask.expiresAt ? ` · expires ${until(ask.expiresAt)}` : '',
        ),
      ),
      h('h2.as-h1', 'Asks for ', h('code', exact(ask.permission))),
      ask.reason ? [h('h3', 'Reason'), h('p.quote', exact(ask.reason))] : null,
      h('h3', 'Exactly this'),
      this.#exactly(ask),
      this.choices,
      this.hint,
      h('p.quiet.small', h('kbd', 'j'), ' ', h('kbd', 'k'), ' next, previous'),
    ]);
    this.detail.scrollTop = 0;
    this.#drawChoices();
    this.#watchEnd();
  }

  #lineage(ask, agent) {
    const above = (ask.lineage ?? []).map((id) => agentOf(id)).filter(Boolean);
    const parent = above.length ? above : [agentOf(agent?.parentAgentId ?? '')].filter(Boolean);
    return parent.flatMap((a) => [' works for ', h('a', { href: urlOf(a) }, titleOf(a))]);
  }

  // exactly is the request as text, line by line, with its facts below. What the server names as invisible is
  // named here as well; where the two differ, the server's text is shown.
  #exactly(ask) {
    const same = !ask.shown || exactText(ask.request) === ask.shown;
    const text = (same ? ask.request : ask.shown).replace(/\n$/, '');
    const change = ask.kind === 'diff';
    const lines = text.split('\n').map((line) => h(`span.line${change ? kindOf(line) : ''}`, exact(line), '\n'));
    const facts = (ask.facts ?? []).filter((f) => f.name !== 'reason' && !(f.name === 'permission' && f.value === ask.permission));
    if (ask.sha256) facts.push({ name: 'hash', value: `${ask.sha256.slice(0, 8)} ${ask.sha256.slice(8, 16)}` });
    const untrusted = facts.filter((f) => f.name === 'untrusted').map((f) => f.value);
    return h(
      'div.asked',
      h('pre', { tabindex: 0, role: 'region', 'aria-label': 'The whole request' }, lines, this.end),
      warning(unseenLine(ask)),
      warning(untrusted.join('; ')),
      h(
        'dl',
        facts
          .filter((f) => f.name !== 'untrusted')
          .flatMap((f) => [h('dt', f.name[0].toUpperCase() + f.name.slice(1)), h('dd', named(f.value))]),
      ),
    );
  }

  // watchEnd finds out when all of the request was seen: its end was on the screen, and the page was visible for
  // SEEN_MS after that.
  #watchEnd() {
    this.#observer?.disconnect();
    clearTimeout(this.timer);
    if (!this.#ask || this.#answered || this.#seen || document.hidden) return;
    this.#observer = new IntersectionObserver((entries) => {
      clearTimeout(this.timer);
      const visible = entries.some((e) => e.isIntersecting);
      this.hint.textContent = visible ? '' : 'Read it to the end; then you can answer.';
      if (visible)
        this.timer = setTimeout(() => {
          this.#seen = Date.now();
          this.#observer.disconnect();
          this.#drawChoices();
        }, SEEN_MS);
    });
    this.#observer.observe(this.end);
  }

  #drawChoices() {
    if (this.#answered) {
      const { decision, by, at } = this.#answered;
      redraw(this.choices, [
        h('p', h('strong', `${DONE[decision] ?? decision}`), by ? ` by ${plain(by)}` : '', at ? `, ${hour(at)}` : '', '.'),
      ]);
      return;
    }
    const open = this.#seen > 0 && !this.#busy;
    const given = this.#ask.choices ?? Object.keys(MEANING).map((decision) => ({ decision, text: '' }));
    const budget = this.#ask.permission.startsWith('@budget:');
    redraw(
      this.choices,
      given.map(({ decision, text }) =>
        h(
          'div.choice',
          { 'data-key': decision },
          h(
            `button.btn${decision === 'once' ? '.main' : decision === 'deny' ? '.bad' : ''}`,
            { type: 'button', 'data-decision': decision, 'aria-disabled': String(!open), onclick: () => this.#answer(decision, true) },
            LABELS[decision] ?? decision,
            h('kbd', KEYS[decision]),
          ),
          h('span', meaning((!budget && MEANING[decision]) || `${text}.`)),
        ),
      ),
    );
  }

  // answer decides, once: a key that is held or typed again does nothing more.
  async #answer(decision, clicked = false) {
    if (!this.#ask || this.#answered || this.#busy || !this.#seen || (!clicked && inField())) return false;
    if (!(this.#ask.choices ?? []).some((c) => c.decision === decision)) return false;
    this.#busy = true;
    this.#drawChoices();
    const ask = this.#ask;
    try {
      await post(`/v1/permissions/${encodeURIComponent(ask.token)}`, { decision });
      announce(`${DONE[decision]}: ${plain(ask.permission)}`);
      if (this.#ask === ask) this.#ended({ decision, by: '', at: new Date().toISOString() });
    } catch (err) {
      const first = err.error?.decided;
      if (first && this.#ask === ask) this.#ended(first);
      failed(err);
    } finally {
      this.#busy = false;
      if (this.#ask === ask) this.#drawChoices();
    }
    return true;
  }

  #ended(outcome) {
    this.#answered = outcome;
    this.#observer?.disconnect();
    clearTimeout(this.timer);
    this.hint.textContent = openAsks().some((a) => a.token !== this.#ask.token) ? 'j opens the next request.' : '';
    this.#drawChoices();
    this.detail.focus({ preventScroll: true });
  }

  #step(by) {
    const asks = openAsks();
    if (asks.length === 0) return;
    const at = asks.findIndex((a) => a.token === this.#ask?.token);
    const next = at < 0 ? 0 : Math.max(0, Math.min(asks.length - 1, at + by));
    go(`/approvals/${asks[next].token}`);
  }
}

// unseenLine names the characters of a request that cannot be seen, '' if there are none.
function unseenLine(ask) {
  const unseen = ask.unseen?.map((u) => ({ ...u, name: u.char })) ?? unseenIn(ask.request);
  if (unseen.length === 0) return '';
  const places = unseen.slice(0, 20).map((u) => `${u.name}, line ${u.line}, column ${u.column}`);
  if (unseen.length > places.length) places.push(`and ${unseen.length - places.length} more`);
  return `${unseen.length === 1 ? '1 character' : `${unseen.length} characters`} that cannot be seen: ${places.join('; ')}`;
}

function warning(text) {
  return text ? h('div.warn', icon('warn'), h('p', plain(text))) : null;
}

// meaning is what an answer allows; what is between backquotes is code.
function meaning(text) {
  return text.split('`').map((part, i) => (i % 2 ? h('code', exact(part)) : exact(part)));
}

// kindOf is the class of a line of a diff.
function kindOf(line) {
  if (line.startsWith('@@')) return '.hunk';
  if (/^\+(?!\+\+ )/.test(line)) return '.add';
  return /^-(?!-- )/.test(line) ? '.del' : '';
}
