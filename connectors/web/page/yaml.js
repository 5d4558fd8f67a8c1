// Single values in a YAML text, read and changed without touching anything else. Only what is written plainly
// is understood: block mappings and values on one line. Everything else is left to the text itself.

// A KEY line is indentation, name, value.
const KEY = /^( *)([A-Za-z_][\w-]*):(?:[ ]+(.*))?$/;

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
  const lines = text.split('\n');
  if (at) {
    if (!at.raw) return null;
    const [, indent, name, old] = KEY.exec(lines[at.line - 1]);
    lines[at.line - 1] = `${indent}${name}: ${written(value)}${scalar(old).comment}`;
    return lines.join('\n');
  }
  const parent = keysOf(text).findLast((k) => k.path.length < keys.length && same(k.path, keys.slice(0, k.path.length)));
  const depth = parent ? parent.path.length : 0;
  const line = parent ? lastLineOf(lines, parent) : lastFull(lines);
  const first = parent ? (childIndent(lines, parent) ?? parent.indent + 2) : 0;
  const added = keys.slice(depth).map((key, i) => `${' '.repeat(first + 2 * i)}${key}:`);
  added[added.length - 1] += ` ${written(value)}`;
  lines.splice(line, 0, ...added);
  return lines.join('\n');
}

// keysOf lists the keys of block mappings with their paths. What is inside of a list has none.
function keysOf(text) {
  const open = []; // {indent, name}
  const keys = [];
  let list = Infinity; // the indentation of a list that is open
  text.split('\n').forEach((line, i) => {
    if (/^\s*(#|$)/.test(line)) return;
    const indent = line.search(/\S/);
    if (indent < list) list = Infinity;
    if (/^\s*-(\s|$)/.test(line)) list = Math.min(list, indent);
    if (indent >= list) return;
    const found = KEY.exec(line);
    if (!found) return;
    while (open.length && open.at(-1).indent >= indent) open.pop();
    open.push({ indent, name: found[2] });
    keys.push({ path: open.map((o) => o.name), indent, line: i + 1, value: (found[3] ?? '').trim() });
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

function lastLineOf(lines, { line, indent }) {
  let last = line;
  for (let i = line; i < lines.length; i++) {
    if (/^\s*(#|$)/.test(lines[i])) continue;
    if (lines[i].search(/\S/) <= indent) break;
    last = i + 1;
  }
  return last;
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
