import { commandGroup, helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';
import { tables } from './store/webhook.ts';
import { webhookChecks } from './wire/checks.ts';

/** Events of stores that an agent receives, and endpoints of other systems that get events. */
export const webhooks: Feature = {
  name: 'webhooks',
  routes: async () => {
    const [{ storeEventRoutes }, { webhookRoutes }] = await Promise.all([
      import('./http/store-event.ts'),
      import('./http/webhook.ts'),
    ]);
    return [...storeEventRoutes, ...webhookRoutes];
  },
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: {
      // Its position may be above the number of an event that is not committed yet.
      addWebhook: () => ({ webhooks: [], events: [] }),
      claimDelivery: noLocks,
      pruneEvents: noLocks,
      recordDelivery: noLocks,
      recordReplay: noLocks,
      recordWebhookTest: noLocks,
      removeWebhook: noLocks,
      resumeWebhook: noLocks,
      rotateWebhook: noLocks,
    },
    byOneNode: { pruneEvents: { ok: true, value: { removed: 0 } } },
    essential: ['pruneEvents'],
  },
  tables,
  events: {
    isWanted: ({ webhooks: table }) => table.isUsed(),
    async store({ webhooks: table }, events, { now, random }) {
      for (const event of events) await table.addEvent({ ...event, eventId: random.uuid(now), at: now });
    },
  },
  process: async (parts) => (await import('./daemon/process.ts')).startWebhooks(parts),
  findings: webhookChecks,
  commands: [commandGroup('webhook', 'Send events to other systems', () => import('./cli/webhook.ts'))],
  replacedHelp: {
    'account token': helpLine('account token webhook', 'Let programs in; send events to other systems'),
  },
};
