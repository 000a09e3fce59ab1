import type { WebhookEndpoint } from '../../../../src/features/webhooks/domain/webhook.ts';
import { at } from '../../../support/builders/store-builders.ts';

export function buildEndpoint(changes: Partial<WebhookEndpoint> = {}): WebhookEndpoint {
  return {
    endpointId: 'endpoint',
    url: 'https://hooks.example/',
    types: null,
    secret: `whsec_${Buffer.alloc(32).toString('base64')}`,
    oldSecret: null,
    oldSecretUntil: null,
    state: 'active',
    position: 0,
    failures: 0,
    failingSince: null,
    nextAt: null,
    claim: null,
    claimedUntil: null,
    lastSuccessAt: null,
    lastError: null,
    createdAt: at,
    ...changes,
  };
}
