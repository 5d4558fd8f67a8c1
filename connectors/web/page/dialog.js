// What lies over the page: questions, sheets, short messages; and sentences for screen readers.
import { h, icon } from './dom.js';

// open shows a modal dialog with these children and returns it. It is named by label, closed by Esc and, while nothing was changed
// in its fields, by a click beside it, and gives the focus back, unless what was done with it has put the focus elsewhere. A longer
// text that was changed takes a second Esc. kind is 'box' (centred), 'sheet' (a pane at the right) or 'palette'.
export function open(kind, label, ...children) {
  const dialog = h(`dialog.${kind}`, { 'aria-label': label }, ...children);
  const before = document.activeElement;
  dialog.addEventListener('close', () => {
    const taken = document.activeElement !== document.body && !dialog.contains(document.activeElement);
    if (dialog.contains(message())) document.body.append(message());
    dialog.remove();
    if (taken) return;
    if (before?.isConnected) before.focus();
    else document.getElementById('main').focus();
  });
  const kept = kind === 'palette' ? [] : [...dialog.querySelectorAll('textarea, input, select')];
  const fields = kept.map((field) => [field, stateOf(field)]);
  let pressed = null; // a text that is selected beyond the edge ends with a click beside, too
  dialog.addEventListener('pointerdown', (e) => {
    pressed = e.target;
  });
  dialog.addEventListener('click', (e) => {
    if (e.target !== dialog || pressed !== dialog) return;
    const changed = fields.find(isChanged);
    if (changed) changed[0].focus();
    else dialog.close();
  });
  let warned = false;
  dialog.addEventListener('cancel', (e) => {
    if (e.target !== dialog || warned || !fields.some((one) => one[0].matches('textarea') && isChanged(one))) return;
    e.preventDefault();
    warned = true;
    toast('Press Esc again to discard what you changed');
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

const stateOf = (field) => `${field.checked} ${field.value}`;
const isChanged = ([field, before]) => stateOf(field) !== before;

// ask asks a question and returns whether yes was chosen. body says what will change and what will not; field,
// if there is one, is {label, value} of a text that is asked for: then the answer is the text, or null.
export function ask({ title, body, yes, danger = false, field }) {
  return new Promise((answer) => {
    const input =
      field && h('input.in', { value: field.value ?? '', 'aria-label': field.label, placeholder: field.label, autofocus: true });
    let result = field ? null : false;
    const form = h(
      'form',
      {
        method: 'dialog',
        onsubmit: () => {
          result = field ? input.value.trim() : true;
        },
      },
      h(
        'div.body',
        h('h2', title),
        [body].flat().map((p) => (typeof p === 'string' ? h('p', p) : p)),
        input,
      ),
      h(
        'div.acts',
        h(`button.btn.${danger ? 'bad' : 'main'}`, { type: 'submit' }, yes),
        h('button.btn', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
      ),
    );
    const dialog = open('box', title, form);
    dialog.addEventListener('close', () => answer(result));
    (input ?? form.querySelector('button')).focus();
    input?.select(); // what is typed replaces what is there
  });
}

// sheet opens a pane over the right of the page, with a heading and a button that closes it.
export function sheet(title, note, ...children) {
  const close = h('button.tap', { type: 'button', 'aria-label': 'Close', onclick: () => dialog.close() }, icon('close'));
  const dialog = open('sheet', title, h('div.head', h('h1', title), h('span.quiet.cut', note), h('span.grow'), close), ...children);
  return dialog;
}

let hide = null;
const message = () => document.getElementById('toast');

// toast shows a short message at the bottom for some seconds, and while it is pointed at or has the focus; action,
// {label, run}, is a button in it.
export function toast(text, { action, ms = 5000 } = {}) {
  const node = message();
  const over = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
  if (node.parentNode !== over) over.append(node); // behind a modal dialog it could be neither read nor pressed
  clearTimeout(hide);
  const done = () => {
    node.hidden = true;
  };
  const later = () => {
    if (node.matches(':hover, :focus-within')) hide = setTimeout(later, ms);
    else done();
  };
  node.replaceChildren(
    h('span', text),
    action
      ? h(
          'button.btn.small',
          {
            type: 'button',
            onclick: () => {
              done();
              action.run();
            },
          },
          action.label,
        )
      : '',
  );
  node.hidden = false;
  hide = setTimeout(later, ms);
}

// failed shows why something did not work: what the API said, and what to do.
export function failed(err) {
  toast(err.hint ? `${err.message}. ${err.hint}` : err.message, { ms: 8000 });
}

// TELL_MS is the pause between two sentences for screen readers, in milliseconds.
const TELL_MS = 2000;
const sentences = [];
let telling = null;

// announce gives a whole sentence to screen readers, at most one in two seconds; of many, the newest three.
export function announce(sentence) {
  sentences.push(sentence);
  if (sentences.length > 3) sentences.shift();
  telling ??= setTimeout(next, 0);
}

function next() {
  document.getElementById('live').textContent = sentences.shift();
  telling = setTimeout(() => {
    telling = null;
    if (sentences.length) next();
  }, TELL_MS);
}
