// The log of the daemon as it is written. It is read only while it is shown.
import { h, plain } from './dom.js';
import { Stream } from './events.js';
import { absolute } from './format.js';

export const LEVELS = ['debug', 'info', 'warn', 'error'];

// MOST_LINES is how many lines stay in the page.
const MOST_LINES = 500;

export class LogLines {
  shown;
  node = h('div.logs', { role: 'log', 'aria-label': 'Lines of the log', 'aria-live': 'off', tabindex: '0', 'data-key': 'lines' });
  #stream = null;
  #waiting = [];
  #frame = 0;

  constructor(level) {
    this.level(level);
  }

  // level shows the lines of a level and above.
  level(name) {
    const level = LEVELS.includes(name) ? name : 'info';
    if (level === this.shown) return;
    this.shown = level;
    this.close();
    this.node.replaceChildren();
    this.#stream = new Stream(`/v1/logs?level=${level}&limit=100&follow=1`, {
      event: (line) => this.#take(line),
      gap: () => {},
      state: () => {},
      refused: () => {},
    });
    this.#stream.start();
  }

  close() {
    this.#stream?.stop();
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting = [];
  }

  // take collects lines and shows them once a frame.
  #take(line) {
    this.#waiting.push(line);
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    const end = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 24;
    this.node.append(...this.#waiting.map(row));
    this.#waiting = [];
    while (this.node.childElementCount > MOST_LINES) this.node.firstElementChild.remove();
    if (end) this.node.scrollTop = this.node.scrollHeight;
  }
}

function row({ time, level = 'INFO', msg, type, ...rest }) {
  const kind = level.toLowerCase();
  const colour = { warn: 'ask', error: 'error', debug: 'quiet' }[kind] ?? 'second';
  const at = time ? new Date(time) : null;
  const clock = at ? `${at.toLocaleTimeString(undefined, { hourCycle: 'h23' })}.${String(at.getMilliseconds()).padStart(3, '0')}` : '';
  return h(
    'div',
    h('time', { datetime: time ?? null, title: time ? absolute(time) : null }, clock),
    h(`span.${colour}`, kind),
    h('span', plain([msg, ...Object.entries(rest).map(pair)].join(' '))),
  );
}

function pair([key, value]) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `${key}=${/[\s"]/.test(text) ? JSON.stringify(text) : text}`;
}
