// The stream of events: one connection, read with fetch. An EventSource would hide the status of an answer
// (a session that is over), the comments that keep a silent stream alive, and when it tries again.
import { read } from './json.js';

// SILENT_MS is how long nothing may come, in milliseconds: the server writes at least every 10 s.
const SILENT_MS = 25_000;

// WAITS_MS are the pauses before connecting again.
const WAITS_MS = [1000, 2000, 4000, 8000, 15_000];

// A Stream reads server-sent events of a path until stop. handlers gets
//   event(e)           the data of an event, with its type
//   gap()              events were lost: read again what is shown
//   state(s)           {live, since, retryAt}: connected or not, since when, when it tries again
//   refused(status)    the server refuses: 401 the session is over; the stream has ended
export class Stream {
  #path;
  #handlers;
  #last = '';
  #abort = null;
  #stopped = true;
  #failures = 0;
  #since = Date.now();
  #wake = null;

  constructor(path, handlers) {
    this.#path = path;
    this.#handlers = handlers;
  }

  // last is the id of the newest event; start goes on behind it.
  get last() {
    return this.#last;
  }

  start(last = '') {
    if (!this.#stopped) return;
    this.#last = last || this.#last;
    this.#stopped = false;
    this.#run();
  }

  stop() {
    this.#stopped = true;
    this.#abort?.abort();
    this.#wake?.();
  }

  // retry connects now if the stream waits for its next attempt.
  retry() {
    this.#wake?.();
  }

  async #run() {
    while (!this.#stopped) {
      const live = await this.#read();
      if (this.#stopped) return;
      if (live) this.#since = Date.now();
      this.#failures = live ? 0 : this.#failures + 1;
      const wait = WAITS_MS[Math.min(this.#failures, WAITS_MS.length - 1)];
      this.#handlers.state({ live: false, since: this.#since, retryAt: Date.now() + wait });
      await new Promise((done) => {
        const timer = setTimeout(done, wait);
        this.#wake = () => {
          clearTimeout(timer);
          done();
        };
      });
      this.#wake = null;
    }
  }

  // read connects and reads until the connection ends; it reports whether there was one.
  async #read() {
    this.#abort = new AbortController();
    const headers = { Accept: 'text/event-stream' };
    if (this.#last) headers['Last-Event-ID'] = this.#last;
    let timer = this.#limit();
    let live = false;
    try {
      const answer = await fetch(this.#path, { headers, signal: this.#abort.signal, cache: 'no-store', redirect: 'error' });
      if (answer.status === 401 || answer.status === 403) {
        this.#stopped = true;
        this.#handlers.refused(answer.status);
        return false;
      }
      if (!answer.ok) return false;
      live = true;
      this.#handlers.state({ live: true, since: Date.now() });
      const parser = new Parser((message) => this.#message(message));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return live;
        clearTimeout(timer);
        timer = this.#limit();
        parser.feed(value);
      }
    } catch {
      return live;
    } finally {
      clearTimeout(timer);
    }
  }

  #limit() {
    return setTimeout(() => this.#abort.abort(), SILENT_MS);
  }

  #message({ id, type, data }) {
    if (id) this.#last = id;
    if (type === 'gap') {
      this.#last = read(data).to ?? '';
      this.#handlers.gap();
      return;
    }
    const event = read(data);
    event.type ??= type;
    this.#handlers.event(event);
  }
}

// A Parser cuts the text of a stream into messages {id, type, data}. The text comes in pieces that end
// anywhere.
export class Parser {
  #rest = '';
  #message = { id: '', type: 'message', data: [] };
  #emit;

  constructor(emit) {
    this.#emit = emit;
  }

  feed(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  #line(line) {
    if (line === '') {
      const { id, type, data } = this.#message;
      this.#message = { id: '', type: 'message', data: [] };
      if (data.length) this.#emit({ id, type, data: data.join('\n') });
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#message.data.push(value);
    else if (name === 'id') this.#message.id = value;
    else if (name === 'event') this.#message.type = value;
  }
}
