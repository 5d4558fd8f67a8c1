// The settings as a form: sections and fields come from the schema, values from the text beside it.
import { h, icon, plain } from './dom.js';
import { redraw } from './redraw.js';
import { entriesAt, listAt, valueAt, withEntry, withList, withoutEntry, withValue } from './yaml.js';

// Form shows fields for everything that has one value, or a list of them. changed gets the new text; goTo(line) shows a line of it.
export class Form {
  node = h('div.form', { role: 'form', 'aria-label': 'Settings' });
  #schema;
  #active;
  #text = '';
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
    const sections = Object.entries(this.#schema.properties)
      .filter(([name]) => !name.startsWith('$'))
      .map(([name, schema]) => this.#section(name, schema));
    redraw(this.node, [h('p.hint', 'Changes take effect at once, except in sections that are marked.'), sections]);
  }

  #section(name, schema) {
    const fields = fieldsOf(schema, [name], this.#active?.[name]);
    const set = new Set(fields.map((f) => valueAt(this.#text, f.keys)?.line).filter(Boolean)).size;
    const restart = schema['x-apply'] === 'restart';
    return h(
      'details',
      { open: name === 'agents', 'data-key': name },
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
  }

  #field({ keys, schema, active, within = 1 }) {
    const id = `set-${keys.join('-')}`;
    if (schema.type === 'array' && schema.items?.type === 'object') return this.#entries(id, keys, schema.items, active);
    const at = valueAt(this.#text, keys);
    const label = h(`label${at ? '.set' : ''}`, { for: id }, keys.length > 1 ? keys.slice(within).join('.') : keys[0]);
    if (schema.type === 'array' && schema.items?.type === 'string') return [label, this.#list(id, keys, active)];
    if (at && !at.raw) return [label, this.#inText(id, keys, at.line)];
    const onchange = (e) => this.#set(keys, schema, e.target.value);
    const input = inputOf(schema, { id, onchange }, at?.value, active);
    return [label, input ?? this.#inText(id, keys, at?.line)];
  }

  // list is a field with a value on each line.
  #list(id, keys, active) {
    const at = listAt(this.#text, keys);
    if (at && !at.values) return this.#inText(id, keys, at.line);
    const values = at?.values ?? [];
    const field = h('textarea.in', {
      id,
      rows: Math.max(2, values.length + 1),
      placeholder: (!at && active?.join?.('\n')) || 'one per line',
      spellcheck: 'false',
      onchange: (e) => {
        const list = e.target.value.split('\n').map((line) => line.trim());
        this.#publish(keys, withList(this.#text, keys, [...new Set(list)].filter(Boolean)));
      },
    });
    field.value = values.join('\n');
    return field;
  }

  // entries are the mappings of a list, each with its fields.
  #entries(id, keys, schema, active) {
    const n = entriesAt(this.#text, keys);
    const name = keys.length > 1 ? keys.slice(1).join('.') : keys[0];
    if (n === null) return [h('label', { for: id }, name), this.#inText(id, keys)];
    const add = () => {
      const names = schema.required ?? Object.keys(schema.properties).slice(0, 1);
      const fields = names.map((key) => [key, schema.properties[key].enum?.find(Boolean) ?? '']);
      this.#publish(keys, withEntry(this.#text, keys, fields));
    };
    const one = (_, i) => {
      const own = [...keys, i];
      const flow = valueAt(this.#text, own);
      if (flow?.value) return h('p.bar', h('code.cut.grow', plain(flow.value)), this.#inText(`${id}-${i}`, own, flow.line));
      const title = ['id', 'command'].map((key) => valueAt(this.#text, [...own, key])?.value).find(Boolean) ?? String(i + 1);
      const remove = () => this.#publish(keys, withoutEntry(this.#text, keys, i));
      return h(
        'fieldset',
        h('legend', plain(title)),
        h(
          'div.fields',
          fieldsOf(schema, own, active?.[i]).map((f) => this.#field({ ...f, within: own.length })),
        ),
        h('button.btn.small', { type: 'button', 'aria-label': `Remove ${name} ${plain(title)}`, onclick: remove }, 'Remove'),
      );
    };
    return h(
      'div.entries-of',
      Array.from({ length: n }, one),
      h('button.btn.small', { id, type: 'button', 'aria-label': `Add to ${name}`, onclick: add }, icon('plus'), `Add to ${name}`),
    );
  }

  // publish passes a changed text on, or leads to the place that only the text can change.
  #publish(keys, text) {
    if (text === null) this.#goTo(valueAt(this.#text, keys)?.line ?? valueAt(this.#text, keys.slice(0, 1))?.line ?? 1);
    else this.#changed(text);
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

  #set(keys, schema, raw) {
    const integer = schema.type === 'integer' && /^-?\d+$/.test(raw); // of any size
    const number = /integer|number/.test(schema.type) && raw !== '';
    const value = schema.type === 'boolean' ? raw === 'true' : integer ? BigInt(raw) : number ? Number(raw) : raw;
    this.#publish(keys, withValue(this.#text, keys, value));
  }
}

// fieldsOf lists what has one value, with the keys that lead to it; a list or a free mapping is one entry.
function fieldsOf(schema, keys, active) {
  if (schema.type !== 'object' || !schema.properties) return [{ keys, schema, active }];
  return Object.entries(schema.properties).flatMap(([name, s]) => fieldsOf(s, [...keys, name], active?.[name]));
}

// inputOf makes the field of a schema, with the value of the text, and what is in use as its hint; null if it has no field.
// attributes are those of every field.
function inputOf(schema, attributes, value, active) {
  const hint = active === undefined || active === null || typeof active === 'object' ? '' : plain(String(active));
  if (schema.enum || schema.type === 'boolean') {
    const choices = schema.enum ?? [true, false];
    return h(
      'select.in',
      attributes,
      value === undefined && h('option', { value: '', selected: true, disabled: true }, hint ? `${hint} (default)` : 'default'),
      choices.filter((c) => c !== '').map((c) => h('option', { value: String(c), selected: String(c) === value }, String(c))),
    );
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const step = schema.type === 'integer' ? 1 : 'any';
    return h('input.in', {
      ...attributes,
      type: 'number',
      step,
      min: schema.minimum ?? null,
      max: schema.maximum ?? null,
      placeholder: hint,
      value: value ?? '',
    });
  }
  if (schema.type === 'string' || (Array.isArray(schema.type) && schema.type.includes('string'))) {
    return h('input.in', { ...attributes, type: 'text', placeholder: hint, value: value ?? '', spellcheck: 'false', autocomplete: 'off' });
  }
  return null;
}
