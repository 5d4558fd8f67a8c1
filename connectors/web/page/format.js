// Times, money and sizes as the page shows them.
import { h } from './dom.js';

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const date = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });
const whole = new Intl.NumberFormat('en-US');

// span returns a duration in milliseconds in few characters: 12 ms, 2.3s, 41s, 9m, 3h, 2d.
export function span(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)}s`;
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// since says when a time was: just now, 41s ago.
export function since(at) {
  const age = ago(at);
  return age === 'now' ? 'just now' : `${age} ago`;
}

// ago is how long ago a time is: now, 41s, 9m, 3h, 2d.
export function ago(at, now = Date.now()) {
  const ms = now - new Date(at).getTime();
  return ms < 5000 ? 'now' : span(ms);
}

// until is how far ahead a time is: in 8 min, in 3 h, tomorrow at 09:00 is 'in 20 h'.
export function until(at, now = Date.now()) {
  const s = (new Date(at).getTime() - now) / 1000;
  if (s <= 0) return 'now';
  if (s < 60) return `in ${Math.ceil(s)} s`;
  if (s < 3600) return `in ${Math.round(s / 60)} min`;
  if (s < 172800) return `in ${Math.round(s / 3600)} h`;
  return `in ${Math.round(s / 86400)} days`;
}

// hour is the time of day; of another day than today the date as well, and the year if it is another one.
export function hour(at, now = new Date()) {
  const t = new Date(at);
  if (t.toDateString() === now.toDateString()) return clock.format(t);
  return `${(t.getFullYear() === now.getFullYear() ? day : date).format(t)} ${clock.format(t)}`;
}

// absolute is date and time to the second.
export function absolute(at) {
  return full.format(new Date(at));
}

// money is US dollars: two places, under a cent four. estimated puts ~ before it.
export function money(usd, estimated) {
  const places = usd !== 0 && Math.abs(usd) < 0.01 ? 4 : 2;
  return `${estimated ? '~' : ''}$${usd.toFixed(places)}`;
}

// count is a whole number with separators; short is the same in few characters: 80.7k, 1.2M.
export function count(n) {
  return whole.format(n);
}

export function short(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0).replace(/\.0$/, '')}k`;
  return `${(n / 1e6).toFixed(1).replace(/\.0$/, '')}M`;
}

// size is a number of bytes: 812 B, 4.2 KB, 1.3 MB.
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} KB`;
  if (bytes < 1e9) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

// plural is a count with its noun: 1 agent, 3 agents.
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// when returns a <time> that shows how long ago a time is, and stays right as time passes.
export function when(at) {
  if (!at) return null;
  return h('time', { datetime: at, title: absolute(at), 'data-ago': '' }, ago(at));
}

// at returns a <time> that shows the time of day, and from the next day on the date as well.
export function at(t) {
  return h('time', { datetime: t, title: absolute(t), 'data-at': '' }, hour(t));
}

let today = new Date().toDateString(); // of which at's elements show no date

// refreshTimes updates every element that when made, and after midnight those of at; the frame calls it while the page is
// visible.
export function refreshTimes() {
  const now = Date.now();
  if (new Date().toDateString() !== today) {
    today = new Date().toDateString();
    for (const node of document.querySelectorAll('time[data-at]')) node.textContent = hour(node.dateTime);
  }
  for (const node of document.querySelectorAll('time[data-ago]')) {
    const text = ago(node.dateTime, now);
    if (node.textContent !== text) node.textContent = text;
  }
}
