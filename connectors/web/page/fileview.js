// One file that is edited, with what is wrong while it is typed. Nothing that was typed is lost: an edit is kept in
// the browser until it was published or given up.
import { h, icon, plain, fill } from './dom.js';
import { post, readFile, writeFile } from './api.js';
import { subscribe } from './store.js';
import { hour } from './format.js';
import { failed, toast } from './dialog.js';
import { Editor } from './editor.js';
import { difference, changesOf } from './difference.js';
import { diffTable, settle } from './conflict.js';
import { Records } from './records.js';
import { draftOf, keepDraft } from './edits.js';
import { drawTree } from './filetree.js';
import { OF_AGENT, place, urlOf, isHistory } from './place.js';
import { redraw, redrawIf, soon } from './redraw.js';

// CHECK_MS is how long nothing is typed before the text is checked, in milliseconds.
const CHECK_MS = 300;

// Files is the view of one file. The tree of files is at its left; with beside, it is what beside({changed, goTo})
// returns: something with a node, and show(text), which is called with every text that is edited.
export class Files {
  node = h('div.files', { 'aria-busy': 'true' });
  #parts;
  #file = null;
  #editor = null;
  #records = null;
  #opened = { text: '', etag: '' }; // what the edit is based on
  #disk = null; // a newer version on disk: {text, etag, since}
  #findings = [];
  #timer = null;
  #last = Promise.resolve(); // the newest reading or writing of the file: the next one waits for it
  #head = h('header.head.line');
  // The same buttons while the file is open: one that was made anew under the pointer would lose the click.
  #revert = h('button.btn', { type: 'button', 'data-key': 'revert', onclick: () => this.revert() }, 'Revert');
  #publish = h(
    'button.btn.main',
    { type: 'button', 'data-key': 'publish', onclick: () => this.publish() },
    'Publish',
    h('kbd', 'Ctrl S'),
  );
  #tree = h('nav.tree', { 'aria-label': 'Files' });
  #bar = h('div.banner', { role: 'status', hidden: true });
  #problems = h('ul.problems', { id: 'problems', 'aria-label': 'Problems', hidden: true });
  #side = h('aside.insp', { 'aria-label': 'About this file' });
  #edit = h('div.edit');
  look = soon(() => this.#inTurn(() => this.#look()));

  #heading;
  #beside = null;
  #off;

  constructor(parts, { heading = 'Files', kind = 'files', beside } = {}) {
    this.#parts = parts;
    this.#heading = heading;
    this.node.className = kind;
    this.#off = subscribe('agents', () => this.agents());
    fill(this.#head, [h('h1', heading)]);
    addEventListener('focus', this.look);
    if (!beside) {
      fill(this.node, [this.#head, this.#tree, this.#edit, this.#side]);
      return;
    }
    fill(this.node, [this.#head, this.#edit]);
    beside({ changed: (text) => this.#replace(text), goTo: (line) => this.#editor?.goTo(line) }).then((made) => {
      if (!made) return;
      this.#beside = made;
      this.#edit.before(made.node);
      if (this.#editor) made.show(this.#editor.typed);
    });
  }

  // view is what the page shows.
  view() {
    return {
      node: this.node,
      event: (e) => this.event(e),
      again: () => this.look(),
      close: () => this.close(),
      keys: [{ key: 's', ctrl: true, show: 'Ctrl S', label: 'Publish', action: true, icon: 'check', run: () => this.publish() }],
      actions: () => [{ label: 'Check the file on disk again', icon: 'files', run: () => this.look() }],
    };
  }

  // replace puts another text into the editor, as if it was typed.
  #replace(text) {
    this.#editor.type(text);
    this.#typed();
  }

  close() {
    this.#off();
    clearTimeout(this.#timer);
    removeEventListener('focus', this.look);
    this.#records?.close();
  }

  // agents draws the tree anew, and opens the file when its agent is known.
  agents() {
    if (!this.#file) this.open();
    else this.#drawTree();
  }

  event(e) {
    if (/^(file|config)\./.test(e.type) || (this.#file?.agent?.id === e.agent && /^(turn\.finished|agent\.)/.test(e.type))) this.look();
  }

  async open() {
    this.#file = place(this.#parts);
    this.#drawTree();
    if (!this.#file) return;
    if (isHistory(this.#file)) {
      this.#records = new Records(this.#file);
      fill(this.#edit, [this.#records.node]);
      this.#drawHead([this.#records.actions]);
      fill(this.#side, [this.#records.side]);
      await this.#records.open();
    } else {
      await this.#inTurn(() => this.#openText());
    }
    this.node.removeAttribute('aria-busy');
  }

  #inTurn(act) {
    this.#last = this.#last.then(act, act);
    return this.#last;
  }

  async #openText() {
    try {
      this.#opened = await this.#read();
    } catch (err) {
      this.#unread(err);
      return;
    }
    this.#editor = new Editor({ label: `Text of ${this.#file.name}`, described: 'problems', changed: () => this.#typed() });
    fill(this.#edit, [this.#bar, this.#editor.node, this.#problems]);
    const kept = draftOf(this.#file);
    this.#editor.set(kept?.text ?? this.#opened.text);
    if (kept && kept.etag !== this.#opened.etag) {
      this.#disk = { ...this.#opened, since: Date.now() };
      this.#opened = { text: kept.base, etag: kept.etag };
    }
    this.#draw();
    this.#check();
  }

  // read returns what is on disk; a file that is not there is made by publishing it.
  async #read() {
    try {
      return await readFile(this.#file.path);
    } catch (err) {
      if (err.status === 404) return { text: '', etag: '' };
      throw err;
    }
  }

  // unread says why there is no text: an empty field would be taken for an empty file, and published in its place.
  #unread(err) {
    this.#drawHead([]);
    redraw(this.#edit, [
      h(
        'div.empty',
        { role: 'alert' },
        h('h2', `${this.#file.name} cannot be edited here`),
        h('p', plain(err.message), '.'),
        err.hint && h('p', plain(err.hint)),
        h('button.btn', { type: 'button', onclick: () => this.look() }, 'Read it again'),
      ),
    ]);
  }

  get #changed() {
    return this.#editor.text !== this.#opened.text;
  }

  #typed() {
    this.#keep();
    this.#draw();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), CHECK_MS);
  }

  // keep stores what is typed and not published.
  #keep() {
    keepDraft(this.#file, this.#changed ? { text: this.#editor.text, base: this.#opened.text, etag: this.#opened.etag } : null);
  }

  // check asks what is wrong with the text as it is typed.
  async #check() {
    const text = this.#editor.text;
    try {
      const { findings } = await post('/v1/validate', {
        name: this.#file.agent ? `agents/${this.#file.agent.id}/${this.#file.name}` : this.#parts.join('/'),
        text,
      });
      if (text === this.#editor.text) this.#show(findings ?? []);
    } catch (err) {
      if (err.status !== 404 && err.status !== 0) failed(err);
    }
  }

  #show(findings) {
    this.#findings = findings;
    this.#editor.mark(findings);
    this.#problems.hidden = findings.length === 0;
    redraw(
      this.#problems,
      findings.map((f) =>
        h(
          'li',
          icon(f.severity === 'info' ? 'info' : f.severity === 'error' ? 'close' : 'warn', f.severity),
          f.line
            ? h(
                'button.link.mono',
                { type: 'button', onclick: () => this.#editor.goTo(f.line, f.column) },
                `${f.line}${f.column ? `:${f.column}` : ''}`,
              )
            : h('span'),
          h('span', h('span', plain(f.reason)), f.remedy && h('small', plain(f.remedy))),
        ),
      ),
    );
    this.#draw();
  }

  // look reads the file again, as something else may have written it.
  async #look() {
    if (!this.#file) return;
    if (this.#records) return this.#records.look();
    if (!this.#editor) return this.#openText();
    const disk = await readFile(this.#file.path).catch(() => null);
    if (!disk || disk.etag === this.#opened.etag || disk.etag === this.#disk?.etag) return;
    if (this.#changed) {
      this.#disk = { ...disk, since: Date.now() };
    } else {
      this.#opened = disk;
      this.#disk = null;
      this.#editor.set(disk.text);
      this.#check();
    }
    this.#draw();
  }

  publish() {
    return this.#inTurn(() => this.#write());
  }

  async #write() {
    if (!this.#editor || !this.#changed || this.#wrong) return;
    const text = this.#editor.text;
    try {
      this.#taken(text, await writeFile(this.#file.path, text, this.#opened.etag || '""'));
      toast(`${this.#file.name} is published`);
    } catch (err) {
      if (err.status === 409 && err.error.conflict) {
        await this.#overtaken();
      } else {
        if (err.error?.findings) this.#show(err.error.findings);
        failed(err);
      }
    }
  }

  // overtaken reads what is on disk now, and asks what to do with it.
  async #overtaken() {
    try {
      this.#disk = { ...(await this.#read()), since: Date.now() };
    } catch (err) {
      failed(err);
      return;
    }
    this.#draw();
    this.#settle();
  }

  // taken notes that a text is what is on disk now.
  #taken(text, etag) {
    this.#opened = { text, etag };
    this.#disk = null;
    this.#keep(); // more may have been typed while it was written
    this.#draw();
  }

  get #wrong() {
    return this.#findings.some((f) => f.severity === 'error');
  }

  // settle asks what to do with two versions; none of them is lost.
  async #settle() {
    const mine = this.#editor.text;
    const disk = this.#disk;
    const choice = await settle({ name: this.#file.name, base: this.#opened.text, mine, disk });
    if (choice === null) return;
    this.#opened = { text: disk.text, etag: disk.etag };
    if (this.#disk === disk) this.#disk = null; // else it has changed once more since it was shown
    this.#editor.set(choice.text);
    if (choice.took === 'theirs') {
      toast('Your version was replaced', {
        action: {
          label: 'Undo',
          run: () => {
            this.#editor.set(mine);
            this.#typed();
          },
        },
        ms: 15_000,
      });
    }
    this.#typed();
    if (choice.took === 'mine' && !choice.clashes.length) await this.publish();
  }

  revert() {
    const mine = this.#editor.text;
    if (this.#disk) this.#opened = this.#disk;
    this.#disk = null;
    this.#editor.set(this.#opened.text);
    this.#typed();
    toast('Your change was discarded', {
      action: {
        label: 'Undo',
        run: () => {
          this.#editor.set(mine);
          this.#typed();
        },
      },
      ms: 15_000,
    });
  }

  #draw() {
    const off = !this.#changed || this.#wrong;
    const held = [this.#revert, this.#publish].includes(document.activeElement);
    this.#revert.disabled = !this.#changed;
    this.#publish.disabled = off;
    if (held && document.activeElement?.disabled !== false) this.#editor.focus();
    this.#publish.title = this.#wrong ? 'There is an error in the text' : '';
    this.#drawHead([this.#revert, this.#publish]);
    this.#bar.hidden = !this.#disk;
    if (this.#disk) {
      redraw(this.#bar, [
        icon('info'),
        h('span.grow', `Changed on disk at ${hour(this.#disk.since)}. Your edit is based on the previous version.`),
        h('button.btn.small', { type: 'button', onclick: () => this.#settle() }, 'Compare'),
      ]);
    }
    this.#drawSide();
  }

  #drawHead(actions) {
    const { agent, name } = this.#file;
    const tabs =
      agent &&
      h(
        'span.seg',
        { role: 'group', 'aria-label': `Files of ${agent.handle}` },
        OF_AGENT.map((n) => h('a', { href: urlOf(agent, n), 'aria-current': n === name ? 'page' : null }, n)),
      );
    const title = agent ? this.#file.title : this.#parts.join('/');
    redrawIf(this.#head, [agent?.handle, title, name], () => [
      h('h1', this.#heading),
      h('span.quiet.cut', title),
      h('span.grow'),
      tabs,
      actions,
    ]);
  }

  #drawSide() {
    this.#beside?.show(this.#editor.typed);
    const lines = changesOf(difference(this.#opened.text, this.#editor.text));
    const effect = this.#file.effect;
    redraw(this.#side, [
      h('section', h('h2', 'Your change'), lines.length ? diffTable(lines) : h('p.quiet', 'Nothing is changed.')),
      h('section', h('h2', 'When it takes effect'), h('p', effect)),
      this.#file.owners.length > 0 &&
        h(
          'section',
          h('h2', 'Who writes what'),
          h(
            'dl.pairs',
            this.#file.owners.map(([k, v]) => [h('dt', k), h('dd', v)]),
          ),
        ),
      h(
        'section',
        h('h2', 'Version'),
        h(
          'dl.pairs',
          [
            ['opened', this.#opened.etag],
            ['on disk', (this.#disk ?? this.#opened).etag],
          ].map(([k, v]) => [h('dt', k), h('dd.mono', v.replace(/"/g, '').slice(0, 8) || 'does not exist yet')]),
        ),
      ),
    ]);
  }

  #drawTree() {
    drawTree(this.#tree, this.#file?.url, this.#file?.agent?.id);
  }
}
