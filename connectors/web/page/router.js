// Which view a URL shows. Everything that is selected or filtered is in the URL: a reload shows the same,
// and back works.

const VIEWS = {
  '': 'home',
  agents: 'agent',
  approvals: 'approvals',
  clocks: 'clocks',
  files: 'files',
  costs: 'costs',
  health: 'health',
  settings: 'settings',
  skills: 'skills',
  tools: 'tools',
  trash: 'trash',
};

let show = () => {};

// parse returns {view, path, query}: the name of the view, the rest of the path in decoded parts, and the
// query as URLSearchParams. A URL that is none has the view 'missing'.
export function parse(url) {
  const parts = url.pathname.split('/').filter(Boolean).map(decode);
  return { view: VIEWS[parts[0] ?? ''] ?? 'missing', path: parts.slice(1), query: url.searchParams };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// start shows the current URL with f(params, {back}) and every one that is gone to after it.
export function start(f) {
  show = f;
  addEventListener('popstate', () => show(parse(new URL(location.href)), { back: true }));
  document.addEventListener('click', follow);
  show(parse(new URL(location.href)), { back: true });
}

// go shows another URL of the page; replace: without a step for back, as for a filter that is typed.
export function go(path, { replace = false } = {}) {
  const url = new URL(path, location.href);
  if (url.href === location.href) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  show(parse(url), { back: false });
}

// setQuery changes some parameters of the URL; null or '' removes one.
export function setQuery(changes, options = { replace: true }) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  go(url.pathname + url.search, options);
}

// follow goes to links of the page without loading it anew.
function follow(e) {
  const link = e.target.closest?.('a[href]');
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute('download')) return;
  if (link.pathname.startsWith('/v1/') || link.getAttribute('href').startsWith('#')) return;
  e.preventDefault();
  go(link.pathname + link.search);
}
