// The settings as a form: sections and fields come from the schema, values from the text beside it.
import { h, icon, fill, plain } from './dom.js';
import { valueAt, withValue } from './yaml.js';

// Form shows fields for everything that has one value. changed gets the new text; goTo(line) shows a line of it.
export class Form {
  node = h('div.form', { role: 'form', 'aria-label': 'Settings', 'data-scrolls': 'form' });
  #schema;
  #active;
  #text = '';
  #open = new Set(['agents']);
  #changed;
  #goTo;

  // schema is the JSON Schema of settings.yaml, active the settings that are in use, secrets masked.
  constructor({ schema, active, changed, goTo }) {
    this.#schema = schema;
    this.#active = active;
    this.#changed = changed;
    this.#goTo = goTo;
  }

  // show draws the form for a text.
  show(text) {
    if (text === this.#text && this.node.firstChild) return;
    this.#text = text;
    const focused = this.node.contains(document.activeElement) ? document.activeElement.id : null;
    const sections = Object.entries(this.#schema.properties)
      .filter(([name]) => !name.startsWith('$'))
      .map(([name, schema]) => this.#section(name, schema));
    fill(this.node, [h('p.hint', 'Changes take effect at once, except in sections that are marked.'), sections]);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  #section(name, schema) {
    const fields = fieldsOf(schema, [name], this.#active?.[name]);
    const set = new Set(fields.map((f) => valueAt(this.#text, f.keys)?.line).filter(Boolean)).size;
    const restart = schema['x-apply'] === 'restart';
    const details = h(
      'details',
      { open: this.#open.has(name), ontoggle: () => this.#open[details.open ? 'add' : 'delete'](name) },
      h(
        'summary',
        icon('right'),
        name,
        set > 0 && h('span.quiet', `${set} set`),
        restart && h('span.chip', { title: 'A change takes effect after a restart' }, 'restart'),
      ),
      h(
        'div.fields',
        fields.map((f) => this.#field(f)),
      ),
    );
    return details;
  }

  #field({ keys, schema, active }) {
    const id = `set-${keys.join('-')}`;
    const at = valueAt(this.#text, keys);
    const label = h(`label${at ? '.set' : ''}`, { for: id }, keys.length > 1 ? keys.slice(1).join('.') : keys[0]);
    if (at && !at.raw) return [label, this.#inText(id, keys, at.line)];
    const input = inputOf(schema, id, at?.value, active);
    if (!input) return [label, this.#inText(id, keys, at?.line)];
    input.addEventListener('change', () => this.#set(keys, schema, input));
    return [label, input];
  }

  // inText leads to the place in the text of what has no field.
  #inText(id, keys, line) {
    const top = line ?? valueAt(this.#text, keys.slice(0, 1))?.line;
    return h(
      'button.btn.small',
      { id, type: 'button', disabled: !top, onclick: () => this.#goTo(top) },
      top ? `Edit in the text, line ${top}` : 'Not set; add it in the text',
    );
  }

  #set(keys, schema, input) {
    const raw = input.value;
    const value = schema.type === 'boolean' ? raw === 'true' : /integer|number/.test(schema.type) && raw !== '' ? Number(raw) : raw;
    const text = withValue(this.#text, keys, value);
    if (text === null) this.#goTo(valueAt(this.#text, keys).line);
    else this.#changed(text);
  }
}

// fieldsOf lists what has one value, with the keys that lead to it; a list or a free mapping is one entry.
function fieldsOf(schema, keys, active) {
  if (schema.type !== 'object' || !schema.properties) return [{ keys, schema, active }];
  return Object.entries(schema.properties).flatMap(([name, s]) => fieldsOf(s, [...keys, name], active?.[name]));
}

// inputOf makes the field of a schema, with the value of the text, and what is in use as its hint; null if it has no field.
function inputOf(schema, id, value, active) {
  const hint = active === undefined || active === null || typeof active === 'object' ? '' : plain(String(active));
  if (schema.enum || schema.type === 'boolean') {
    const choices = schema.enum ?? [true, false];
    const select = h(
      'select.in',
      { id },
      value === undefined && h('option', { value: '', selected: true, disabled: true }, hint ? `${hint} (default)` : 'default'),
      choices.filter((c) => c !== '').map((c) => h('option', { value: String(c), selected: String(c) === value }, String(c))),
    );
    return select;
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const step = schema.type === 'integer' ? 1 : 'any';
    return h('input.in', {
      id,
      type: 'number',
      step,
      min: schema.minimum ?? null,
      max: schema.maximum ?? null,
      placeholder: hint,
      value: value ?? '',
    });
  }
  if (schema.type === 'string' || (Array.isArray(schema.type) && schema.type.includes('string'))) {
    return h('input.in', { id, type: 'text', placeholder: hint, value: value ?? '', spellcheck: 'false', autocomplete: 'off' });
  }
  return null;
}
