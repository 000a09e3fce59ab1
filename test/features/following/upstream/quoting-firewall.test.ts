import { expect, test } from 'vitest';
import type { Transport } from '../../../../src/upstream/exchange.ts';
import { changesRequest } from '../../../../src/features/following/upstream/feed-wire.ts';
import { upstreamClientOver } from '../../../../src/upstream/client.ts';
import { asSpecified } from '../../../support/harness/upstream-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const agent = '0123456789abcdef'.repeat(2);
const never = new AbortController().signal;

/** A firewall that refuses each request, and quotes it. */
const quoting: Transport = {
  send: ({ body }) =>
    Promise.resolve({
      exchange: {
        type: 'answered',
        status: 400,
        headers: {},
        text: JSON.stringify({ detail: `blocked: ${body as string}` }),
      },
      discard: () => undefined,
    }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

test('the detail of a refusal that quotes the request contains neither the id of the agent nor a license key', async () => {
  const client = upstreamClientOver(
    quoting,
    {
      baseUrl: 'https://upstream.example',
      apiKey: () => null,
      secretOf: () => 'secret-of-press',
      ...asSpecified,
    },
    new VirtualTime().clock(),
  );
  const keys = { follow: ['KEY-1'], unfollow: ['KEY "2"'], watch: ['KEY-3'] };
  const request = { epoch: null, cursor: null, ...keys, carriedOut: null, waitS: 0 };
  const outcome = await client.ask('press', changesRequest(agent, request), never);
  expect(outcome).toMatchObject({ outcome: 'not_applied', detail: expect.stringContaining('blocked') });
  expect(JSON.stringify(outcome)).not.toMatch(/0123456789abcdef|KEY/);
});
