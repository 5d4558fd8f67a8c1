// Lists of things to look up: skills, tools, the trash.
import { h, plain, fill, setText } from './dom.js';
import { failed } from './dialog.js';
import { plural } from './format.js';
import { redraw, soon } from './redraw.js';
import { setQuery } from './router.js';

// list returns a view of things with a filter. read fetches them, words is the text that the filter looks in,
// row makes {name, about, facts, action, mono} of one, empty says how things come here, event is which events
// change the list.
export function list({ title, read, event, empty, words, row }) {
  const node = h('div.page.slim', { 'aria-busy': 'true' });
  const filter = h('input.in', {
    type: 'search',
    placeholder: `Filter ${title.toLowerCase()}`,
    'aria-label': `Filter ${title.toLowerCase()}`,
    'data-filter': true,
    oninput: () => {
      setQuery({ q: filter.value });
    },
  });
  const count = h('span.quiet');
  const rows = h('div');
  let items = null;
  const draw = () => {
    const q = filter.value.trim().toLowerCase();
    const shown = (items ?? []).filter((item) => words(item).toLowerCase().includes(q));
    setText(count, items === null ? '' : q ? `${shown.length} of ${items.length}` : plural(items.length, 'entry', 'entries'));
    redraw(rows, [
      items !== null &&
        (shown.length
          ? h(
              'ul.catalogue',
              shown.map((item) => entry(row(item, again))),
            )
          : h('p.hint', items.length ? 'Nothing matches the filter.' : empty)),
    ]);
  };
  const again = soon(async () => {
    try {
      items = await read();
      node.removeAttribute('aria-busy');
    } catch (err) {
      failed(err);
    }
    draw();
  });
  filter.value = new URLSearchParams(location.search).get('q') ?? '';
  fill(node, [h('header.head', h('h1', title), count, h('span.grow'), filter), rows]);
  again();
  return {
    node,
    again,
    event: (e) => {
      if (event.test(e.type)) again();
    },
    update: () => {
      draw();
      return true;
    },
  };
}

function entry({ name, about, facts, action, mono }) {
  return h(
    'li',
    { 'data-key': name },
    h(
      'div',
      h(`h2${mono ? '.mono' : ''}`, plain(name)),
      about && h('p', plain(about)),
      h(
        'p.facts',
        facts.filter(Boolean).map((f) => h('span', f)),
      ),
    ),
    action,
  );
}
