import {
  type Fault,
  type PlainUpstream,
  type PlainUpstreamOptions,
  startPlainUpstream,
  type UpstreamCoupon,
} from './plain-upstream.ts';

/** The response of such a store for an unknown license key; real stores use all of these. */
export type Unknown = 'bad request' | 'empty' | 'no data';

export interface RealStoreOptions extends PlainUpstreamOptions {
  readonly unknown?: Unknown;
}

/**
 * Options for an upstream like a real store: its own errors, headers and members, and the first version of
 * its API.
 */
export function realStoreOptions(unknown: Unknown = 'bad request'): Partial<PlainUpstreamOptions> {
  return {
    apiKeyHeader: 'payhip-api-key',
    errorBody: (message) => ({ data: [], error: true, message }),
    unknownKey: unknownResponses[unknown],
    licenseExtra: ({ productKey }) => ({ product_name: `The name of ${productKey}` }),
    firstVersion: true,
  };
}

export function startRealStore({ unknown, ...options }: RealStoreOptions): Promise<PlainUpstream> {
  return startPlainUpstream({ ...realStoreOptions(unknown), ...options });
}

const unknownResponses: Readonly<Record<Unknown, (body: unknown) => { status: number; body: unknown }>> = {
  'bad request': (body) => ({ status: 400, body }),
  empty: () => ({ status: 200, body: undefined }),
  'no data': () => ({ status: 200, body: { data: [] } }),
};

/** A firewall asks its caller to prove that it is not a robot; the request is not applied. */
export function challengePage(
  mark: Readonly<Record<string, string>> = { 'cf-mitigated': 'challenge', server: 'cloudflare' },
): Fault {
  const body = '<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head></html>';
  const headers = { 'content-type': 'text/html; charset=UTF-8', ...mark };
  return { kind: 'replaced', counted: false, status: 403, headers, body };
}

/** The edge server cannot reach the store behind it: 520 to 527 in HTML. */
export function edgePage(status: number, counted = false): Fault {
  const body = '<!DOCTYPE html><html><head><title>example.com | Web server is down</title></head></html>';
  const headers = { 'content-type': 'text/html; charset=UTF-8', server: 'cloudflare' };
  return { kind: 'replaced', counted, status, headers, body };
}

/** A coupon that the specification forbids: free of charge, and with both a percentage and an amount. */
export const unreadableCoupon: Partial<UpstreamCoupon> & Pick<UpstreamCoupon, 'code'> = {
  code: 'ODD',
  percent_off: 0,
  amount_off: 0,
};
