// A text field with line numbers, in which places can be marked.
import { h } from './dom.js';
import { difference } from './difference.js';

// Editor is a text that is edited. changed is called after each change. label names the field.
export class Editor {
  #field;
  #gutter = h('div.gutter', { 'aria-hidden': 'true' });
  #marks = h('pre.marks', { 'aria-hidden': 'true' });
  #findings = [];
  #given = ''; // the text that was set
  #shown = ''; // the same as the field has it, whose lines end in line feeds alone

  constructor({ label, changed, described }) {
    this.#field = h('textarea', {
      'aria-label': label,
      'aria-describedby': described,
      spellcheck: 'false',
      autocapitalize: 'off',
      autocomplete: 'off',
      wrap: 'off',
      'data-key': 'editor',
      oninput: () => {
        this.#measure();
        changed();
      },
    });
    this.node = h('div.code', this.#gutter, h('div.sheet-of-text', this.#marks, this.#field));
  }

  // text is what was set, to the byte, until it is changed; then its lines end as they did.
  get text() {
    const { value } = this.#field;
    return value === this.#shown ? this.#given : withEnds(value, this.#shown, this.#given);
  }

  // typed is the text as the field has it.
  get typed() {
    return this.#field.value;
  }

  // set replaces the text; the caret stays where it was, as far as the text goes.
  set(text) {
    if (this.text === text) return;
    this.type(text);
    this.#given = text;
    this.#shown = this.#field.value;
  }

  // type replaces the text as typing would: its lines end as they did.
  type(text) {
    const at = this.#field.selectionStart;
    this.#field.value = text;
    this.#field.selectionStart = this.#field.selectionEnd = Math.min(at, text.length);
    this.#measure();
  }

  get readOnly() {
    return this.#field.readOnly;
  }

  set readOnly(yes) {
    this.#field.readOnly = yes;
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  // goTo puts the caret at a line and column, both from 1; the column counts bytes of UTF-8, as findings do.
  goTo(line, column = 1) {
    const lines = this.typed.split('\n');
    const at = Math.min(Math.max(line, 1), lines.length);
    const start = lines.slice(0, at - 1).reduce((n, l) => n + l.length + 1, 0);
    this.focus();
    this.#field.selectionStart = this.#field.selectionEnd = start + offsetOf(lines[at - 1], column);
    const height = this.#field.scrollHeight / Math.max(lines.length, 1);
    this.node.scrollTop = Math.max(0, (at - 4) * height);
  }

  // mark underlines the places of findings and colours their line numbers.
  mark(findings) {
    this.#findings = findings;
    this.#measure();
  }

  // measure makes the field as large as its text, so that numbers, marks and text scroll as one.
  #measure() {
    const lines = this.typed.split('\n');
    this.#field.rows = Math.max(lines.length, 1);
    this.#field.style.setProperty('width', `${Math.min(Math.max(...lines.map((l) => l.length)) + 2, 20_000)}ch`);
    const worst = new Map();
    for (const f of this.#findings) {
      if (f.line && worst.get(f.line) !== 'error') worst.set(f.line, f.severity);
    }
    this.#gutter.replaceChildren(...lines.map((_, i) => h(`span${worst.has(i + 1) ? `.${worst.get(i + 1)}` : ''}`, String(i + 1))));
    this.#marks.replaceChildren(...this.#underlined(lines));
  }

  #underlined(lines) {
    const nodes = [];
    lines.forEach((line, i) => {
      const found = this.#findings.filter((f) => f.line === i + 1);
      const starts = found.map((f) => offsetOf(line, f.column || 1)).sort((a, b) => a - b);
      let at = 0;
      for (const start of new Set(starts)) {
        const end = tokenEnd(line, start);
        if (start < at || end <= start) continue;
        nodes.push(line.slice(at, start), h('u', line.slice(start, end)));
        at = end;
      }
      nodes.push(`${line.slice(at)}\n`);
    });
    return nodes;
  }
}

// withEnds is a text whose lines end as they do in given, which is shown as a field has it: a changed line as the one
// that it replaces, a new one as the first.
function withEnds(text, shown, given) {
  const ends = given.match(/\r\n|\r|\n/g) ?? [];
  const own = ends[0] ?? '\n';
  if (ends.every((end) => end === own)) return text.replaceAll('\n', own);
  const all = text.split('\n').length;
  let replaced = [];
  let out = '';
  for (const { kind, old, now, text: line } of difference(shown, text)) {
    if (kind === '-') replaced.push(ends[old - 1] ?? own);
    if (kind === '-') continue;
    if (kind === ' ') replaced = [ends[old - 1]];
    out += line + (now === all ? '' : (replaced.shift() ?? own));
  }
  return out;
}

// offsetOf is the index in a line of a column that counts bytes from 1.
export function offsetOf(line, column) {
  let bytes = 1;
  let index = 0;
  for (const c of line) {
    if (bytes >= column) break;
    const code = c.codePointAt(0);
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    index += c.length;
  }
  return index;
}

// tokenEnd is where the word or the quoted text ends that begins at an index.
function tokenEnd(line, start) {
  const rest = line.slice(start);
  const found = /^"(?:[^"\\]|\\.)*"?|^'[^']*'?|^[^\s,:[\]{}"']+|^./.exec(rest);
  return start + (found ? found[0].length : 0);
}
