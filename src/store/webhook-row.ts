import type { EventType, WebhookDelivery, WebhookEndpoint } from '../domain/webhook.ts';

/** A row of the table of endpoints, on both engines. `types`: a JSON array. */
export type EndpointRow = Omit<WebhookEndpoint, 'types'> & { types: string | null };

export function endpointFrom({ types, ...same }: EndpointRow): WebhookEndpoint {
  return { ...same, types: types === null ? null : (JSON.parse(types) as EventType[]) };
}

export function typesText(types: readonly EventType[] | null): string | null {
  return types === null ? null : JSON.stringify(types);
}

export function deliveryFrom({
  isDelivered,
  ...same
}: Omit<WebhookDelivery, 'isDelivered'> & { isDelivered: number | boolean }): WebhookDelivery {
  return { ...same, isDelivered: Boolean(isDelivered) };
}
