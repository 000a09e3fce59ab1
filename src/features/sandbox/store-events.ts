import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Tree } from '../../config/file/tree.ts';
import { LocalClient } from '../../daemon/local-client.ts';

/** The name of the store in `webhooks.in` of the agent. */
const name = 'sandbox';

/** The settings with which an agent accepts the events of the store. */
export function eventConfiguration(apiKey: string): Tree {
  return { webhooks: { in: { [name]: { from: 'payhip', secret: apiKey } } } };
}

/** The agent that gets the events, and the API key that signs them. */
type Receiver = { url: string; apiKey: string };

type Refund = { purchaseId: string; buyerEmail: string; productKey: string };

/**
 * Makes the store send an event about each refund, as Payhip does: it names the buyer and the product, and no license
 * key. Null: there is no receiver now.
 */
export function sendRefunds(server: FastifyInstance, receiver: () => Receiver | null): void {
  server.addHook('onSend', async ({ routeOptions }, reply, payload) => {
    const to = receiver();
    if (to === null || routeOptions.config.route?.operationId !== 'refundPurchase') return payload;
    const refund = reply.statusCode === 200 ? readRefund(String(payload)) : null;
    // The response does not wait for the event. An event that gets lost is no error: it is a hint only.
    if (refund !== null) void sendRefund(to, refund).catch(() => undefined);
    return payload;
  });
}

function readRefund(body: string): Refund | null {
  const { data } = JSON.parse(body) as { data?: Record<string, unknown> };
  const license = data?.['license'] as Record<string, unknown> | undefined;
  if (data === undefined || license === undefined) return null;
  return {
    purchaseId: String(data['purchase_id']),
    buyerEmail: String(license['buyer_email']),
    productKey: String(license['product_link']),
  };
}

async function sendRefund(
  { url, apiKey }: Receiver,
  { purchaseId, buyerEmail, productKey }: Refund,
): Promise<void> {
  await new LocalClient(url, {}).postJson(`/hooks/v1/${name}`, {
    id: purchaseId,
    email: buyerEmail,
    items: [
      { product_key: productKey, product_permalink: `https://payhip.com/b/${productKey}`, quantity: '1' },
    ],
    type: 'refunded',
    signature: hash('sha256', apiKey),
  });
}
