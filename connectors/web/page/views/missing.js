// What is shown for a URL that is none of the page.
import { h } from '../dom.js';

export const title = 'Not found';

export function render() {
  return {
    node: h(
      'div.empty',
      h('h1', 'There is no such page'),
      h('p', 'The address may be of an older version, or mistyped.'),
      h('a.btn', { href: '/' }, 'Home'),
    ),
  };
}
