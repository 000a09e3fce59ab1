import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { activatedKey } from '../../../../src/domain/agent/activated-key.ts';
import type { License } from '../../../../src/domain/license.ts';
import type { EventResult } from '../../../../src/features/webhooks/service/store-event.ts';
import { HintedReads, hintRate } from '../../../../src/features/webhooks/sync/hinted-reads.ts';
import {
  ReceivedStoreEvents,
  type StoreEventSource,
} from '../../../../src/features/webhooks/sync/store-events.ts';
import {
  gumroadRefund,
  lemonSqueezyLicense,
  lemonSqueezyRefund,
  payhipRefund,
  standardEvent,
  type SentStoreEvent,
} from '../support/store-events.ts';
import { minute, second, startSyncHarness, type SyncHarness } from '../../../support/harness/sync-harness.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';

const payhipKey = 'api-key-of-payhip';
const gumroadSecret = 'in the URL';
const squeezySecret = 'signing-secret';
const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const senders = new Map<string, StoreEventSource>([
  ['payhip', { from: 'payhip', secret: payhipKey }],
  ['gumroad', { from: 'gumroad', secret: gumroadSecret }],
  ['squeezy', { from: 'lemonsqueezy', secret: squeezySecret }],
  ['other', { from: 'standard', secret: standardSecret }],
]);

const rate = { rate: 5, lookups: { perSecond: 2, maxWaiting: 128 } };
const key = 'ABCDE-FGHJK-LMNPQ-RSTUV';
/** The buyer that the vendor of the harness gives to each license. */
const email = 'b@example.com';
const productKey = 'press';

let harness: SyncHarness;
let clock: VirtualClock;
let events: ReceivedStoreEvents;
let reads: HintedReads;
let ending: AbortController;
let counted: string[];
let lines: string[];

beforeEach(async () => {
  ending = new AbortController();
  counted = [];
  lines = [];
});
afterEach(() => {
  ending.abort();
  harness[Symbol.dispose]();
});

async function start(
  keys: readonly string[],
  learned: readonly string[] = keys,
  configured: ReadonlyMap<string, StoreEventSource> = senders,
): Promise<void> {
  // Without probes, only events cause reads.
  harness = await startSyncHarness(keys, { probeMs: 24 * 60 * minute });
  clock = harness.time.clock();
  for (const each of learned) await harness.verify(each);
  reads = new HintedReads({
    clock,
    fetcher: harness.sync.fetcher,
    hastenRefresh: (licenseKey) => harness.writer.write('hastenRefresh', { licenseKey }),
    rate: () => hintRate(rate),
  });
  void reads.run(ending.signal);
  const line = (fields: object, message: string): void =>
    void lines.push(`${JSON.stringify(fields)} ${message}`);
  events = new ReceivedStoreEvents({
    reader: harness.store,
    clock,
    log: { debug: line, info: line, warn: line, error: line },
    reads,
    fetcher: harness.sync.fetcher,
    senders: () => configured,
    products: () => [{ id: 'press', productKey }],
    count: (name, result) => counted.push(`${name} ${result}`),
  });
  harness.vendor.asked.length = 0;
}

/** Receives an event; the parser of the query is that of the server. */
function receive(name: string, { body, headers, query }: SentStoreEvent): Promise<EventResult> {
  const secret = new URLSearchParams(query).get('secret');
  return events.receive({ name, body: Buffer.from(body), headers, secret });
}

/** Refunds a license at the store, without a word to the agent. */
function refundAtStore(licenseKey: string): void {
  const license = harness.vendor.licenses.get(licenseKey) as License;
  harness.vendor.licenses.set(licenseKey, { ...license, enabled: false });
}

type OtherForm = { secret: string; key: Buffer; prefix?: string };

const bytes = Buffer.from('fbff3e7a1c0d5e9b8a7f6c5d4e3f2a1b0c9d8e7fa1b2c3d4', 'hex');
const urlSafe = `whsec_${bytes.toString('base64url')}`;
const otherForms: readonly [title: string, OtherForm][] = [
  ['URL-safe base64', { secret: urlSafe, key: bytes }],
  [
    'base64 without padding',
    {
      secret: `whsec_${Buffer.concat([bytes, Buffer.from('1')])
        .toString('base64')
        .replace(/=+$/, '')}`,
      key: Buffer.concat([bytes, Buffer.from('1')]),
    },
  ],
  ['base64 without whsec_', { secret: bytes.toString('base64'), key: bytes }],
  ['the bytes of the whole secret of Polar', { secret: urlSafe, key: Buffer.from(urlSafe) }],
  [
    'a secret of Polar that begins with polar_whs_',
    { secret: 'polar_whs_q3JxM0ZbTn2dYc8vLkHs', key: Buffer.from('polar_whs_q3JxM0ZbTn2dYc8vLkHs') },
  ],
  [
    'the headers of Svix',
    {
      secret: standardSecret,
      key: Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'),
      prefix: 'svix',
    },
  ],
];

const refunds: readonly [title: string, name: string, sent: () => SentStoreEvent][] = [
  [
    'a refund of Payhip with the license key',
    'payhip',
    () => payhipRefund(payhipKey, { licenseKey: key, email, productKey }),
  ],
  [
    'a refund of Payhip without a license key',
    'payhip',
    () => payhipRefund(payhipKey, { email: 'B@Example.com', productKey }),
  ],
  [
    'a refund of Gumroad with the license key',
    'gumroad',
    () => gumroadRefund(gumroadSecret, { licenseKey: key, email, productKey }),
  ],
  [
    'a refund of Gumroad without a license key',
    'gumroad',
    () => gumroadRefund(gumroadSecret, { email, productKey }),
  ],
  [
    'license_key_updated of Lemon Squeezy',
    'squeezy',
    () => lemonSqueezyLicense(squeezySecret, { licenseKey: key, email }),
  ],
  [
    'order_refunded of Lemon Squeezy, which names no license key',
    'squeezy',
    () => lemonSqueezyRefund(squeezySecret, { email, productKey: '4711' }),
  ],
  [
    'an event of Standard Webhooks',
    'other',
    () => standardEvent(standardSecret, { license_key: key, revision: 7 }, { at: clock.now() }),
  ],
];

describe('the event of a store', () => {
  test.each(refunds)(
    '%s makes the agent refuse the refunded license within a second',
    async (_, name, sent) => {
      await start([key, 'OTHER-1']);
      refundAtStore(key);
      expect(await harness.verify(key)).toMatchObject({ value: { license: { enabled: true } } });
      expect(await receive(name, sent())).toBe('accepted');
      await harness.time.advance(second);
      expect(harness.store.snapshots.get(key)?.license.enabled).toBe(false);
      expect(await harness.verify(key)).toMatchObject({ value: { license: { enabled: false } } });
      expect(counted).toEqual([`${name} accepted`]);
    },
  );

  test.each(refunds)(
    '%s is a hint only: a license that the store still calls enabled stays enabled',
    async (_, name, sent) => {
      await start([key]);
      expect(await receive(name, sent())).toBe('accepted');
      await harness.time.advance(second);
      expect(harness.vendor.asked).toEqual([`verify ${key}`]);
      expect(await harness.verify(key)).toMatchObject({ value: { license: { enabled: true } } });
    },
  );

  test('an event that names a license key makes the agent read its activations, too', async () => {
    const activation = activatedKey(key, 'f90ec370');
    await start([key, activation, activatedKey('OTHER-1', 'a')]);
    await receive('squeezy', lemonSqueezyLicense(squeezySecret, { licenseKey: key, email }));
    await harness.time.advance(second);
    expect(harness.vendor.asked.toSorted()).toEqual([`verify ${key}`, `verify ${activation}`]);
  });

  test('an event finds the activations of a license key that is not known itself', async () => {
    const activation = activatedKey(key, 'f90ec370');
    await start([key, activation], [activation]);
    expect(await receive('squeezy', lemonSqueezyLicense(squeezySecret, { licenseKey: key, email }))).toBe(
      'accepted',
    );
    await harness.time.advance(second);
    expect(harness.vendor.asked).toEqual([`verify ${activation}`]);
  });

  test('a store whose API lags behind its events is read again after 30 seconds and after 5 minutes', async () => {
    await start([key]);
    await receive('payhip', payhipRefund(payhipKey, { licenseKey: key }));
    await harness.time.advance(4 * minute);
    refundAtStore(key);
    await harness.time.advance(2 * minute);
    expect(harness.store.snapshots.get(key)?.license.enabled).toBe(false);
    expect(harness.vendor.asked.filter((asked) => asked === `verify ${key}`).length).toBeGreaterThanOrEqual(
      3,
    );
  });

  test('an event whose read the store answered with 503 is made up for after a restart', async () => {
    await start([key]);
    refundAtStore(key);
    harness.vendor.instead = () => ({
      outcome: 'ambiguous',
      status: 503,
      detail: 'HTTP 503',
      retryAfterMs: null,
    });
    await receive('payhip', payhipRefund(payhipKey, { licenseKey: key }));
    await harness.time.advance(second);
    expect(harness.store.snapshots.get(key)?.license.enabled).toBe(true);
    ending.abort();
    await harness.restart();
    harness.vendor.instead = () => null;
    await harness.time.advance(second);
    expect(harness.store.snapshots.get(key)?.license.enabled).toBe(false);
  });

  test('an event about a license key that is not known here causes no request', async () => {
    await start([key, 'NEW-1'], [key]);
    expect(await receive('payhip', payhipRefund(payhipKey, { licenseKey: 'NEW-1' }))).toBe('nothing_known');
    await harness.time.advance(second);
    expect(harness.vendor.asked).toEqual([]);
  });

  test('an event about a license key that a caller asked for too early ends its 404, and the key is read', async () => {
    await start([key], [key, 'NEW-1']);
    const license = harness.vendor.licenses.get(key) as License;
    harness.vendor.licenses.set('NEW-1', { ...license, licenseKey: 'NEW-1' });
    expect((await harness.verify('NEW-1')).ok).toBe(false);
    const event = standardEvent(standardSecret, { license_key: ' NEW-1 ' }, { at: clock.now() });
    expect(await receive('other', event)).toBe('accepted');
    expect((await harness.verify('NEW-1')).ok).toBe(true);
    await harness.time.advance(10 * minute);
    expect(harness.vendor.asked.filter((asked) => asked === 'verify NEW-1')).toHaveLength(3);
  });

  test('an event that names a license key does not read the other keys of the buyer', async () => {
    await start([key, 'OTHER-1']);
    await receive('payhip', payhipRefund(payhipKey, { licenseKey: key, email, productKey }));
    await harness.time.advance(second);
    expect(harness.vendor.asked).toEqual([`verify ${key}`]);
  });

  test('a license key in another spelling is found', async () => {
    await start([key]);
    const licenseKey = ` ${key.toLowerCase().replaceAll('-', '\u2013')} `;
    expect(await receive('payhip', payhipRefund(payhipKey, { licenseKey }))).toBe('accepted');
  });

  test('an event about a buyer of 50 licenses reads at most 20 of them', async () => {
    const keys = Array.from({ length: 50 }, (_, index) => `KEY-${index}`);
    await start(keys);
    expect(await receive('payhip', payhipRefund(payhipKey, { email, productKey }))).toBe('accepted');
    expect(reads.waiting).toBe(20);
  });

  test('an event that names 50 known license keys reads at most 20 of them', async () => {
    const keys = Array.from({ length: 50 }, (_, index) => `KEY-${index}`);
    await start(keys);
    const data = { license_keys: keys };
    expect(await receive('other', standardEvent(standardSecret, data, { at: clock.now() }))).toBe('accepted');
    expect(reads.waiting).toBe(20);
  });
});

describe('an event without proof of its sender', () => {
  const about = { licenseKey: key, email, productKey };
  const changed = (sent: SentStoreEvent, change: Partial<SentStoreEvent>): SentStoreEvent => ({
    ...sent,
    ...change,
  });
  const at = (): number => clock.now();
  const forged: readonly [title: string, name: string, sent: () => SentStoreEvent][] = [
    ['Payhip with another API key', 'payhip', () => payhipRefund('another', about)],
    [
      'Payhip without a signature',
      'payhip',
      () => ({ body: '{"license_key":"KEY"}', headers: {}, query: '' }),
    ],
    ['Gumroad with another secret', 'gumroad', () => gumroadRefund('another', about)],
    [
      'Gumroad without a secret',
      'gumroad',
      () => changed(gumroadRefund(gumroadSecret, about), { query: '' }),
    ],
    ['Lemon Squeezy with another secret', 'squeezy', () => lemonSqueezyLicense('another', about)],
    [
      'Lemon Squeezy with a changed byte',
      'squeezy',
      () => {
        const sent = lemonSqueezyLicense(squeezySecret, about);
        return changed(sent, { body: sent.body.replace('"disabled":true', '"disabled": true') });
      },
    ],
    [
      'Standard Webhooks with another secret',
      'other',
      () => standardEvent('whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', { license_key: key }, { at: at() }),
    ],
    [
      'Standard Webhooks with a changed byte',
      'other',
      () => {
        const sent = standardEvent(standardSecret, { license_key: key }, { at: at() });
        return changed(sent, { body: `${sent.body} ` });
      },
    ],
    [
      'Standard Webhooks with a timestamp that is 6 minutes old',
      'other',
      () => standardEvent(standardSecret, { license_key: key }, { at: at() - 6 * minute }),
    ],
    [
      'Standard Webhooks with a timestamp that is 6 minutes ahead',
      'other',
      () => standardEvent(standardSecret, { license_key: key }, { at: at() + 6 * minute }),
    ],
    [
      'Standard Webhooks with the id of another event',
      'other',
      () => {
        const sent = standardEvent(standardSecret, { license_key: key }, { at: at() });
        return changed(sent, { headers: { ...sent.headers, 'webhook-id': 'msg_other' } });
      },
    ],
  ];

  test.each(forged)('%s causes no request, and is counted', async (_, name, sent) => {
    await start([key]);
    expect(await receive(name, sent())).toBe('wrong_signature');
    await harness.time.advance(minute);
    expect(harness.vendor.asked).toEqual([]);
    expect(counted).toEqual([`${name} wrong_signature`]);
    expect(events.status().senders.find((each) => each.name === name)).toMatchObject({
      lastEventAt: null,
      lastRefusal: 'wrong_signature',
    });
  });

  test('while the secret of a sender of Standard Webhooks is rotated, one of two signatures is enough', async () => {
    await start([key]);
    const sent = standardEvent(standardSecret, { license_key: key }, { at: clock.now() });
    const signatures = `v1,bm90IHRoaXMgb25l ${sent.headers['webhook-signature']}`;
    const both = { ...sent, headers: { ...sent.headers, 'webhook-signature': signatures } };
    expect(await receive('other', both)).toBe('accepted');
  });

  test.each(otherForms)(
    'an event of a sender of Standard Webhooks is accepted: %s',
    async (_, { secret, key: signingKey, prefix = 'webhook' }) => {
      await start([key], [key], new Map([['other', { from: 'standard', secret }]]));
      const sent = standardEvent(
        `whsec_${signingKey.toString('base64')}`,
        { license_key: key },
        { at: at() },
      );
      const headers = Object.fromEntries(
        Object.entries(sent.headers).map(([name, value]) => [name.replace(/^webhook-/, `${prefix}-`), value]),
      );
      expect(await receive('other', { ...sent, headers })).toBe('accepted');
    },
  );

  test('a name that is not configured is counted without the name', async () => {
    await start([key]);
    expect(await receive(key, payhipRefund(payhipKey, about))).toBe('unknown_name');
    expect(counted).toEqual(['none unknown_name']);
    expect(lines.join('\n')).not.toContain(key);
  });

  test.each([
    ['no body', ''],
    ['broken JSON', '{"license_key":'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0xfe])],
  ])('%s with a right secret is not understood', async (_, body) => {
    await start([key]);
    const received = { name: 'gumroad', body: Buffer.from(body), headers: {}, secret: gumroadSecret };
    expect(await events.receive(received)).toBe('not_understood');
  });
});

test('a flood of 10,000 forged events changes nothing, keeps the rate, and delays no caller', async () => {
  const keys = Array.from({ length: 300 }, (_, index) => `KEY-${index}`);
  await start([...keys, 'NEW-1'], keys);
  const before = keys.map((each) => harness.store.snapshots.get(each)?.license);
  // Half have a wrong signature. The other half have the right one: the constant of Payhip can leak.
  for (let count = 0; count < 10_000; count += 1) {
    const secret = count % 2 === 0 ? payhipKey : 'forged';
    await receive('payhip', payhipRefund(secret, { licenseKey: keys[count % keys.length] ?? '' }));
  }
  harness.vendor.asked.length = 0;
  const startedAt = harness.time.monotonic;
  // A caller asks for a key that is not known here, which needs the upstream.
  expect(await harness.verify('NEW-1')).toMatchObject({ ok: true });
  expect(harness.time.monotonic - startedAt).toBeLessThan(second);
  expect(await harness.verify('KEY-7')).toMatchObject({
    value: { provenance: { freshness: 'fresh', cache: 'hit' } },
  });
  await harness.time.advance(minute);
  // One read a second, with a burst of five.
  expect(harness.vendor.asked.length).toBeGreaterThan(50);
  expect(harness.vendor.asked.length).toBeLessThanOrEqual(68);
  expect(keys.map((each) => harness.store.snapshots.get(each)?.license)).toEqual(before);
  expect(counted.filter((each) => each === 'payhip wrong_signature')).toHaveLength(5_000);
  // One line for each result in a minute, however many events come.
  expect(lines).toHaveLength(2);
  expect(lines.join('\n')).not.toContain('KEY-');
});
