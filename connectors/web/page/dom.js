// Elements, without innerHTML: everything enters the page as text. The one exception is setRendered.

const SVG = 'http://www.w3.org/2000/svg';

// h returns a new element. spec is a tag with classes, as in 'div.row.on'. Attributes follow, then
// children: nodes, text, numbers, lists of these; null, undefined and false are left out. An attribute
// that is a function is a listener (onclick), true is an empty attribute, false and null are none.
export function h(spec, ...rest) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  if (isAttributes(rest[0])) setAttributes(node, rest.shift());
  add(node, rest);
  return node;
}

// svg is h for SVG elements; lengths are attributes there, as the page has no inline styles.
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  setAttributes(node, attributes ?? {});
  add(node, children);
  return node;
}

function isAttributes(v) {
  return v !== null && typeof v === 'object' && !(v instanceof Node) && !Array.isArray(v);
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') listen(node, name.slice(2), value);
    else if (name === 'class') node.setAttribute('class', `${node.getAttribute('class') ?? ''} ${value}`.trim());
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
}

const listeners = new WeakMap(); // of an element: its listeners by the name of the event

function listen(node, name, f) {
  const own = listeners.get(node) ?? {};
  listeners.set(node, own);
  if (!(name in own)) node.addEventListener(name, (e) => own[name]?.call(node, e));
  own[name] = f;
}

// listenAs makes an element call the listeners that another one was made with, in place of its own.
export function listenAs(node, other) {
  const theirs = listeners.get(other) ?? {};
  for (const name of Object.keys(listeners.get(node) ?? {})) if (!theirs[name]) listen(node, name, null);
  for (const [name, f] of Object.entries(theirs)) listen(node, name, f);
}

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child);
  }
}

// icon returns an icon of the sprite in index.html, 16 px; sign one of the signs of a state, 14 px.
export function icon(name, label) {
  return use('icon', `#i-${name}`, label);
}

export function sign(name, label) {
  return use(`sign ${name}`, `#s-${name}`, label);
}

function use(classes, href, label) {
  const named = label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' };
  return svg('svg', { class: classes, ...named }, svg('use', { href }));
}

// setText changes the text of a node only if it differs, so that nothing is laid out for nothing.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// flat is a list of children as nodes: lists in it are opened, texts made, and what is no child left out.
export function flat(children) {
  return children
    .flat(Infinity)
    .filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(c)));
}

// fill makes the children of a node these, and moves only what is not in its place. What has the focus keeps it.
export function fill(node, children) {
  const wanted = flat(children);
  const held = node.contains(document.activeElement) ? document.activeElement : null;
  const stays = new Set(wanted);
  for (const child of [...node.childNodes]) if (!stays.has(child)) child.remove();
  let at = node.firstChild;
  for (const next of wanted) {
    if (next === at) at = at.nextSibling;
    else node.insertBefore(next, at);
  }
  if (held?.isConnected && held !== document.activeElement) held.focus({ preventScroll: true });
}

const policy = globalThis.trustedTypes?.createPolicy('daycare', { createHTML: (html) => html });

// setRendered puts HTML into a node that the server made from Markdown and sanitised. It is the only
// function that may set HTML, and only the member "html" of a record may be given to it.
export function setRendered(node, html) {
  node.innerHTML = policy ? policy.createHTML(html) : html;
  for (const link of node.querySelectorAll('a[href]')) link.target = '_blank'; // the page stays
}

// UNSEEN are the characters without a shape of their own, the same as on every other surface of daycare:
// controls, format characters, spaces other than the usual one, selectors, fillers, private and unassigned ones.
const UNSEEN =
  /[\u034F\u115F\u1160\u17B4\u17B5\u180B-\u180F\u2800\u3164\uFFA0]|[\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]|(?![\n\t])\p{C}/gu;

// HARMFUL are those of them that change what other text says: controls, reading direction, zero width. Emoji
// keep their joiners and selectors.
const HARMFUL =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u200B\u200C\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E007F}]/gu;

// exact returns text as nodes in which each unseen character is a mark with its number: for what somebody is
// asked to allow.
export function exact(text) {
  return marked(text, UNSEEN);
}

// named is the same for everything else that agents and files say: only harmful characters are marks.
export function named(text) {
  return marked(text, HARMFUL);
}

function marked(text, which) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(which)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(h('mark', codePoint(found[0])));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

// plain is named as one string, for names, titles and labels; exactText is exact as one.
export function plain(text) {
  return String(text ?? '').replace(HARMFUL, (c) => `[${codePoint(c)}]`);
}

export function exactText(text) {
  return text.replace(UNSEEN, (c) => `[${codePoint(c)}]`);
}

// unseenIn lists the unseen characters of a text, with line and column from 1.
export function unseenIn(text) {
  return text
    .split('\n')
    .flatMap((line, i) =>
      [...line.matchAll(UNSEEN)].map((m) => ({ name: codePoint(m[0]), line: i + 1, column: [...line.slice(0, m.index)].length + 1 })),
    );
}

function codePoint(c) {
  return `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}
