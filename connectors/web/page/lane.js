// The day of a task as a line: what ran, was skipped, missed or failed, and what comes next. All positions
// are shares of the width, so that a lane fits wherever it is put.
import { svg } from './dom.js';
import { hour } from './format.js';

const HEIGHT = 40;
const MIDDLE = HEIGHT / 2;

// LATE_MS is from when on a run is drawn as late, in milliseconds.
const LATE_MS = 120_000;

// A Span is what lanes show: from and to in milliseconds, and now between them.
export function span(now = Date.now(), before = 12.5 * 3600_000, after = 3.5 * 3600_000) {
  return { from: now - before, to: now + after, now };
}

// x is where a time is in a span, in percent; null outside.
function x(time, { from, to }) {
  const share = (new Date(time).getTime() - from) / (to - from);
  return share < 0 || share > 1 ? null : `${(share * 100).toFixed(2)}%`;
}

// lane returns the line of one task. runs are {slot, at, outcome, …}, next are times, down are {from, to} in
// which daycare was not running. label says the same in words.
export function lane({ runs, next, down = [], range, label }) {
  const marks = runs.flatMap((run) => mark(run, range));
  const coming = next
    .map((time) => x(time, range))
    .filter(Boolean)
    .map((cx) => svg('circle', { class: 'next', cx, cy: MIDDLE, r: 2 }));
  return svg(
    'svg',
    { class: 'lane', height: HEIGHT, role: 'img', 'aria-label': label },
    pauses(down, range),
    svg('line', { class: 'axis', x1: '0', x2: '100%', y1: MIDDLE, y2: MIDDLE }),
    marks,
    coming,
    svg('line', { class: 'today', x1: x(range.now, range), x2: x(range.now, range), y1: 0, y2: HEIGHT }),
  );
}

function pauses(down, range) {
  return down.map(({ from, to }) => {
    const start = Math.max(new Date(from).getTime(), range.from);
    const end = Math.min(new Date(to).getTime(), range.to);
    if (end <= start) return null;
    const percent = (ms) => `${((ms / (range.to - range.from)) * 100).toFixed(2)}%`;
    return svg('rect', { class: 'down', x: percent(start - range.from), width: percent(end - start), y: 0, height: HEIGHT });
  });
}

// mark draws a run where its slot is; one that ran late where it ran, with a dashed line from when it was due.
function mark(run, range) {
  const late = run.outcome === 'ran' && new Date(run.at) - new Date(run.slot) > LATE_MS;
  const place = x(late ? run.at : run.slot, range);
  if (!place) return [];
  const tip = svg('title', {}, `${hour(run.slot)} ${run.outcome}${run.reason ? `: ${run.reason}` : ''}`);
  const due = x(run.slot, range) ?? '0%';
  return [late && svg('line', { class: 'late', x1: due, x2: place, y1: MIDDLE, y2: MIDDLE }), shape(run.outcome, place, tip)];
}

function shape(outcome, place, tip) {
  switch (outcome) {
    case 'missed':
      return svg('line', { class: 'missed', x1: place, x2: place, y1: MIDDLE - 7, y2: MIDDLE + 7 }, tip);
    case 'failed':
      return svg(
        'svg',
        { x: place, y: MIDDLE, overflow: 'visible' },
        svg('rect', { class: 'failed', x: -3.5, y: -3.5, width: 7, height: 7 }, tip),
      );
    case 'skipped':
      return svg('circle', { class: 'skipped', cx: place, cy: MIDDLE, r: 3.5 }, tip);
    case 'running':
      return svg('circle', { class: 'running', cx: place, cy: MIDDLE, r: 4.5 }, tip);
    default:
      return svg('circle', { class: 'ran', cx: place, cy: MIDDLE, r: 3.5 }, tip);
  }
}

// axis returns the hours above lanes, every second one, and the time of now.
export function axis(range) {
  const labels = [];
  const first = new Date(range.from);
  first.setMinutes(0, 0, 0);
  for (let t = first.getTime(); t < range.to; t += 3600_000) {
    const even = new Date(t).getHours() % 2 === 0 && range.to - t > 2700_000; // not over what is beside it
    const place = x(t, range);
    if (even && place && Math.abs(t - range.now) > 45 * 60_000) labels.push(svg('text', { x: place, y: 12 }, hourOf(t)));
  }
  return svg(
    'svg',
    { class: 'lane hours', height: 16, 'aria-hidden': 'true' },
    labels,
    svg('text', { class: 'today', x: x(range.now, range), y: 12 }, hourOf(range.now)),
  );
}

function hourOf(t) {
  const d = new Date(t);
  return `${d.getHours()}:${String(d.getMinutes()).padStart(2, '0')}`;
}

// signOf is the sign of an outcome alone, for the legend.
export function signOf(outcome) {
  const place = '50%';
  const node = svg('svg', { class: 'lane legend', width: 14, height: 14, viewBox: '0 13 14 14', 'aria-hidden': 'true' });
  if (outcome === 'down') node.append(svg('rect', { class: 'down', x: 0, y: 13, width: 14, height: 14 }));
  else if (outcome === 'next') node.append(svg('circle', { class: 'next', cx: 7, cy: MIDDLE, r: 2 }));
  else node.append(shape(outcome, outcome === 'failed' ? 7 : place, svg('title', {}, outcome)));
  return node;
}
