// Single values and lists in a YAML text, read and changed without touching anything else. Only what is written
// plainly is understood: block mappings, block lists, lists of values on one line, values on one line. Everything
// else is left to the text itself. Keys that lead to a value are names, and numbers from 0 for entries of lists.

// A KEY line is indentation, name, value; an ITEM line is indentation, dash, value. A key may stand behind a dash.
const KEY = /^( *(?:- +)*)([A-Za-z_][\w-]*):(?:[ ]+(.*))?$/;
const ITEM = /^( *)(-(?: +|$))(.*)$/;

// valueAt finds the value that keys lead to: {line, value, raw}. line counts from 1. value is its text without
// quotes; raw is false if it is written in a way that only the text can change. undefined: it is not there.
export function valueAt(text, keys) {
  const found = keysOf(text).find((k) => same(k.path, keys));
  if (!found) {
    const above = keysOf(text).find((k) => k.path.length < keys.length && same(k.path, keys.slice(0, k.path.length)) && k.value !== '');
    return above && { line: above.line, value: '', raw: false };
  }
  const { value, quoted } = scalar(found.value);
  return { line: found.line, value, raw: found.value !== '' && (quoted || !/^[[{&*|>!]/.test(value)) };
}

// withValue returns the text with one value changed or added, or null if only the text itself can be changed there.
// value is '' to leave the key without one.
export function withValue(text, keys, value) {
  const at = valueAt(text, keys);
  if (!at) return added(text, keys, written(value));
  if (!at.raw) return null;
  const lines = text.split('\n');
  const [, indent, name, old] = KEY.exec(lines[at.line - 1]);
  lines[at.line - 1] = `${indent}${name}: ${written(value)}${scalar(old).comment}`;
  return lines.join('\n');
}

// added returns the text with a key that is not there yet; those that lead to it are added, too.
function added(text, keys, value) {
  const lines = text.split('\n');
  const parent = keysOf(text).findLast((k) => k.path.length < keys.length && same(k.path, keys.slice(0, k.path.length)));
  const depth = parent ? parent.path.length : 0;
  if (keys.slice(depth).some((key) => typeof key === 'number')) return null;
  const line = parent ? lastLineOf(lines, parent) : lastFull(lines);
  const first = parent ? (behindDash(lines, parent) ?? childIndent(lines, parent) ?? parent.indent + 2) : 0;
  const fresh = keys.slice(depth).map((key, i) => `${' '.repeat(first + 2 * i)}${key}:`);
  fresh[fresh.length - 1] += ` ${value}`;
  lines.splice(line, 0, ...fresh);
  return lines.join('\n');
}

// listAt finds the list of values that keys lead to: {line, values}. values is null if it is written in a way that
// only the text can change. undefined: it is not there.
export function listAt(text, keys) {
  const found = keysOf(text).find((k) => same(k.path, keys));
  if (!found) return valueAt(text, keys) && { line: valueAt(text, keys).line, values: null };
  const { value } = scalar(found.value);
  if (value) return { line: found.line, values: flowValues(value) };
  const items = itemsOf(text, keys);
  const plainly = items.every((k) => k.value && valueAt(text, k.path).raw) && !hasComments(text, items);
  return { line: found.line, values: plainly ? items.map((k) => scalar(k.value).value) : null };
}

// withList returns the text with another list of values, or null if only the text itself can be changed there.
// Entries that stay keep their lines.
export function withList(text, keys, values) {
  const at = listAt(text, keys);
  const flow = `[${values.map(written).join(', ')}]`;
  if (!at) return added(text, keys, flow);
  if (!at.values) return null;
  const lines = text.split('\n');
  const [, indent, name, old] = KEY.exec(lines[at.line - 1]);
  const items = itemsOf(text, keys);
  if (items.length === 0 || values.length === 0) {
    lines.splice(at.line - 1, 1 + items.length, `${indent}${name}: ${flow}${scalar(old).comment}`);
    return lines.join('\n');
  }
  const kept = new Map(items.map((k) => [scalar(k.value).value, lines[k.line - 1]]));
  const dash = ' '.repeat(items[0].indent);
  lines.splice(items[0].line - 1, items.length, ...values.map((v) => kept.get(v) ?? `${dash}- ${written(v)}`));
  return lines.join('\n');
}

// entriesAt counts the entries of a list of mappings; null if it is written in a way that only the text can change.
export function entriesAt(text, keys) {
  const found = keysOf(text).find((k) => same(k.path, keys));
  if (!found) return valueAt(text, keys) ? null : 0;
  const { value } = scalar(found.value);
  if (value) return value === '[]' ? 0 : null;
  return itemsOf(text, keys).length;
}

// withEntry returns the text with one more entry, whose fields are [name, value] pairs; withoutEntry with one less.
export function withEntry(text, keys, fields) {
  const n = entriesAt(text, keys);
  if (n === null) return null;
  const found = keysOf(text).find((k) => same(k.path, keys));
  if (!found) {
    const withKey = added(text, keys, '[]');
    return withKey && withEntry(withKey, keys, fields);
  }
  const lines = text.split('\n');
  lines[found.line - 1] = lines[found.line - 1].replace(/: +\[\]/, ':');
  const dash = ' '.repeat(itemsOf(text, keys)[0]?.indent ?? found.indent + 2);
  const fresh = fields.map(([name, value], i) => `${dash}${i ? '  ' : '- '}${name}: ${written(value)}`);
  lines.splice(n ? lastLineOf(lines, found, true) : found.line, 0, ...fresh);
  return lines.join('\n');
}

export function withoutEntry(text, keys, n) {
  const items = itemsOf(text, keys);
  const found = keysOf(text).find((k) => same(k.path, keys));
  const lines = text.split('\n');
  const item = items[n];
  if (items.length === 1) lines[found.line - 1] = lines[found.line - 1].replace(/:(\s|$)/, ': []$1');
  lines.splice(item.line - 1, lastLineOf(lines, item) - item.line + 1);
  return lines.join('\n');
}

// itemsOf are the entries of a block list.
function itemsOf(text, keys) {
  return keysOf(text).filter((k) => k.item && k.path.length === keys.length + 1 && same(k.path.slice(0, -1), keys));
}

// hasComments reports whether there are lines between entries that are none of them.
function hasComments(text, items) {
  return items.length > 0 && items.at(-1).line - items[0].line !== items.length - 1;
}

// flowValues are the values of a list on one line; null if there is anything else in it.
function flowValues(value) {
  const inside = /^\[(.*)\]$/.exec(value)?.[1];
  if (inside === undefined) return null;
  const parts = inside.match(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+/g) ?? [];
  const values = parts.map((part) => part.trim()).filter(Boolean);
  return values.some((v) => /^[[{&*|>!]/.test(v)) ? null : values.map((v) => scalar(v).value);
}

// keysOf lists the keys of block mappings and the entries of block lists, with the paths that lead to them. What is
// in a text of several lines has none.
function keysOf(text) {
  const open = []; // {indent, name, item?, next}
  const keys = [];
  let block = -1; // the indentation of the key of a text of several lines
  const enter = (indent, name, line, value, item) => {
    open.push({ indent, name, item, next: 0 });
    keys.push({ path: open.map((o) => o.name), indent, line, value: value.trim(), item });
    if (/^[|>]/.test(value.trim())) block = indent;
  };
  text.split('\n').forEach((line, i) => {
    if (/^\s*(#|$)/.test(line)) return;
    let indent = line.search(/\S/);
    if (block >= 0 && indent > block) return;
    block = -1;
    let rest = line;
    for (let dash = ITEM.exec(rest); dash; dash = ITEM.exec(rest)) {
      while (open.length && (open.at(-1).indent > indent || (open.at(-1).item && open.at(-1).indent === indent))) open.pop();
      if (!open.length) return;
      const key = KEY.test(dash[3]);
      enter(indent, open.at(-1).next++, i + 1, key ? '' : dash[3], true);
      rest = ' '.repeat(indent + dash[2].length) + dash[3];
      indent = rest.search(/\S/);
      if (!key) return;
    }
    const found = KEY.exec(rest);
    if (!found) return;
    while (open.length && open.at(-1).indent >= indent) open.pop();
    enter(indent, found[2], i + 1, found[3] ?? '');
  });
  return keys;
}

function same(a, b) {
  return a.length === b.length && a.every((key, i) => key === b[i]);
}

// scalar takes a value apart: its text, whether it was in quotes, and the comment behind it.
function scalar(raw = '') {
  const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(\s+#.*)?\s*$/.exec(raw);
  if (quoted) return { value: unquoted(quoted[1]), quoted: true, comment: quoted[2] ?? '' };
  const comment = /(?:^|\s+)#.*$/.exec(raw)?.[0] ?? '';
  return { value: raw.slice(0, raw.length - comment.length).trim(), quoted: false, comment: comment && ` ${comment.trim()}` };
}

function unquoted(text) {
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(1, -1);
  }
}

// written is a value as YAML on one line: text that could be read as something else is in quotes.
function written(value) {
  if (typeof value !== 'string') return String(value);
  return /^[A-Za-z][\w./@-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value) ? value : JSON.stringify(value);
}

// lastLineOf is the last line of what a key or entry has; ofList: it is a list, whose dashes may stand below its key.
function lastLineOf(lines, { line, indent }, ofList = false) {
  let last = line;
  for (let i = line; i < lines.length; i++) {
    if (/^\s*(#|$)/.test(lines[i])) continue;
    const own = lines[i].search(/\S/);
    if (own < indent || (own === indent && !(ofList && ITEM.test(lines[i])))) break;
    last = i + 1;
  }
  return last;
}

// behindDash is where the first key of an entry stands.
function behindDash(lines, { line, item }) {
  return item ? KEY.exec(lines[line - 1])?.[1].length : undefined;
}

function childIndent(lines, { line, indent }) {
  for (let i = line; i < lines.length; i++) {
    if (/^\s*(#|$)/.test(lines[i])) continue;
    const own = lines[i].search(/\S/);
    return own > indent ? own : null;
  }
  return null;
}

function lastFull(lines) {
  let last = lines.length;
  while (last > 0 && !lines[last - 1].trim()) last--;
  return last;
}
