// Drawing anew what changed, so that what is there already stays the same element: what has the focus keeps it, a
// click that has begun arrives, and what is opened, selected or scrolled stays so.
import { fill, flat, listenAs } from './dom.js';

// SOON_MS is how long several events are collected for, in milliseconds.
const SOON_MS = 300;

// soon returns a function that calls f a moment after it was called, once for many calls.
export function soon(f) {
  let waiting = null;
  return () => {
    waiting ??= setTimeout(() => {
      waiting = null;
      f();
    }, SOON_MS);
  };
}

// redraw makes the children of a node look like these. One that is there and is alike becomes like the new one, which
// is thrown away: listeners take what they need from the event. Of elements in a list the same data-key or id tells
// which is which, else their order does. An element that its maker holds on to is a child with a key.
export function redraw(node, children) {
  const wanted = flat(children);
  const free = [...node.childNodes].filter((c) => !wanted.includes(c));
  const byKey = new Map(free.filter(keyOf).map((c) => [keyOf(c), c]));
  const others = free.filter((c) => !keyOf(c));
  fill(
    node,
    wanted.map((next) => {
      if (next.parentNode === node) return next;
      const there = keyOf(next) ? taken(byKey, keyOf(next)) : likeIn(others, next);
      if (there?.nodeName !== next.nodeName) return next;
      become(there, next);
      return there;
    }),
  );
}

function keyOf(node) {
  return node.dataset?.key || node.id;
}

function taken(map, key) {
  const there = map.get(key);
  map.delete(key);
  return there;
}

// likeIn takes the first of the same kind out of a list, with all before it.
function likeIn(list, node) {
  return list.splice(0, list.findIndex((c) => c.nodeName === node.nodeName) + 1).at(-1);
}

const drawnFrom = new WeakMap();

// redrawIf draws a node anew with what make returns, if state is another than when it was drawn last; state is anything
// that JSON can write.
export function redrawIf(node, state, make) {
  const now = JSON.stringify(state);
  if (drawnFrom.get(node) === now) return;
  drawnFrom.set(node, now);
  redraw(node, make());
}

// become gives an element the attributes, listeners and children of another one. Whether <details> are open is for
// the reader to say, and what a field says while it has the focus.
function become(node, next) {
  if (!(node instanceof Element)) {
    if (node.data !== next.data) node.data = next.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    if (!next.hasAttribute(name) && !(name === 'open' && node.nodeName === 'DETAILS')) node.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) !== value && !(name === 'open' && node.nodeName === 'DETAILS')) node.setAttribute(name, value);
  }
  listenAs(node, next);
  redraw(node, [...next.childNodes]);
  if (node.checked !== next.checked) node.checked = next.checked;
  if (node.value !== next.value && node !== document.activeElement) node.value = next.value;
}
