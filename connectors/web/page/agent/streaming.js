// Text that streams: pieces are collected and written once a frame, to one text node.
import { h } from '../dom.js';
import { thinking } from './cards.js';

// BLOCK is after how many characters a paragraph ends a node, so that a long answer is not laid out anew for
// every piece.
const BLOCK = 2000;

const encoder = new TextEncoder();

// A Stream shows the answer of a turn while it comes. Offsets of pieces are bytes of UTF-8 from its beginning.
export class Stream {
  #list;
  #parts = new Map(); // by type of event
  #settled = []; // {text, nodes} of answers that have ended and are not recorded yet
  #frame = 0;

  // list gets the items.
  constructor(list) {
    this.#list = list;
  }

  // piece takes a piece of text. It returns true if text before it is missing.
  piece(type, offset, text) {
    let part = this.#parts.get(type);
    if (part && offset === 0 && part.bytes > 0) {
      this.settle(); // the next answer of the turn
      part = undefined;
    }
    if (!part) {
      if (offset > 0) return true;
      part = this.#begin(type);
    }
    if (offset > part.bytes) return true;
    const bytes = encoder.encode(text);
    const fresh = offset === part.bytes ? text : new TextDecoder().decode(bytes.subarray(part.bytes - offset));
    if (offset + bytes.length > part.bytes) this.#add(part, fresh, offset + bytes.length);
    return false;
  }

  // fill makes a part this text, if that is longer than what it has.
  fill(type, text) {
    const bytes = encoder.encode(text);
    const part = this.#parts.get(type);
    if (bytes.length === 0 || (part && part.bytes >= bytes.length)) return;
    const fresh = part ? new TextDecoder().decode(bytes.subarray(part.bytes)) : text;
    this.#add(part ?? this.#begin(type), fresh, bytes.length);
  }

  #begin(type) {
    const part = { bytes: 0, all: '', waiting: '' };
    if (type === 'message.thinking') {
      const shown = thinking('');
      part.node = h('li', shown.node);
      part.write = () => shown.set(part.all);
    } else {
      part.block = h('div.caret', '');
      part.node = h('li', h('div.said.raw', part.block));
      part.write = () => this.#write(part);
    }
    this.#parts.set(type, part);
    this.#list.append(part.node);
    return part;
  }

  #add(part, text, bytes) {
    part.bytes = bytes;
    part.all += text;
    part.waiting += text;
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    for (const part of this.#parts.values()) {
      if (part.waiting) part.write();
      part.waiting = '';
    }
  }

  #write(part) {
    const last = part.block.firstChild;
    if (last) last.appendData(part.waiting);
    else part.block.append(document.createTextNode(part.waiting));
    const length = part.block.firstChild.length;
    const end = length > BLOCK ? part.block.firstChild.data.lastIndexOf('\n\n') : -1;
    if (end < 0) return;
    const rest = part.block.firstChild.splitText(end + 2);
    const next = h('div.caret', rest);
    part.block.classList.remove('caret');
    part.block.after(next);
    part.block = next;
  }

  // settle ends the answer that streams: it stays until its record takes its place.
  settle() {
    if (this.#frame) {
      cancelAnimationFrame(this.#frame);
      this.#draw();
    }
    for (const { block } of this.#parts.values()) block?.classList.remove('caret');
    if (this.#parts.size) this.#settled.push(this.#answer());
    this.#parts.clear();
  }

  #answer() {
    return { text: this.#parts.get('message.delta')?.all ?? '', nodes: [...this.#parts.values()].map((p) => p.node) };
  }

  // recorded takes away the answer that a record has now: what streamed is the beginning of its text.
  recorded(text) {
    const at = this.#settled.findIndex((a) => text.startsWith(a.text));
    if (at >= 0) {
      for (const answer of this.#settled.splice(0, at + 1)) remove(answer);
    } else if (this.#parts.size && text.startsWith(this.#answer().text)) {
      remove(this.#answer());
      this.#parts.clear();
    }
  }

  // clear takes away everything that is not recorded.
  clear() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.settle();
    this.#settled.forEach(remove);
    this.#settled = [];
  }

  // first is the first item that streams, before which records are put.
  first() {
    return this.#settled[0]?.nodes[0] ?? this.#parts.values().next().value?.node ?? null;
  }
}

function remove(answer) {
  for (const node of answer.nodes) node.remove();
}
