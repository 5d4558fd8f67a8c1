// Two versions of a file: what each changed, and which one is kept.
import { h, icon, named } from './dom.js';
import { open } from './dialog.js';
import { hour } from './format.js';
import { difference, changesOf, onTopOf } from './difference.js';

// diffTable shows the lines of a difference; null in the list is a gap.
export function diffTable(lines, label = 'Change') {
  return h(
    'div.diff',
    { role: 'group', 'aria-label': label, tabindex: lines.length > 12 ? '0' : null },
    lines.map((line) => {
      if (line === null) return h('div.hunk', h('i'), h('span'), h('span', '⋯'));
      const kind = { '+': 'add', '-': 'del' }[line.kind] ?? 'same';
      return h(
        `div.${kind}`,
        h('i', String(line.now ?? line.old)),
        h('span', { 'aria-label': { add: 'added', del: 'removed' }[kind] ?? null }, line.kind),
        h('span', named(line.text)),
      );
    }),
  );
}

// settle asks what to do with an edit whose file was changed meanwhile. It returns {took, text, clashes}: took is
// 'mine' (the edit, on top of what is on disk) or 'theirs'; null to go on editing.
export function settle({ name, base, mine, disk }) {
  return new Promise((answer) => {
    const merged = onTopOf(base, mine, disk.text);
    let choice = null;
    const take = (took, text, clashes) => () => {
      choice = { took, text, clashes };
      dialog.close();
    };
    const half = (heading, to) => {
      const lines = changesOf(difference(base, to));
      return h('section', h('h3', heading), lines.length ? diffTable(lines, heading) : h('p.quiet', 'No lines differ.'));
    };
    const dialog = open(
      'box.wide',
      `${name} has changed`,
      h(
        'div.body',
        h('h2', `${name} has changed on disk`),
        h('p', 'The file changed after you opened it. Nothing is lost: choose what to keep.'),
        h('div.halves', half('Your change', mine), half(`On disk since ${hour(disk.since)}`, disk.text)),
        verdict(merged.clashes),
      ),
      h(
        'div.acts',
        h('button.btn.main', { type: 'button', onclick: take('mine', merged.text, merged.clashes) }, 'Apply my change on top'),
        h('button.btn', { type: 'button', onclick: take('theirs', disk.text, []) }, 'Use the version on disk'),
        h('span.grow'),
        h('button.btn', { type: 'button', onclick: () => dialog.close() }, 'Keep editing'),
      ),
    );
    dialog.addEventListener('close', () => answer(choice));
  });
}

function verdict(clashes) {
  if (!clashes.length) return h('p.fine', icon('check'), 'The two changes do not touch each other.');
  const places = clashes.map(([from, to]) => (from === to ? `line ${from}` : `lines ${from} to ${to}`)).join(', ');
  return h('p.warn', icon('warn'), `Both changed the same place: ${places}. Yours is kept there; check it before you publish.`);
}
