// What happened just now, in one line each.
import { allAgents } from './store.js';
import { titleOf, urlOf } from './state.js';

// happened is an event as a line {text, more?, path}, null for those that are not listed.
export function happened(e) {
  const agent = allAgents().find((a) => a.id === e.agent);
  const name = agent ? titleOf(agent) : '';
  const path = agent ? urlOf(agent) : '/health';
  switch (e.type) {
    case 'permission.requested':
      return { text: `${name} asks for approval`, more: e.permission, path: `/approvals/${e.token}` };
    case 'permission.decided':
      return {
        text: `${name}: ${e.decision === 'deny' ? 'denied' : 'allowed'}`,
        more: `${e.permission}${e.by ? `, by ${e.by}` : ''}`,
        path,
      };
    case 'retry':
      return { text: `${name} is retrying`, more: e.reason, path };
    case 'turn.finished':
      return e.reason === 'error' ? { text: `${name} failed`, more: e.error, path } : null;
    case 'outbox.failed':
      return { text: 'An answer was not delivered', more: `${name} by ${e.connector}: ${e.error ?? ''}`, path };
    case 'agent.created':
      return { text: `${name || 'An agent'} is new`, path };
    case 'budget.reached':
      return { text: `${name} reached a budget`, more: e.reason, path };
    case 'cron.skipped':
      return { text: 'A run was skipped', more: e.reason, path: '/clocks' };
    case 'file.invalid':
    case 'config.invalid':
      return { text: `${e.file} has a mistake`, more: e.text, path: '/health' };
    case 'config.reloaded':
      return { text: 'The settings were reloaded', path: '/settings' };
    default:
      return null;
  }
}
