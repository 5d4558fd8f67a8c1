// A chart of sums by day: stacked bars, one colour a series, with a table of the same for those who do not
// see it.
import { h, svg } from './dom.js';
import { money } from './format.js';

const HEIGHT = 220;
const TOP = 12; // of the highest bar
const BOTTOM = 24; // for the days
const LEFT = 5; // percent of the width, for the sums

// COLOURS is how many colours of their own series have; those behind share the last one.
export const COLOURS = 6;

// bars returns the chart. days are {day, parts}, parts sums in the order of series; limit is the budget of a day.
export function bars({ days, series, limit = 0, label }) {
  const most = Math.max(limit, ...days.map((d) => sum(d.parts)), 0.0001);
  const step = niceStep(most / 4);
  const top = Math.ceil(most / step - 1e-9) * step;
  const y = (usd) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - usd / top);
  const lines = [];
  for (let usd = 0; usd <= top + step / 2; usd += step) {
    lines.push(
      svg('line', { class: 'grid', x1: `${LEFT}%`, x2: '100%', y1: y(usd), y2: y(usd) }),
      svg('text', { x: 0, y: y(usd) + 4 }, money(usd).replace(/\.00$/, '')),
    );
  }
  const width = (100 - LEFT) / days.length;
  const drawn = days.map((d, i) => column(d, LEFT + i * width, width, y, series, days.length));
  const border = limit > 0 && svg('line', { class: 'limit', x1: `${LEFT}%`, x2: '100%', y1: y(limit), y2: y(limit) });
  return svg('svg', { class: 'chart', height: HEIGHT, role: 'img', 'aria-label': label }, lines, drawn, border);
}

function column(d, left, width, y, series, many) {
  const thick = Math.min(width * 0.7, 6);
  const x = `${(left + (width - thick) / 2).toFixed(2)}%`;
  let below = 0;
  const parts = d.parts.map((usd, i) => {
    const from = y(below);
    below += usd;
    const height = Math.max(0, from - y(below) - (usd > 0 ? 1 : 0));
    return svg(
      'rect',
      { class: `c${Math.min(i, COLOURS)}`, x, width: `${thick.toFixed(2)}%`, y: y(below), height },
      svg('title', {}, `${d.day}, ${series[i]}: ${money(usd)}`),
    );
  });
  const shown = many <= 16 || Number(d.day.slice(8)) % 5 === 0;
  const name =
    shown && svg('text', { class: 'day', x: `${(left + width / 2).toFixed(2)}%`, y: HEIGHT - 6 }, String(Number(d.day.slice(8))));
  return svg('g', {}, parts, name);
}

function sum(parts) {
  return parts.reduce((a, b) => a + b, 0);
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below a number.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least - 1e-12);
}

// legend names the colours.
export function legend(series, more) {
  return h(
    'ul.legend',
    series.map((name, i) => h('li', square(i), name)),
    more && h('li', more),
  );
}

// square is the colour of a series.
export function square(i) {
  return h(`span.dot.c${Math.min(i, COLOURS)}`, { 'aria-hidden': 'true' });
}
