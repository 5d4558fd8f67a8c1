// Notifications of the browser for requests, if they are enabled. They say who asks, not for what: text
// of an agent does not leave the page.
import { go } from './router.js';

const ON = 'daycare.notify';

// possible reports whether the browser has notifications; enabled whether they are wanted and allowed.
export function possible() {
  return 'Notification' in globalThis;
}

export function enabled() {
  return possible() && Notification.permission === 'granted' && localStorage.getItem(ON) === 'on';
}

// enable asks the browser for leave and returns whether notifications come from now on.
export async function enable() {
  if (!possible() || (await Notification.requestPermission()) !== 'granted') return false;
  localStorage.setItem(ON, 'on');
  return true;
}

export function disable() {
  localStorage.removeItem(ON);
}

// notify shows that an agent asks, unless the page is looked at. A click opens the request.
export function notify(e, name) {
  if (!enabled() || (!document.hidden && document.hasFocus())) return;
  const shown = new Notification(`${name} asks for your approval`, { tag: e.token, body: 'Review it in daycare.' });
  shown.onclick = () => {
    window.focus();
    go(`/approvals/${e.token}`);
    shown.close();
  };
}
