// Find or do: one field for pages, agents, requests and every action, with its key.
import { h, icon, plain, sign } from './dom.js';
import { open } from './dialog.js';
import { go } from './router.js';
import { allAgents, openAsks, agentOf } from './store.js';
import { keyOf, nameOf, titleOf, urlOf, WORDS } from './state.js';
import { list } from './keys.js';

// PAGES are the pages of the navigation and those that only the palette names; key follows g.
export const PAGES = [
  { title: 'Home', path: '/', icon: 'home', key: 'h' },
  { title: 'Approvals', path: '/approvals', icon: 'approvals', key: 'a' },
  { title: 'Clocks', path: '/clocks', icon: 'clocks', key: 'c' },
  { title: 'Files', path: '/files', icon: 'files', key: 'f' },
  { title: 'Costs', path: '/costs', icon: 'costs', key: 'o' },
  { title: 'Health', path: '/health', icon: 'health', key: 'e' },
  { title: 'Settings', path: '/settings', icon: 'settings', key: 's' },
  { title: 'Skills', path: '/skills', icon: 'skills', key: 'k' },
  { title: 'Tools', path: '/tools', icon: 'tools', key: 't' },
  { title: 'Trash', path: '/trash', icon: 'trash', key: 'r' },
];

// MOST is how many results of a group are shown, FIRST how many before anything is typed: pages and actions stay in reach
// however many agents there are.
const MOST = 40;
const FIRST = 9;

// show opens the palette. actions are those of the view: {label, key, run, icon, danger}.
export function show(actions) {
  const input = h('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'found',
    'aria-label': 'Find or do',
    placeholder: 'Find or do',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const found = h('ul', { id: 'found', role: 'listbox', 'aria-label': 'Results' });
  const count = h('div.unseen', { role: 'status' });
  const dialog = open('palette', 'Find or do', input, found, count);
  const all = entries(actions);
  let shown = [];
  let at = 0;

  const draw = () => {
    shown = match(all, input.value);
    at = 0;
    count.textContent = `${shown.length} results`;
    found.replaceChildren(...rows(shown, choose));
    if (shown.length === 0) found.append(h('li.quiet', { role: 'presentation' }, 'Nothing has this name.'));
    select();
  };
  const select = () => {
    const options = [...found.querySelectorAll('[role=option]')];
    options.forEach((o, i) => o.setAttribute('aria-selected', String(i === at)));
    input.setAttribute('aria-activedescendant', options[at]?.id ?? '');
    options[at]?.scrollIntoView({ block: 'nearest' });
  };
  // A dialog that opens before this one is gone is hidden from screen readers.
  const choose = (entry) => {
    dialog.addEventListener('close', () => setTimeout(entry.run));
    dialog.close();
  };
  input.addEventListener('input', draw);
  input.addEventListener('keydown', (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && shown.length) at = (at + step + shown.length) % shown.length;
    else if (e.key === 'Enter' && shown[at]) choose(shown[at]);
    else return;
    e.preventDefault();
    select();
  });
  draw();
  input.focus();
}

// entries are everything that can be found, in the order of its groups.
function entries(actions) {
  const { page } = list();
  return [
    ...openAsks().map((a) => ({
      group: 'To answer',
      mark: () => sign('ask', WORDS.ask),
      text: `Review ${titleOf(agentOf(a.agentId))}: ${plain(a.permission)}`,
      run: () => go(`/approvals/${a.token}`),
    })),
    ...allAgents().map((a) => ({
      group: 'Agents',
      mark: () => sign(keyOf(a), WORDS[keyOf(a)]),
      handle: a.handle,
      text: nameOf(a),
      run: () => go(urlOf(a)),
    })),
    ...PAGES.map((p) => ({ group: 'Pages', mark: () => icon(p.icon), text: p.title, key: `g ${p.key}`, run: () => go(p.path) })),
    ...[...actions, ...page.filter((k) => k.action)].map((a) => ({
      group: 'Actions',
      mark: () => icon(a.icon ?? 'right'),
      text: a.label,
      key: a.show ?? a.key,
      danger: a.danger,
      run: a.run,
    })),
  ];
}

// match keeps what has every word that was typed. What begins with it comes first, what destroys never does.
function match(all, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return few(all, (e) => (e.group === 'Agents' || e.group === 'To answer' ? FIRST : MOST));
  const text = (e) => `${e.handle ?? ''} ${e.text} ${e.group}`.toLowerCase();
  const rank = (e) =>
    (e.danger ? 2 : 0) + ((e.handle ?? e.text).toLowerCase().startsWith(words[0]) || e.text.toLowerCase().startsWith(words[0]) ? 0 : 1);
  const fits = all.filter((e) => words.every((w) => text(e).includes(w)));
  return few(fits.toSorted((a, b) => rank(a) - rank(b)), () => MOST);
}

// few keeps the first entries of each group, as many as most says.
function few(list, most) {
  const counts = {};
  return list.filter((e) => {
    counts[e.group] = (counts[e.group] ?? 0) + 1;
    return counts[e.group] <= most(e);
  });
}

function rows(shown, choose) {
  let group = '';
  return shown.flatMap((entry, i) => {
    const head = entry.group === group ? [] : [h('li.group', { role: 'presentation' }, entry.group)];
    group = entry.group;
    return [
      ...head,
      h(
        'li',
        { role: 'option', id: `found-${i}`, onclick: () => choose(entry) },
        entry.mark(),
        entry.handle ? h('span.mono', entry.handle) : null,
        h('span.cut', entry.text),
        entry.key ? h('kbd', entry.key) : null,
      ),
    ];
  });
}
