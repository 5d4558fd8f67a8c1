// Health: what is wrong and what to do, connectors and models, the disk, the log as it is written.
import { h, icon, plain, fill } from '../dom.js';
import { get, post } from '../api.js';
import { agentOf, allAgents } from '../store.js';
import { absolute, ago, size, span, plural } from '../format.js';
import { ask, failed, toast } from '../dialog.js';
import { meter } from '../meter.js';
import { LogLines, LEVELS } from '../logs.js';
import { urlOf as fileUrl, OF_AGENT, OF_WORKSPACE } from '../place.js';
import { redraw, soon } from '../redraw.js';
import { setQuery } from '../router.js';

export const title = 'Health';

export function render(params) {
  const view = new Health(params.query.get('level') ?? 'info');
  view.check();
  return {
    node: view.node,
    update: (changed) => {
      view.level(changed.query.get('level') ?? 'info');
      return true;
    },
    event: (e) => {
      if (/^(config|file|outbox\.failed|agent\.created|agent\.ended)/.test(e.type)) view.again();
    },
    again: () => view.again(),
    close: () => view.close(),
    keys: [{ key: 'r', label: 'Check again', action: true, icon: 'health', run: () => view.check() }],
    actions: () => [{ label: 'Reload the settings', icon: 'settings', run: reload }],
  };
}

class Health {
  node = h('div.page', { 'aria-busy': 'true' });
  #status = null;
  #report = null; // of the doctor
  #checked = null;
  #tests = new Map(); // results by kind and id
  #log;
  #testing = new Set(); // what is being tested, as in #tests
  #foot = h('section.panel', { 'aria-label': 'Log', 'data-key': 'log' });
  again = soon(() => this.check());

  constructor(level) {
    this.#log = new LogLines(level);
    fill(this.node, [h('header.head', h('h1', title))]);
    this.#drawLog();
  }

  close() {
    this.#log.close();
  }

  level(name) {
    this.#log.level(name);
    this.#drawLog();
  }

  async check() {
    const began = Date.now();
    const [status, report] = await Promise.all([
      get('/v1/status').catch((err) => {
        failed(err);
        return this.#status;
      }),
      get('/v1/doctor').catch(() => null),
    ]);
    this.#status = status;
    this.#report = report;
    this.#checked = { at: new Date().toISOString(), ms: Date.now() - began };
    this.#draw();
    this.node.removeAttribute('aria-busy');
  }

  get #findings() {
    if (this.#report) return this.#report.findings;
    return (this.#status?.problems ?? []).map((p) => ({
      id: 'file',
      severity: 'error',
      file: p.file,
      line: p.line,
      column: p.column,
      reason: p.text,
    }));
  }

  #draw() {
    if (!this.#status) return;
    const fixable = this.#findings.filter((f) => f.fixable);
    redraw(this.node, [
      h(
        'header.head',
        h('h1', title),
        h('span.quiet', { title: absolute(this.#checked.at) }, `checked ${ago(this.#checked.at)} in ${span(this.#checked.ms)}`),
        h('span.grow'),
        fixable.length > 0 &&
          h('button.btn', { type: 'button', 'data-key': 'fix', onclick: () => this.#fix(fixable) }, `Repair ${fixable.length}`),
        h('button.btn', { type: 'button', 'data-key': 'check', onclick: () => this.check() }, 'Check again'),
      ),
      figures(this.#status, this.#findings),
      h(
        'div.health',
        h('section', { 'aria-label': 'Findings' }, h('h2', 'Findings'), this.#list()),
        h('section', { 'aria-label': 'Connectors and models' }, h('h2', 'Connectors and models'), this.#services()),
      ),
      this.#foot,
    ]);
  }

  #list() {
    if (!this.#findings.length) return h('p.hint', icon('check'), ' Nothing is wrong.');
    return h(
      'ul.findings',
      this.#findings.map((f) =>
        h(
          'li',
          { 'data-key': `${f.id} ${place(f)}` },
          mark(f.severity),
          h(
            'div',
            h('p', h('b', f.id), ' ', h('span.mono.quiet', place(f))),
            h('p', plain(f.reason)),
            f.remedy && h('p.quiet', plain(f.remedy)),
          ),
          h(
            'span.acts',
            fileOf(f) && h('a.btn.small', { href: fileOf(f), 'aria-label': `Open ${f.file}` }, 'Open'),
            command(f) &&
              h('button.btn.small', { type: 'button', 'aria-label': `Copy ${command(f)}`, onclick: () => copy(command(f)) }, 'Copy'),
            f.fixable &&
              h(
                'button.btn.small',
                { type: 'button', 'aria-label': `Repair ${f.id} ${place(f)}`, onclick: () => this.#fix([f]) },
                'Repair',
              ),
          ),
        ),
      ),
    );
  }

  #services() {
    const { connectors, providers, mcp = [] } = this.#status;
    const rows = [...connectors.map((s) => ['connectors', s]), ...providers.map((s) => ['providers', s]), ...mcp.map((s) => ['mcp', s])];
    if (!rows.length) return h('p.hint', 'No chat platform is set up. You can reach agents from here, from the terminal and through the API.');
    return h(
      'table',
      { 'aria-label': 'Connectors and models' },
      h(
        'thead',
        h(
          'tr',
          h('th', { scope: 'col' }, 'Name'),
          h('th', { scope: 'col' }, 'State'),
          h('th', { scope: 'col' }, 'Detail'),
          h('th', { scope: 'col' }, h('span.unseen', 'Actions')),
        ),
      ),
      h(
        'tbody',
        rows.map(([kind, s]) => this.#service(kind, s)),
      ),
    );
  }

  #service(kind, s) {
    const tested = this.#tests.get(`${kind}/${s.id}`);
    const bad = /failing|failed/.test(s.state) ? 'ask' : s.state === 'stopped' ? 'error' : s.state === 'running' ? 'work' : 'second';
    const said = tested ?? { text: s.lastError || [s.type, s.model, s.detail].filter(Boolean).join(', ') };
    return h(
      'tr',
      h('td', h('b', plain(s.id))),
      h(`td.${bad}`, s.state),
      h(`td.detail${tested ? (tested.ok ? '.work' : '.error') : ''}`, plain(said.text)),
      h(
        'td.right',
        kind !== 'mcp' &&
          h(
            'button.btn.small',
            {
              type: 'button',
              'data-key': `test-${kind}-${s.id}`,
              'aria-label': `Test ${s.id}`,
              'aria-disabled': this.#testing.has(`${kind}/${s.id}`) ? 'true' : null,
              onclick: () => this.#test(kind, s),
            },
            'Test',
          ),
      ),
    );
  }

  async #test(kind, s) {
    const key = `${kind}/${s.id}`;
    if (this.#testing.has(key)) return;
    this.#testing.add(key);
    this.#draw();
    try {
      const result = await post(`/v1/${kind}/${encodeURIComponent(s.id)}/test`);
      const wrong = [result.error, result.remedy].filter(Boolean).join('. ');
      this.#tests.set(key, { ok: result.ok, text: wrong || result.verdict || `It answered in ${span(result.ms)}` });
    } catch (err) {
      this.#tests.set(key, { ok: false, text: [err.message, err.hint].filter(Boolean).join('. ') });
    }
    this.#testing.delete(key);
    this.#draw();
  }

  async #fix(findings) {
    const yes = await ask({
      title: `Repair ${plural(findings.length, 'finding')}?`,
      yes: 'Repair',
      body: [
        h(
          'ul.plain',
          findings.map((f) => h('li', `${f.id}: ${place(f)}`)),
        ),
        'No data is lost: anything that is moved stays next to its file.',
      ],
    });
    if (!yes) return;
    try {
      const report = await post('/v1/doctor/fix', { findings: [...new Set(findings.map((f) => f.id))] });
      toast(`${plural(report.fixed?.length ?? 0, 'finding')} repaired`);
    } catch (err) {
      failed(err);
    }
    this.check();
  }

  #drawLog() {
    redraw(this.#foot, [
      h(
        'div.head',
        { 'data-key': 'head' },
        h('h2', 'Log'),
        h('span.grow'),
        h(
          'span.seg',
          { role: 'group', 'aria-label': 'Level' },
          LEVELS.map((l) =>
            h(
              'button',
              {
                type: 'button',
                'aria-pressed': String(l === this.#log.shown),
                onclick: () => setQuery({ level: l === 'info' ? null : l }),
              },
              l,
            ),
          ),
        ),
      ),
      this.#log.node,
    ]);
  }
}

function figures(s, findings) {
  const errors = findings.filter((f) => f.severity === 'error').length;
  const warnings = findings.filter((f) => f.severity === 'warning').length;
  const disk = s.disk;
  const used = disk ? 1 - disk.free / disk.size : 0;
  return h(
    'dl.strip',
    [
      [
        'Findings',
        h(`span${errors ? '.error' : ''}`, String(errors + warnings)),
        `${plural(errors, 'error')}, ${plural(warnings, 'warning')}`,
      ],
      ['Running', span(s.uptimeMs ?? 0)],
      ['In memory', String(s.awake), `of ${plural(s.agents, 'agent')}`],
      [
        'Disk',
        disk ? size(disk.free) : s.diskFull ? h('span.error', 'full') : 'ok',
        disk && `free of ${size(disk.size)}`,
        disk && meter(used, { kind: used > 0.95 ? 'error' : '' }),
      ],
      ['Version', s.version, s.pid ? `pid ${s.pid}` : ''],
    ].map(([name, value, note, bar]) => h('div', h('dt', name), h('dd', value, note && h('small', note)), bar)),
  );
}

function mark(severity) {
  if (severity === 'error') return h('span.error', icon('close', 'error'));
  if (severity === 'warning') return h('span.ask', icon('warn', 'warning'));
  return h('span.quiet', icon('info', 'note'));
}

function place(f) {
  return plain(`${f.file}${f.line ? `:${f.line}` : ''}${f.column ? `:${f.column}` : ''}`);
}

// fileOf is the address of the file of a finding, if the page can edit it.
function fileOf(f) {
  const parts = f.file.replace(/^.*\.daycare\//, '').split('/');
  const name = parts.at(-1);
  if (parts[0] === 'agents' && parts.length === 3 && OF_AGENT.includes(name)) {
    const agent = agentOf(parts[1]) ?? allAgents().find((a) => a.id.startsWith(parts[1]));
    return agent ? fileUrl(agent, name) : null;
  }
  return parts.length === 1 && OF_WORKSPACE.includes(name) ? `/files/${name}` : null;
}

// command is what a remedy says to run, if it is one.
function command(f) {
  return /(?:^|\n|: )((?:sudo|daycare|apt-get|chmod|sysctl) [^\n]+)$/.exec(f.remedy ?? '')?.[1] ?? null;
}

async function copy(text) {
  await navigator.clipboard.writeText(text).then(
    () => toast('Copied'),
    () => toast(text, { ms: 15_000 }),
  );
}

async function reload() {
  try {
    const { findings } = await post('/v1/reload');
    toast(findings?.length ? `The settings were reloaded: ${plural(findings.length, 'finding')}` : 'The settings were reloaded');
  } catch (err) {
    failed(err);
  }
}
