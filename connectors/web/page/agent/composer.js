// The field below a transcript: what is typed is kept, and sent once.
import { fill, h, icon, plain, sign } from '../dom.js';
import { agentOf } from '../store.js';
import { keyOf, titleOf } from '../state.js';
import { draftOf, filesOf, keep, send, sending } from '../drafts.js';
import { announce, failed } from '../dialog.js';
import { connection } from '../live.js';
import { redrawIf } from '../redraw.js';
import { size } from '../format.js';

// MOST_BYTES is what the files of a message may have together; the API refuses more.
const MOST_BYTES = 20 << 20;

// WAYS are how an agent takes a message while it works: what the switch says, the button, and the sentence.
const WAYS = {
  steer: { says: 'At its next step', button: 'Steer' },
  followup: { says: 'When it is done', button: 'Queue' },
  collect: { says: 'With all that waits', button: 'Queue' },
  interrupt: { says: 'It stops and reads this', button: 'Interrupt' },
};

// wayOf names when an agent reads an item of its inbox.
export function wayOf(agent, item) {
  return {
    steer: 'read at its next step',
    followup: 'read when it is done',
    collect: 'read together when done',
    interrupt: 'it stops and reads this',
  }[item.queue || agent.queue || 'steer'];
}

export class Composer {
  #id;
  #way = ''; // '': as the agent does it
  #files; // of the next message: {list, reading}, the same when the agent is shown again
  #sending = false;
  #saving = null; // set while what is typed is not stored yet

  // takeBack gets an item of the inbox out of it and returns whether that worked.
  constructor(agent, { takeBack, sent }) {
    this.#id = agent.id;
    this.#files = filesOf(agent.id);
    this.takeBack = takeBack;
    this.sent = sent;
    this.text = h('textarea', {
      rows: 1,
      oninput: () => this.#typed(),
      onkeydown: (e) => this.#key(e),
      onpaste: (e) => this.#paste(e),
    });
    this.waiting = h('div');
    this.chips = h('div.chips', { hidden: true });
    this.picker = h('input', {
      type: 'file',
      multiple: true,
      hidden: true,
      onchange: () => {
        this.#add(this.picker.files);
        this.picker.value = '';
      },
    });
    this.switch = h('div.seg', { role: 'group', 'aria-label': 'When it reads this' });
    this.help = h('span.help.wide');
    this.button = h('button.btn.main.keep', { type: 'button', onclick: () => this.send(this.#way) }, 'Send');
    this.field = h(
      'div.field',
      this.text,
      this.chips,
      h(
        'div.bar',
        this.switch,
        h(
          'button.tap',
          { type: 'button', 'aria-label': 'Attach files', title: 'Attach files', onclick: () => this.picker.click() },
          icon('clip'),
        ),
        this.help,
        h('span.grow'),
        this.button,
        this.picker,
      ),
    );
    this.node = h('div.composer', h('div', this.waiting, this.field));
    this.#drop();
    this.draw();
  }

  // load shows the draft of the agent and its files, and waits for a message that is still being sent.
  load() {
    this.text.value = draftOf(this.#id).text;
    this.#drawFiles();
    this.#files.reading.then(() => this.#drawFiles());
    const sent = sending(this.#id);
    if (!sent) return;
    this.#pending(true);
    sent.catch(failed).finally(() => {
      this.text.value = draftOf(this.#id).text;
      this.#drawFiles();
      this.#pending(false);
    });
  }

  // keep stores what is typed, if it is not stored: a draft that another tab stored since is not replaced.
  keep() {
    if (this.#saving) this.#save();
  }

  #typed() {
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.#save(), 150);
  }

  #save() {
    clearTimeout(this.#saving);
    this.#saving = null;
    if (!this.#sending) keep(this.#id, this.text.value);
  }

  // put adds text to the field, as what was taken back.
  put(text) {
    this.text.value = [this.text.value.trim(), text].filter(Boolean).join('\n\n');
    this.#save();
    this.text.focus();
  }

  #key(e) {
    if (e.key !== 'Enter' || e.isComposing || e.shiftKey || e.altKey) return;
    e.preventDefault();
    if (!e.repeat) this.send(e.ctrlKey || e.metaKey ? 'followup' : this.#way);
  }

  // send posts what is typed. The field is cleared by the answer, not by the key.
  async send(way) {
    const text = this.text.value;
    if (this.#sending || (!text.trim() && this.#files.list.length === 0)) return;
    this.#pending(true);
    try {
      await this.#files.reading;
      const files = [...this.#files.list];
      await send(this.#id, { text, queue: this.#busy() ? way : '', files: files.map(({ name, data }) => ({ name, data })) });
      this.text.value = '';
      this.#way = '';
      this.#files.list = this.#files.list.filter((f) => !files.includes(f)); // what came while it was sent goes with the next one
      this.#drawFiles();
      announce('Message accepted');
      this.sent();
    } catch (err) {
      failed(err);
    } finally {
      this.#pending(false);
    }
  }

  #pending(yes) {
    this.#sending = yes;
    this.text.readOnly = yes;
    this.button.disabled = yes;
    this.draw();
  }

  #busy() {
    const agent = agentOf(this.#id);
    return Boolean(agent) && ['work', 'retry', 'ask', 'queued'].includes(keyOf(agent));
  }

  // address says to whom it is written: an agent can get another name.
  #address(to) {
    if (this.text.placeholder === `Write to ${to}`) return;
    this.text.placeholder = `Write to ${to}`;
    this.text.ariaLabel = `Message to ${to}`;
  }

  // draw shows when the agent reads a message: only while it works is there a choice.
  draw() {
    const agent = agentOf(this.#id);
    this.#address(plain(titleOf(agent)));
    const own = agent?.queue || 'steer';
    const busy = this.#busy();
    const other = own === 'followup' ? 'steer' : 'followup';
    this.switch.hidden = !busy;
    if (!busy) this.#way = '';
    redrawIf(this.switch, [busy, own, this.#way], () =>
      busy
        ? [
            ['', own],
            [other, other],
          ].map(([way, kind]) =>
            h(
              'button',
              {
                type: 'button',
                'aria-pressed': String(this.#way === way),
                onclick: () => {
                  this.#way = way;
                  this.draw();
                },
              },
              WAYS[kind].says,
            ),
          )
        : [],
    );
    this.button.textContent = this.#sending ? 'Sending …' : busy ? WAYS[this.#way || own].button : 'Send';
    if (this.#sending) {
      const lost = !connection().live;
      redrawIf(this.help, ['sending', lost], () => [lost ? 'It is sent, once, when daycare answers.' : '']);
      return;
    }
    redrawIf(this.help, [busy, own], () => [
      h('kbd', 'Enter'),
      ' sends · ',
      h('kbd', 'Shift Enter'),
      ' new line',
      ...(busy && own !== 'followup' ? [' · ', h('kbd', 'Ctrl Enter'), ' when it is done'] : []),
    ]);
  }

  // drawWaiting shows what of the inbox waits, and takes the newest message back into the field, if its text is all of it.
  drawWaiting(agent, items) {
    const messages = items.filter((i) => i.state === 'waiting' && i.type === 'message');
    const last = messages.at(-1);
    redrawIf(this.waiting, [messages.length, last?.id, last?.text, last && wayOf(agent, last)], () =>
      last
        ? [
            h(
              'div.waiting',
              sign('queued'),
              h(
                'span.cut.grow',
                `${messages.length} ${messages.length === 1 ? 'waits' : 'wait'}, ${wayOf(agent, last)}: `,
                h('span.second', plain(last.text.slice(0, 300))),
              ),
              last.more
                ? null
                : h(
                    'button.btn.small',
                    {
                      type: 'button',
                      onclick: async () => {
                        if (await this.takeBack(last)) this.put(last.text);
                      },
                    },
                    'Take back',
                  ),
            ),
          ]
        : [],
    );
  }

  // drop accepts files that are dragged onto the field.
  #drop() {
    for (const type of ['dragover', 'dragleave', 'drop']) {
      this.field.addEventListener(type, (e) => {
        if (![...e.dataTransfer.types].includes('Files')) return;
        e.preventDefault();
        this.field.classList.toggle('over', type === 'dragover');
        if (type === 'drop') this.#add(e.dataTransfer.files);
      });
    }
  }

  #paste(e) {
    if (e.clipboardData.files.length === 0) return;
    e.preventDefault();
    this.#add(e.clipboardData.files);
  }

  // add attaches files, one after the other. The list is copied, as a picker that is cleared clears its list as well.
  #add(list) {
    for (const file of [...list]) this.#files.reading = this.#files.reading.then(() => this.#attach(file));
  }

  async #attach(file) {
    const total = this.#files.list.reduce((n, f) => n + f.bytes, 0) + file.size;
    try {
      if (total > MOST_BYTES) throw new Error(`files may have ${size(MOST_BYTES)} together`);
      this.#files.list.push({ name: file.name || 'pasted.png', bytes: file.size, data: await base64(file) });
      this.#drawFiles();
    } catch (err) {
      failed({ message: `${plain(file.name)} is not attached: ${err.message}` });
    }
  }

  #drawFiles() {
    this.chips.hidden = this.#files.list.length === 0;
    fill(
      this.chips,
      this.#files.list.map((f) =>
        h(
          'span.chip',
          plain(f.name),
          ` ${size(f.bytes)}`,
          h(
            'button.tap',
            {
              type: 'button',
              'aria-label': `Remove ${plain(f.name)}`,
              onclick: () => {
                this.#files.list = this.#files.list.filter((o) => o !== f);
                this.#drawFiles();
              },
            },
            icon('close'),
          ),
        ),
      ),
    );
  }
}

// base64 is the content of a file as the API wants it.
function base64(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
