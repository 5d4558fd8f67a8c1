// Differences of texts by lines, and putting a change on top of another one.

// MOST_EDITS bounds the work: texts that differ in more lines are shown as wholly replaced there.
const MOST_EDITS = 2000;

// difference compares two texts. It returns every line of both, in order: {kind, old, now, text}, where
// kind is ' ' (in both), '-' (only in the first) or '+', and old and now are line numbers from 1.
export function difference(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  const lines = [];
  let i = 0;
  let j = 0;
  for (const [x, y] of [...pairs(a, b), [a.length, b.length]]) {
    while (i < x) lines.push({ kind: '-', old: ++i, now: null, text: a[i - 1] });
    while (j < y) lines.push({ kind: '+', old: null, now: ++j, text: b[j - 1] });
    if (x < a.length) lines.push({ kind: ' ', old: ++i, now: ++j, text: a[i - 1] });
  }
  return lines;
}

// changesOf returns the changed lines of a difference with some lines around them; null stands for what
// is left out between.
export function changesOf(lines, around = 0) {
  const near = (at) => lines.slice(Math.max(0, at - around), at + around + 1).some((line) => line.kind !== ' ');
  const shown = [];
  lines.forEach((line, at) => {
    if (near(at)) shown.push(line);
    else if (shown.length && shown.at(-1) !== null) shown.push(null);
  });
  if (shown.at(-1) === null) shown.pop();
  return shown;
}

// pairs returns the indexes of the lines that a longest common subsequence has, after Myers, "An O(ND)
// difference algorithm", 1986.
function pairs(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const found = [];
  for (let i = 0; i < start; i++) found.push([i, i]);
  for (const [x, y] of middle(a.slice(start, a.length - end), b.slice(start, b.length - end))) found.push([x + start, y + start]);
  for (let i = end; i > 0; i--) found.push([a.length - i, b.length - i]);
  return found;
}

function middle(a, b) {
  const trace = [];
  const furthest = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(a.length + b.length, MOST_EDITS); edits++) {
    trace.push(new Map(furthest));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? (furthest.get(k + 1) ?? 0) : furthest.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a, b);
    }
  }
  return [];
}

function walkBack(trace, a, b) {
  const found = [];
  let x = a.length;
  let y = b.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits];
    const k = x - y;
    const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const from = down ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0);
    const fromK = down ? k + 1 : k - 1;
    while (x > from && y > from - fromK && x > 0 && y > 0 && a[x - 1] === b[y - 1]) found.push([--x, --y]);
    if (edits === 0) break;
    x = from;
    y = from - fromK;
  }
  return found.reverse();
}

// onTopOf applies the change from base to mine to another version of base. It returns {text, clashes}:
// clashes are the lines of the result, [from, to], where both changed the same lines and mine was kept.
export function onTopOf(base, mine, theirs) {
  const lines = base.split('\n');
  const ours = hunks(base, mine);
  const others = hunks(base, theirs);
  const result = [];
  const clashes = [];
  let at = 0;
  while (at <= lines.length) {
    const own = ours.find((h) => h.from === at);
    const other = others.find((h) => h.from === at);
    if (!own && !other) {
      if (at < lines.length) result.push(lines[at]);
      at++;
      continue;
    }
    const { end, all } = together(own, other, ours, others);
    const both = all.some((h) => ours.includes(h)) && all.some((h) => others.includes(h));
    const taken = both ? ours : all.some((h) => ours.includes(h)) ? ours : others;
    const start = result.length;
    rewrite(
      result,
      lines,
      all.filter((h) => taken.includes(h)),
      at,
      end,
    );
    if (both && !same(all, ours, others)) clashes.push([start + 1, Math.max(start + 1, result.length)]);
    if (end === at) {
      // an insertion: the line behind it is still to come
      if (at < lines.length) result.push(lines[at]);
      at++;
    } else {
      at = end;
    }
  }
  return { text: result.join('\n'), clashes };
}

// hunks are the changed places of base: lines [from, to) become text.
function hunks(base, changed) {
  const list = [];
  let open = null;
  let at = 0;
  for (const line of difference(base, changed)) {
    if (line.kind === ' ') {
      open = null;
      at = line.old;
      continue;
    }
    if (!open) list.push((open = { from: at, to: at, text: [] }));
    if (line.kind === '-') at = open.to = line.old;
    else open.text.push(line.text);
  }
  return list;
}

// together collects the hunks of both sides that overlap, beginning with one or two that start at the
// same line, and where they end.
function together(own, other, ours, others) {
  const all = [own, other].filter(Boolean);
  const from = all[0].from;
  let end = Math.max(...all.map((h) => h.to));
  for (let grown = true; grown; ) {
    grown = false;
    for (const h of [...ours, ...others]) {
      if (all.includes(h) || h.from < from || h.from >= end) continue;
      all.push(h);
      end = Math.max(end, h.to);
      grown = true;
    }
  }
  return { end, all };
}

function rewrite(result, lines, changes, from, to) {
  let at = from;
  for (const h of changes.sort((x, y) => x.from - y.from)) {
    result.push(...lines.slice(at, h.from), ...h.text);
    at = h.to;
  }
  result.push(...lines.slice(at, to));
}

// same reports whether both sides changed a place in the same way.
function same(all, ours, others) {
  const text = (side) => JSON.stringify(all.filter((h) => side.includes(h)).map(({ from, to, text: t }) => [from, to, t]));
  return text(ours) === text(others);
}
