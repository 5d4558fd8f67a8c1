// Views that are drawn anew as a whole when something changed.
import { fill } from './dom.js';

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

// redraw replaces the children of a node. What has the focus keeps it, if an element with the same data-key
// is there again, and so do the places that were scrolled to.
export function redraw(node, children) {
  const active = document.activeElement;
  const key = node.contains(active) ? active.dataset.key : null;
  const scrolled = [...node.querySelectorAll('[data-scrolls]')].map((n) => [n.dataset.scrolls, n.scrollTop]);
  fill(node, children);
  for (const [name, top] of scrolled) {
    const again = node.querySelector(`[data-scrolls="${CSS.escape(name)}"]`);
    if (again) again.scrollTop = top;
  }
  if (key) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}
