import type { Dispatcher } from 'undici';
import type { Upstream } from '../../../src/service/ports.ts';
import type { Exchange, Transport } from '../../../src/upstream/exchange.ts';
import { missing } from './ledger.ts';

/*
 * An upstream that speaks as Gumroad does, on the ledger of the simulation. Its products are known by their secrets here, so
 * that products can get other names as elsewhere.
 */

const paths: Readonly<Record<string, string>> = {
  enable: 'enable',
  disable: 'disable',
  decrement_uses_count: 'decrease',
};

/** The way to Gumroad, given the way to an upstream that speaks as specified. */
export function withGumroad(transport: Transport): Transport {
  return {
    async send(request, signal) {
      const name = /^\/v2\/licenses\/(\w+)$/.exec(request.path)?.[1];
      if (name === undefined) return await transport.send(request, signal);
      const { exchange, discard } = await transport.send(specified(name, request), signal);
      return { exchange: translated(exchange, name), discard };
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

/** A request of Gumroad’s API as the specification has it. */
function specified(
  name: string,
  { headers, body, ...request }: Dispatcher.DispatchOptions,
): Dispatcher.DispatchOptions {
  const form = new URLSearchParams(typeof body === 'string' ? body : '');
  const parameters = new URLSearchParams({ license_key: form.get('license_key') ?? '' }).toString();
  const known = {
    ...(headers as Record<string, string>),
    'product-secret-key': form.get('product_id') ?? '',
  };
  if (name === 'verify' && form.get('increment_uses_count') === 'false')
    return { ...request, method: 'GET', path: `/api/v2/license/verify?${parameters}`, headers: known };
  const path = `/api/v2/license/${paths[name] ?? 'usage'}`;
  return { ...request, method: 'PUT', path, headers: known, body: parameters };
}

const missingText = JSON.stringify(missing.body);

const disabledText = JSON.stringify({ success: false, message: 'This license key has been disabled.' });

function translated(exchange: Exchange, name: string): Exchange {
  if (exchange.type === 'failed') return exchange;
  if (exchange.status === 404 && exchange.text === missingText) {
    const message = 'That license does not exist for the provided product.';
    return { ...exchange, text: JSON.stringify({ success: false, message }) };
  }
  const license = exchange.status === 200 ? licenseIn(exchange.text) : null;
  if (license === null) return exchange;
  if (name === 'verify' && license['enabled'] === false)
    return { ...exchange, status: 404, text: disabledText };
  const purchase = {
    license_key: license['license_key'],
    email: license['buyer_email'],
    product_permalink: license['product_link'],
    sale_timestamp: license['date'],
    refunded: false,
  };
  return { ...exchange, text: JSON.stringify({ success: true, uses: license['uses'], purchase }) };
}

function licenseIn(text: string): Record<string, unknown> | null {
  try {
    const { data } = JSON.parse(text) as { data?: Record<string, unknown> };
    return data !== undefined && 'license_key' in data ? data : null;
  } catch {
    return null;
  }
}

/** Licenses by one client, and coupons, which Gumroad does not have here, by another. */
export function withLicensesOf(licenses: Pick<Upstream, 'verify' | 'change'>, others: Upstream): Upstream {
  return new Proxy(others, {
    get(target, name) {
      const from = name === 'verify' || name === 'change' ? licenses : target;
      const value: unknown = Reflect.get(from, name);
      return typeof value === 'function' ? (value.bind(from) as unknown) : value;
    },
  });
}
