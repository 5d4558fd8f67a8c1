// What is around every view: pages and their counts, all agents, the connection, the title of the tab.
import { fill, h, icon, plain, setText, sign } from './dom.js';
import { allAgents, daemonStatus, openAsks, ready, subscribe } from './store.js';
import { depth, keyOf, nameOf, titleOf, urlOf, WORDS } from './state.js';
import { connection, on, retry } from './live.js';
import { hour, plural, refreshTimes } from './format.js';
import { announce } from './dialog.js';

const rows = new Map(); // of the agents at the left, by id
const MOST = 150; // agents at the left; Home has all
const rest = h('li', h('a', { href: '/' }));
let heading = 'daycare';
let current = location.pathname;

// start draws the frame and keeps it up to date.
export function start() {
  subscribe('agents', drawAgents);
  subscribe('asks', () => {
    drawCounts();
    drawTitle();
  });
  subscribe('status', () => {
    drawCounts();
    drawWhere();
  });
  on('state', drawConnection);
  setInterval(() => {
    if (!document.hidden) refreshTimes();
  }, 5000);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) refreshTimes();
  });
  theme();
}

// setHeading makes the title of the tab and marks the page in the navigation.
export function setHeading(title) {
  heading = title;
  current = location.pathname;
  drawTitle();
  for (const link of document.querySelectorAll('#nav a, .foot a')) {
    const path = link.getAttribute('href');
    mark(link, path === '/' ? current === '/' : current === path || current.startsWith(`${path}/`));
  }
  for (const row of rows.values()) markRow(row);
}

function mark(link, here) {
  if (here) link.setAttribute('aria-current', 'page');
  else link.removeAttribute('aria-current');
}

function markRow(row) {
  const path = row.getAttribute('href');
  const here = current === path || current.startsWith(`${path}/`);
  mark(row, here);
  if (here) row.scrollIntoView({ block: 'nearest' });
}

function drawTitle() {
  const n = openAsks().length;
  document.title = `${n ? `(${n}) ` : ''}${heading} · daycare`;
}

// drawCounts shows what needs a person beside the pages: requests, and problems of files.
function drawCounts() {
  badge('/approvals', openAsks().length, 'ask', 'to answer');
  badge('/health', daemonStatus()?.problems?.length ?? 0, 'error', 'problems');
}

function badge(path, n, kind, what) {
  const link = document.querySelector(`#nav a[href="${path}"]`);
  link.querySelector('b')?.remove();
  if (n > 0) link.append(h(`b.${kind}`, h('span', { 'aria-hidden': 'true' }, n > 99 ? '99+' : n), h('span.unseen', ` ${n} ${what}`)));
}

function drawWhere() {
  const path = daemonStatus()?.workspace ?? '';
  const where = document.getElementById('where');
  where.title = path;
  const short = path.replace(/^\/(home|Users)\/[^/]+/, '~');
  setText(where, short.length > 24 ? `…/${short.split('/').at(-1)}` : short);
}

function drawAgents() {
  const list = allAgents();
  const shown = list.filter((a) => a.state !== 'ended');
  const ids = new Set(shown.map((a) => a.id));
  for (const id of rows.keys()) if (!ids.has(id)) rows.delete(id);
  const head =
    document.querySelector('#agents h2') ??
    h('h2', h('span', 'Agents'), h('a.tap', { href: '/?new', 'aria-label': 'New agent', title: 'New agent' }, icon('plus')));
  const ul = document.querySelector('#agents ul') ?? h('ul');
  const more = shown.length - MOST;
  setText(rest.firstChild, `and ${plural(more, 'more', 'more')}`);
  fill(ul, [...shown.slice(0, MOST).map((a) => agentRow(a).parentNode), more > 0 && rest]);
  fill(document.getElementById('agents'), ready() ? [head, ul] : []);
  drawTitle();
}

function agentRow(agent) {
  let row = rows.get(agent.id);
  if (!row) {
    row = h('a', h('span.mono'), h('span.cut'), h('small'));
    h('li', row);
    rows.set(agent.id, row);
  }
  const key = keyOf(agent);
  if (row.dataset.state !== key) {
    row.dataset.state = key;
    row.querySelector('svg')?.remove();
    row.prepend(sign(key, WORDS[key]));
  }
  row.classList.toggle('child', depth(agent) > 0);
  const [handle, name, waits] = row.querySelectorAll('span, small');
  setText(handle, agent.handle);
  if (name.textContent !== nameOf(agent)) {
    setText(name, nameOf(agent));
    row.title = titleOf(agent);
  }
  setText(waits, agent.queued ? String(agent.queued) : '');
  if (row.getAttribute('href') !== urlOf(agent)) {
    row.setAttribute('href', urlOf(agent));
    markRow(row);
  }
  return row;
}

let counting = null;

// drawConnection shows whether the page is live. The bar at the top says since when it is not, what is safe,
// and when the next attempt is.
function drawConnection(s) {
  const conn = document.getElementById('conn');
  const lost = !s.live && !s.connecting;
  setText(conn, s.live ? 'live' : 'lost');
  conn.classList.toggle('lost', lost);
  document.body.classList.toggle('lost', lost);
  clearInterval(counting);
  const bar = document.getElementById('gone');
  if (!lost) {
    if (!bar.hidden) announce('daycare answers again');
    bar.hidden = true;
    return;
  }
  const left = h('span');
  const tick = () => setText(left, ` Next attempt in ${Math.max(0, Math.ceil((connection().retryAt - Date.now()) / 1000))} s.`);
  tick();
  counting = setInterval(tick, 1000);
  const text = h(
    'p',
    h('strong', 'daycare does not answer. '),
    `What you see is from ${hour(s.since)}. What you sent is stored; what you typed stays here.`,
  );
  if (bar.hidden) {
    bar.replaceChildren(
      icon('warn'),
      text,
      h('span.quiet', { 'aria-hidden': 'true' }, left),
      h('button.btn.small', { type: 'button', onclick: retry }, 'Try now'),
    );
    bar.hidden = false;
  } else {
    bar.querySelector('.quiet').replaceChildren(left);
  }
}

const THEMES = { '': 'as the system', light: 'light', dark: 'dark' };

// theme applies the chosen colours and makes the button that changes them: system, light, dark.
function theme() {
  const button = document.getElementById('theme');
  const apply = (name) => {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    button.setAttribute('aria-label', `Colours: ${THEMES[name]}`);
    button.title = `Colours: ${THEMES[name]}`;
  };
  const now = () => localStorage.getItem('daycare.theme') ?? '';
  button.append(icon('theme'));
  button.addEventListener('click', () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(now()) + 1) % names.length];
    localStorage.setItem('daycare.theme', next);
    apply(next);
    announce(`Colours: ${THEMES[next]}`);
  });
  apply(now());
}

// spoken is the name of an agent in a sentence for screen readers.
export function spoken(agent) {
  return plain(titleOf(agent));
}
