// The browsers that are logged in, each with the button that logs it out.
import { h, plain } from './dom.js';
import { del, get } from './api.js';
import { ask, failed } from './dialog.js';
import { when } from './format.js';
import { redraw } from './redraw.js';

// sessions returns a section that lists them, and reads them at once.
export function sessions() {
  const rows = h('tbody');
  const node = h(
    'section',
    { 'aria-label': 'Browsers' },
    h('h2', 'Browsers that are logged in'),
    h(
      'table',
      { 'aria-label': 'Browsers that are logged in' },
      h(
        'thead',
        h(
          'tr',
          ['Name', 'Since', 'Last seen', h('span.unseen', 'Actions')].map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      rows,
    ),
  );
  read(rows);
  return node;
}

async function read(rows) {
  try {
    const [{ sessions: all }, own] = await Promise.all([get('/v1/sessions'), get('/v1/session')]);
    redraw(
      rows,
      all.map((s) => row(s, s.name === own.name, () => read(rows))),
    );
  } catch (err) {
    failed(err);
  }
}

function row(session, own, again) {
  const end = async () => {
    const body = own ? 'This page closes. To come back, run daycare web.' : 'Its open connections end at once.';
    if (!(await ask({ title: `Log ${session.name} out?`, body, yes: 'Log out', danger: true }))) return;
    try {
      await del(`/v1/sessions/${encodeURIComponent(session.name)}`);
    } catch (err) {
      failed(err);
    }
    again();
  };
  const name = plain(session.name);
  return h(
    'tr',
    { 'data-key': session.name },
    h('td', h('code', name), own ? [' ', h('span.chip', 'this one')] : null),
    h('td', when(session.createdAt)),
    h('td', when(session.lastAt)),
    h('td', h('button.btn.small', { type: 'button', 'aria-label': `Log out ${name}`, onclick: end }, 'Log out')),
  );
}
