import { counted } from '../../../domain/text.ts';
import { endOfOld, type FeatureUseCases } from '../../../service/audit.ts';
import { claimDelivery, pruneEvents, recordDelivery, recordReplay, recordWebhookTest } from './delivery.ts';
import { addWebhook, removeWebhook, resumeWebhook, rotateWebhook } from './endpoint.ts';

export const useCases = {
  addWebhook,
  claimDelivery,
  pruneEvents,
  recordDelivery,
  recordReplay,
  recordWebhookTest,
  removeWebhook,
  resumeWebhook,
  rotateWebhook,
};

type WebhookUseCases = typeof useCases;

declare module '../../../service/writer.ts' {
  interface UseCases extends WebhookUseCases {}
}

export const audited: FeatureUseCases['audited'] = {
  addWebhook: ({ endpointId, url }) => ({ act: 'webhook.add', subject: endpointId, detail: hostOf(url) }),
  removeWebhook: ({ endpointId, url }) => ({
    act: 'webhook.remove',
    subject: endpointId,
    detail: hostOf(url),
  }),
  rotateWebhook: ({ endpointId, oldSecretUntil }) => ({
    act: 'webhook.rotate',
    subject: endpointId,
    detail: endOfOld(oldSecretUntil),
  }),
  resumeWebhook: ({ endpointId, url }) => ({
    act: 'webhook.resume',
    subject: endpointId,
    detail: hostOf(url),
  }),
  recordWebhookTest: (_, { endpointId, attempt }) => ({
    act: 'webhook.test',
    subject: endpointId,
    detail: attempt.error ?? 'delivered',
  }),
  recordReplay: (_, { event, results }) => ({
    act: 'webhook.replay',
    subject: event.eventId,
    detail: `${event.type} to ${counted(results.length, 'endpoint')}`,
  }),
};

/** The path of a URL may be a secret of the receiver. */
function hostOf(url: string): string {
  return new URL(url).host;
}
