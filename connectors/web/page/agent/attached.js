// Files of messages and results: pictures are shown, others can be saved.
import { h, icon, plain } from '../dom.js';
import { size } from '../format.js';

// PICTURES are the types that are shown; the server looks at the content and sends nothing else as a picture.
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

// attached shows files {id, name, mimeType, size}; null if there are none.
export function attached(files) {
  if (!files?.length) return null;
  return h('div.attached', files.map(one));
}

function one(file) {
  const name = plain(file.name);
  const href = `/v1/attachments/${encodeURIComponent(file.id)}`;
  if (!PICTURES.has(file.mimeType)) return download(href, name, file.size);
  const picture = h('img', { src: href, alt: `Picture ${name}`, loading: 'lazy', decoding: 'async' });
  const link = h('a', { href, target: '_blank', rel: 'noopener', title: `${name}, ${size(file.size)}` }, picture);
  picture.addEventListener('error', () => link.replaceWith(download(href, name, file.size)), { once: true });
  return link;
}

// download is a link that saves a file; bytes may be unknown.
export function download(href, name, bytes) {
  return h('a.chip.save', { href, download: name }, icon('clip'), ` ${name}${bytes ? `, ${size(bytes)}` : ''}`);
}
