import type { CommandOf } from '../../../src/service/writer.ts';
import { at } from '../../support/builders/store-builders.ts';

const issuedEvent = {
  number: at + 1,
  eventId: 'of addPurchase',
  type: 'license.issued',
  subject: 'KEY',
  at,
} as const;
const failedAttempt = { status: 500, error: 'answered 500', retryAfterMs: null, durationMs: 3 };

/** An endpoint gets the events of the commands behind it. */
export const first: { addWebhook: CommandOf<'addWebhook'> } = {
  addWebhook: { url: 'https://example.com/hook', types: null },
};

type OfEndpoints =
  | 'claimDelivery'
  | 'pruneEvents'
  | 'recordDelivery'
  | 'recordReplay'
  | 'recordWebhookTest'
  | 'removeWebhook'
  | 'resumeWebhook'
  | 'rotateWebhook';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in OfEndpoints]: CommandOf<Name> } = {
  claimDelivery: { endpointId: 'of addWebhook', claim: 'claim', isAlone: false },
  recordDelivery: {
    endpointId: 'of addWebhook',
    claim: 'claim',
    event: issuedEvent,
    attempt: failedAttempt,
    isLast: false,
  },
  recordReplay: { event: issuedEvent, results: [{ endpointId: 'of addWebhook', attempt: failedAttempt }] },
  recordWebhookTest: { endpointId: 'of addWebhook', attempt: failedAttempt },
  resumeWebhook: { endpointId: 'of addWebhook' },
  rotateWebhook: { endpointId: 'of addWebhook' },
  pruneEvents: { before: at, limit: 10 },
  removeWebhook: { endpointId: 'of addWebhook' },
};
