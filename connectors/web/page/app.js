// The page begins here: it signs in, connects, and shows the view of the URL.
import { h } from './dom.js';
import { get, post, onSignedOut } from './api.js';
import * as frame from './frame.js';
import * as keys from './keys.js';
import * as live from './live.js';
import * as router from './router.js';
import * as store from './store.js';
import { show as showPalette, PAGES } from './palette.js';
import { announce, open } from './dialog.js';
import { keepSeen, titleOf, urlOf } from './state.js';
import { notify } from './notify.js';
import { resume } from './drafts.js';

const main = document.getElementById('main');
let view = null; // what is shown: {name, module, shown, params}

begin();

async function begin() {
  keepSeen();
  frame.start();
  keys.listen();
  keys.setPageKeys(pageKeys());
  keys.setJumps(PAGES.map((p) => ({ key: p.key, label: p.title, run: () => router.go(p.path) })));
  document.getElementById('find').addEventListener('click', openPalette);
  document.getElementById('keys').addEventListener('click', showKeys);
  // A new link that is opened in this very tab changes only what is behind #.
  addEventListener('hashchange', () => {
    if (location.hash.includes('token=')) location.reload();
  });
  if (await signIn()) run();
}

// signIn exchanges the token of the address, which daycare web prints, for the session's cookie, and takes it
// out of the address at once.
async function signIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return true;
  history.replaceState(null, '', location.pathname + location.search);
  try {
    await post('/v1/session', { token });
    return true;
  } catch (err) {
    const signedIn = await get('/v1/session').then(
      () => true,
      () => false,
    );
    if (!signedIn) signedOut(err);
    return signedIn;
  }
}

async function run() {
  onSignedOut(signedOut);
  live.on('event', (e) => {
    view?.shown?.event?.(e);
    if (e.type === 'permission.requested') announceRequest(e);
  });
  live.on('again', () => view?.shown?.again?.());
  await live.connect((status) => signedOut({ message: status === 403 ? 'The server refused this page' : 'The session is over' }));
  if (document.body.classList.contains('out')) return;
  store.begin().catch(() => {});
  resume();
  router.start(show);
}

// announceRequest reports a new request: to screen readers, and as a notification if the page is not looked at.
async function announceRequest(e) {
  const agent = await store.read(e.agent);
  announce(`${titleOf(agent)} asks for ${e.permission}`);
  if (live.leads()) notify(e, titleOf(agent));
}

// show draws the view of a URL. A view that is shown already may take the new parameters itself.
async function show(params, { back }) {
  if (view?.name === params.view && view.shown?.update?.(params)) {
    view.params = params;
    title();
    return;
  }
  const wanted = { name: params.view, params };
  view?.shown?.close?.();
  view = wanted;
  let module;
  try {
    module = await import(`./views/${params.view}.js`);
    sessionStorage.removeItem(RELOADED);
  } catch (err) {
    module = failedView(err);
  }
  if (view !== wanted) return; // another one was chosen meanwhile
  const shown = module.render(params);
  Object.assign(wanted, { module, shown });
  keys.setViewKeys(shown.keys);
  main.replaceChildren(shown.node);
  main.scrollTop = 0;
  title();
  if (!back) main.focus({ preventScroll: true });
  shown.ready?.();
}

function title() {
  const { module, params } = view;
  frame.setHeading(typeof module.title === 'function' ? module.title(params) : module.title);
}

const RELOADED = 'daycare.reloaded';

// failedView is shown instead of a view that cannot be loaded. The usual reason is that the daemon was updated
// under the page: then it is loaded again, once.
function failedView(err) {
  if (!sessionStorage.getItem(RELOADED)) {
    sessionStorage.setItem(RELOADED, 'yes');
    location.reload();
  }
  return {
    title: 'Not available',
    render: () => ({
      node: h(
        'div.empty',
        h('h1', 'This page could not be loaded'),
        h('p', String(err.message)),
        h('button.btn', { type: 'button', onclick: () => location.reload() }, 'Load the page again'),
      ),
    }),
  };
}

// signedOut replaces everything by the way to sign in: nothing of a session stays on the screen.
function signedOut(err) {
  if (document.body.classList.contains('out')) return;
  view?.shown?.close?.();
  view = null;
  keys.setViewKeys([]);
  document.body.classList.add('out');
  const field = h('input.in', { 'aria-label': 'Link or token', placeholder: 'Link or token', autocomplete: 'off' });
  const why = h('p.error', { role: 'alert' }, err?.message ?? '');
  main.replaceChildren(
    h(
      'form.empty',
      {
        onsubmit: (e) => {
          e.preventDefault();
          enter(field.value, why);
        },
      },
      h('h1', 'Sign in'),
      h(
        'p',
        'Run ',
        h('code', 'daycare web'),
        ' in the workspace. It opens this page, and prints a link that works once, for five minutes.',
      ),
      why,
      h('div.bar', field, h('button.btn.main', { type: 'submit' }, 'Sign in')),
    ),
  );
  frame.setHeading('Sign in');
  field.focus();
}

async function enter(text, why) {
  const token = /token=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
  try {
    await post('/v1/session', { token: decodeURIComponent(token) });
    location.reload();
  } catch (err) {
    why.textContent = err.hint ? `${err.message}. ${err.hint}` : err.message;
  }
}

function openPalette() {
  showPalette([...(view?.shown?.actions?.() ?? []), ...(view?.shown?.keys ?? []).filter((k) => k.action)]);
}

// pageKeys mean the same everywhere; those with action are in the palette as well.
function pageKeys() {
  return [
    {
      key: 'k',
      ctrl: true,
      show: 'Ctrl K',
      label: 'Find or do',
      run: () => {
        if (!document.querySelector('dialog[open]')) openPalette();
      },
    },
    { key: 'n', label: 'New agent', action: true, icon: 'plus', run: () => router.go('/?new') },
    { key: 'y', label: 'Review the oldest request', action: true, icon: 'approvals', run: oldest },
    {
      key: '/',
      label: 'Filter',
      run: () => {
        const f = main.querySelector('[data-filter]');
        f?.focus();
        return Boolean(f);
      },
    },
    { key: ']', label: 'Next agent', run: () => step(1) },
    { key: '[', label: 'Previous agent', run: () => step(-1) },
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ key: String(n), label: n === 1 ? 'An agent, 1 to 9' : '', run: () => nth(n - 1) })),
    { key: '?', label: 'Keys', action: true, icon: 'info', run: showKeys },
  ];
}

function oldest() {
  const [first] = store.openAsks();
  router.go(first ? `/approvals/${first.token}` : '/approvals');
}

function nth(n) {
  const agents = store.allAgents().filter((a) => a.state !== 'ended');
  if (agents.length) router.go(urlOf(agents[(n + agents.length) % agents.length]));
}

function step(by) {
  const agents = store.allAgents().filter((a) => a.state !== 'ended');
  const at = agents.findIndex((a) => location.pathname === urlOf(a));
  nth(at < 0 ? 0 : at + by);
}

// showKeys lists the keys of the page and of the view, and switches single letters off.
function showKeys() {
  const { page, view: own, jumps } = keys.list();
  const rows = [...own, ...page].filter((k) => k.label).map((k) => [k.show ?? k.key, k.label]);
  const off = h('input', { type: 'checkbox', onchange: () => keys.setLetters(off.checked) });
  off.checked = keys.lettersOn();
  const dialog = open(
    'box',
    'Keys',
    h(
      'div.body',
      h('h2', 'Keys'),
      h(
        'dl.keys',
        [...rows, ...jumps.map((k) => [`g ${k.key}`, k.label]), ['Esc', 'Close, leave a field']].map(([key, label]) =>
          h('div', h('dt', h('kbd', key)), h('dd', label)),
        ),
      ),
      h('label.check', off, 'Single-letter keys'),
    ),
    h('div.acts', h('button.btn', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Close')),
  );
}
