// What is due next: tasks and the heartbeat, in the order of time.
import { get } from './api.js';

// nextRuns lists {at, name, agentId, path} of every time that is known to come, soonest first.
export async function nextRuns() {
  const [tasks, heart] = await Promise.all([get('/v1/cron'), get('/v1/heartbeats')]);
  const list = [];
  for (const task of tasks.tasks ?? []) {
    if (!task.enabled) continue;
    for (const t of task.next ?? [])
      list.push({ at: t, name: task.name, agentId: task.agentId || task.taskId, path: `/clocks/${encodeURIComponent(task.slug)}` });
  }
  if (heart.next) list.push({ at: heart.next, name: 'Heartbeat', agentId: '', path: '/clocks/heartbeat' });
  return list.sort((a, b) => a.at.localeCompare(b.at));
}
