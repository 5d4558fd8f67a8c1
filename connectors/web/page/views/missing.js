// What is shown for a URL that is none of the page.
import { h } from '../dom.js';

export const title = 'Not found';

export function render() {
  return {
    node: h(
      'div.empty',
      h('h1', 'Page not found'),
      h('p', 'The address may be mistyped, or from an older version.'),
      h('a.btn', { href: '/' }, 'Home'),
    ),
  };
}
