// Clocks: the scheduled tasks and the heartbeat over the day, and the ledger of the chosen one.
import { h, icon, plain, fill } from '../dom.js';
import { get, post, put } from '../api.js';
import { agentOf } from '../store.js';
import { urlOf, titleOf } from '../state.js';
import { hour, absolute, at, span as lasted, plural } from '../format.js';
import { open, failed, toast } from '../dialog.js';
import { lane, axis, span, signOf } from '../lane.js';
import { go } from '../router.js';
import { redraw, soon } from '../redraw.js';

export const title = 'Clocks';

const HEARTBEAT = 'heartbeat';

// DAY_RUNS is how many of the newest runs of each task are drawn, LEDGER_RUNS how many are listed.
const DAY_RUNS = 100;
const LEDGER_RUNS = 50;

// render shows all clocks; path[0] is the slug of the task whose ledger is shown.
export function render(params) {
  const view = new Clocks(params.path[0] ?? '');
  view.read();
  return {
    node: view.node,
    update: (changed) => view.choose(changed.path[0] ?? ''),
    event: (e) => {
      if (/^(cron|file|config)\./.test(e.type)) view.again();
    },
    again: () => view.again(),
    keys: [{ key: 'r', label: 'Run the chosen task now', action: true, icon: 'run', run: () => view.runChosen() }],
    actions: () => [{ label: 'Add a task', icon: 'plus', run: view.add }],
  };
}

class Clocks {
  node = h('div.page', { 'aria-busy': 'true' });
  #chosen;
  #clocks = []; // tasks and the heartbeat, as clockOf makes them
  again = soon(() => this.read());
  add = () => add(this.again);

  constructor(chosen) {
    this.#chosen = chosen;
    fill(this.node, [header([], this.add)]);
  }

  choose(slug) {
    this.#chosen = slug;
    if (this.#clocks.length) this.#draw();
    return true;
  }

  async read() {
    try {
      const [tasks, heartbeat] = await Promise.all([get('/v1/cron'), get('/v1/heartbeats')]);
      const clocks = [...tasks.tasks.map(ofTask), ...(heartbeat.prompts.length || heartbeat.every ? [ofHeartbeat(heartbeat)] : [])];
      await Promise.all(
        clocks.map(async (c) => {
          c.runs = (await get(`${c.path}/runs?limit=${DAY_RUNS}`)).runs;
        }),
      );
      this.#clocks = clocks;
    } catch (err) {
      failed(err);
    }
    this.#draw();
  }

  #current() {
    return this.#clocks.find((c) => c.slug === this.#chosen) ?? this.#clocks[0];
  }

  runChosen() {
    const clock = this.#current();
    if (clock) runNow(clock);
  }

  #draw() {
    const chosen = this.#current();
    const range = span();
    const body = this.#clocks.length
      ? [this.#table(range, chosen), legend(), chosen && ledger(chosen, chosen.runs.slice(-LEDGER_RUNS).reverse())]
      : [empty()];
    redraw(this.node, [header(this.#clocks, this.add), body]);
    this.node.removeAttribute('aria-busy');
  }

  #table(range, chosen) {
    const heads = ['Task', 'When', axis(range), 'Last', 'Next', ''];
    return h(
      'div.clocks',
      { role: 'table', 'aria-label': 'Tasks' },
      h(
        'div.clock.heads',
        { role: 'row' },
        heads.map((head, i) =>
          h('span', { role: 'columnheader' }, head || null, ['', '', h('span.unseen', 'Today'), '', '', h('span.unseen', 'Actions')][i]),
        ),
      ),
      this.#clocks.map((c) => row(c, range, c === chosen)),
    );
  }
}

// A clock is a task or the heartbeat, in one shape.
function ofTask(t) {
  return {
    slug: t.slug,
    name: plain(t.name),
    words: t.words,
    enabled: t.enabled,
    next: t.next,
    last: t.last,
    gate: t.gate,
    running: t.running,
    findings: t.findings ?? [],
    path: `/v1/cron/${encodeURIComponent(t.slug)}`,
    switches: true,
    watch: t.watch?.length || t.watchCommand,
    agent: t.agentId || t.taskId,
    file: `/files/cron/${encodeURIComponent(t.slug)}/TASK.md`,
    zone: t.timezone,
  };
}

function ofHeartbeat(b) {
  return {
    slug: HEARTBEAT,
    name: 'Heartbeat',
    words: b.every ? `every ${b.every}` : 'off',
    enabled: Boolean(b.every) && !b.stopped,
    next: b.next ? [b.next] : [],
    last: b.last,
    findings: b.prompts.flatMap((p) => p.findings ?? []),
    path: '/v1/heartbeats',
    running: b.running,
    items: b.prompts.length,
    agent: HEARTBEAT,
  };
}

function header(clocks, add) {
  const tasks = clocks.filter((c) => c.switches);
  const zones = [...new Set(tasks.map((t) => t.zone).filter(Boolean))];
  const beats = clocks.length > tasks.length ? ', 1 heartbeat' : '';
  const note = clocks.length ? `${plural(tasks.length, 'task')}${beats}${zones.length === 1 ? ` · ${zones[0]}` : ''}` : '';
  return h(
    'header.head',
    h('h1', title),
    h('span.quiet', note),
    h('span.grow'),
    h('button.btn.main', { type: 'button', 'data-key': 'add', onclick: add }, icon('plus'), 'Add a task'),
  );
}

function row(c, range, chosen) {
  const label = `${c.name}: ${describe(c, range)}`;
  const last = c.running ? { outcome: 'running' } : c.last;
  const bad = c.findings.find((f) => f.severity === 'error');
  return h(
    `div.clock${chosen ? '.on' : ''}`,
    { role: 'row', 'data-key': `row-${c.slug}` },
    h(
      'span.task',
      { role: 'cell' },
      c.switches && h('label.tick', toggle(c)),
      h(
        'a.open',
        { href: `/clocks/${encodeURIComponent(c.slug)}`, 'data-key': `open-${c.slug}`, 'aria-current': chosen ? 'true' : null },
        c.name,
      ),
    ),
    h('span.words', { role: 'cell' }, bad ? h('span.error', bad.reason) : c.words),
    h('span.day', { role: 'cell' }, lane({ runs: c.runs, next: c.enabled ? c.next : [], range, label })),
    h(
      'span.last',
      { role: 'cell' },
      last ? [h(`b.${last.outcome}`, last.outcome), h('small', { title: lastNote(last) }, lastNote(last))] : h('span.quiet', 'never ran'),
    ),
    h('span.next', { role: 'cell' }, nextOf(c)),
    h(
      'span.acts',
      { role: 'cell' },
      h(
        'button.btn.small',
        { type: 'button', 'data-key': `run-${c.slug}`, 'aria-label': `Run ${c.name}`, 'aria-disabled': c.running ? 'true' : null, onclick: () => runNow(c) },
        icon('run'),
        'Run',
      ),
    ),
  );
}

function toggle(c) {
  return h('input', {
    type: 'checkbox',
    checked: c.enabled,
    'data-key': `on-${c.slug}`,
    'aria-label': `${c.name} is enabled`,
    onchange: async (e) => {
      const enabled = e.target.checked;
      try {
        await put(c.path, { enabled });
        toast(enabled ? `${c.name} is enabled` : `${c.name} is disabled`);
        c.enabled = enabled;
      } catch (err) {
        e.target.checked = !enabled;
        failed(err);
      }
    },
  });
}

// describe says what a lane shows, for those who do not see it.
function describe(c, range) {
  const runs = c.runs.filter((r) => new Date(r.slot) >= range.from);
  const counts = ['ran', 'skipped', 'missed', 'failed'].map((o) => [o, runs.filter((r) => r.outcome === o).length]);
  const said = counts.filter(([, n]) => n).map(([o, n]) => `${o} ${n === 1 ? 'once' : `${n} times`}`);
  return `${said.join(', ') || 'no runs'} in the last 12 hours`;
}

function lastNote(run) {
  if (run.reason) return run.reason;
  const at = run.slot || run.at;
  return at ? hour(at) : '';
}

function nextOf(c) {
  if (!c.enabled) return h('span.quiet', 'disabled');
  if (c.next.length) return h('time', { datetime: c.next[0], title: absolute(c.next[0]) }, soonHour(c.next[0]));
  return c.watch ? 'on change' : h('span.quiet', 'none');
}

// soonHour is the time of day; the date is shown only if that could be another day.
function soonHour(time) {
  return new Date(time) - Date.now() < 18 * 3600_000 ? hour(time, new Date(time)) : hour(time);
}

async function runNow(c) {
  if (c.running) return;
  try {
    await post(`${c.path}/run`);
    toast(`${c.name} runs now`);
  } catch (err) {
    failed(err);
  }
}

function legend() {
  const signs = [
    ['ran', 'ran'],
    ['skipped', 'skipped'],
    ['missed', 'missed'],
    ['failed', 'failed'],
    ['next', 'next'],
  ];
  return h(
    'ul.legend',
    signs.map(([sign, word]) => h('li', signOf(sign), word)),
  );
}

function ledger(c, runs) {
  const agent = c.agent && agentOf(c.agent);
  const rows = runs.map((r) =>
    h(
      'tr',
      h('td', at(r.slot)),
      h('td.quiet.roomy', r.outcome === 'missed' ? '' : hour(r.at)),
      h('td', h(`span.${r.outcome}`, r.count > 1 ? `${r.outcome} ×${r.count}` : r.outcome)),
      h('td.right', r.ms ? lasted(r.ms) : ''),
      h('td.cut.reason', [r.via && `${r.via}`, plain(r.reason ?? r.why ?? '')].filter(Boolean).join(': ')),
    ),
  );
  return h(
    'section.panel',
    { 'aria-label': `Ledger of ${c.name}`, 'data-key': `ledger-${c.slug}` },
    h(
      'div.head',
      h('h2', `Ledger of ${c.name}`),
      c.gate && h('span.quiet.cut', 'gate ', h('code', plain(c.gate))),
      h('span.grow'),
      agent && h('a.btn.small', { href: urlOf(agent), title: titleOf(agent) }, 'Transcript'),
      c.file && h('a.btn.small', { href: c.file }, 'TASK.md'),
    ),
    runs.length
      ? h(
          'table',
          { 'aria-label': `Ledger of ${c.name}` },
          h(
            'thead',
            h(
              'tr',
              ['Due', 'At', 'Outcome', 'Took', 'Reason'].map((name) =>
                h(`th${{ Took: '.right', At: '.roomy' }[name] ?? ''}`, { scope: 'col' }, name),
              ),
            ),
          ),
          h('tbody', rows),
        )
      : h('p.quiet', 'It has not been due yet.'),
  );
}

function empty() {
  return h(
    'div.nothing',
    h('p', 'A task is a prompt that an agent gets at set times, or when a file changes: “every weekday at 9”, “every 20 minutes”.'),
    h('p.quiet', 'Add one here, write .daycare/cron/NAME/TASK.md, or ask an agent to.'),
  );
}

// add asks for a new task in plain words, and calls done when there is one.
function add(done) {
  const when = h('input.in', { required: true, placeholder: 'every weekday at 9', autofocus: true, id: 'task-when' });
  const prompt = h('textarea.in', { required: true, rows: 4, id: 'task-prompt' });
  const name = h('input.in', { id: 'task-name' });
  const wrong = h('p.error', { role: 'alert' });
  const save = async (e) => {
    e.preventDefault();
    try {
      const task = await post('/v1/cron', { when: when.value, prompt: prompt.value, ...(name.value ? { name: name.value } : {}) });
      dialog.close();
      done();
      go(`/clocks/${encodeURIComponent(task.slug)}`);
    } catch (err) {
      wrong.textContent = [err.message, err.hint].filter(Boolean).join('. ');
    }
  };
  const dialog = open(
    'box',
    'Add a task',
    h(
      'form',
      { onsubmit: save },
      h(
        'div.body',
        h('h2', 'Add a task'),
        h('label', { for: 'task-when' }, 'When'),
        when,
        h('label', { for: 'task-prompt' }, 'Prompt'),
        prompt,
        h('label', { for: 'task-name' }, 'Name, if it needs one'),
        name,
        wrong,
      ),
      h(
        'div.acts',
        h('button.btn.main', { type: 'submit' }, 'Add'),
        h('button.btn', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
      ),
    ),
  );
}
