// Keys. Single letters act only outside of fields and dialogs, never when held, and can be disabled
// (WCAG 2.1.4). Tab and what browsers and screen readers own is never taken.

const OFF = 'daycare.keys';
const GO_MS = 1500; // how long g waits for the letter of a page

let pageKeys = [];
let viewKeys = [];
let jumps = [];
let going = -Infinity; // when g was pressed

// A key is {key, label, run}: key as KeyboardEvent.key gives it, label what the list of keys says. run(event)
// returns false if it did nothing.

// setPageKeys are the keys that mean the same everywhere; setJumps those behind g; setViewKeys those of the
// view that is shown, which come first.
export function setPageKeys(keys) {
  pageKeys = keys;
}

export function setJumps(keys) {
  jumps = keys;
}

export function setViewKeys(keys) {
  viewKeys = keys ?? [];
}

// list returns all keys with their labels, for the dialog that names them and for the palette.
export function list() {
  return { page: pageKeys, view: viewKeys, jumps };
}

export function lettersOn() {
  return localStorage.getItem(OFF) !== 'off';
}

export function setLetters(on) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, 'off');
}

// inField reports whether what has the focus takes text.
export function inField(node = document.activeElement) {
  return Boolean(node?.closest?.('textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=button])'));
}

export function listen() {
  document.addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.isComposing || e.repeat) return;
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey) {
      act(
        e,
        [...viewKeys, ...pageKeys].filter((k) => k.ctrl),
      );
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
    if (e.key === 'Escape' && inField()) {
      document.activeElement.blur();
      return;
    }
    if (inField() || !lettersOn()) return;
    if (e.timeStamp - going < GO_MS) {
      going = -Infinity;
      act(e, jumps);
    } else if (e.key === 'g') {
      going = e.timeStamp;
    } else {
      act(
        e,
        [...viewKeys, ...pageKeys].filter((k) => !k.ctrl),
      );
    }
  });
}

function act(e, keys) {
  const found = keys.find((k) => k.key === e.key);
  if (found && found.run(e) !== false) e.preventDefault();
}
