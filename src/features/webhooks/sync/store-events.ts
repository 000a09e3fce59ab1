import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { LicenseSnapshot } from '../../../domain/agent/license-snapshot.ts';
import { licenseKeysIn } from '../../../domain/license.ts';
import { namesProduct, subjectOf, type EventSubject } from '../domain/store-event.ts';
import type { Clock, LicenseFetch, Log } from '../../../service/ports.ts';
import type { SenderStatus, StoreEventStatus } from '../../../service/status.ts';
import type { EventResult, ReceivedEvent, StoreEvents } from '../service/store-event.ts';
import type { Reader } from '../../../service/tables.ts';
import { signingKeysOf } from '../domain/webhook.ts';
import { signatureOf } from '../signature.ts';
import type { HintedReads } from './hinted-reads.ts';
import { minuteMs } from '../../../domain/time.ts';

/** How many license keys one event makes the agent read. */
const maxKeys = 20;
/** How many buyers of one event are looked up, and how many license keys of each. */
const maxBuyers = 5;
const maxKeysOfBuyer = 200;
/** By how much the clock of a sender of Standard Webhooks may differ, in seconds: what its libraries allow. */
const toleranceS = 300;
/** How long the same result of the same sender is not logged again, in ms. */
const quietMs = minuteMs;

/** A sender in the configuration. */
export type StoreEventSource = {
  from: 'payhip' | 'gumroad' | 'lemonsqueezy' | 'standard';
  secret: string;
};

type StoreEventsParts = {
  reader: Reader;
  clock: Clock;
  log: Log;
  reads: Pick<HintedReads, 'add' | 'waiting'>;
  fetcher: Pick<LicenseFetch, 'forgetMissing'>;
  /** The configured senders, by name. */
  senders: () => ReadonlyMap<string, StoreEventSource>;
  /** The configured products. */
  products: () => readonly { id: string; productKey: string }[];
  count: (name: string, result: EventResult) => void;
};

type Checked = { result: 'wrong_signature' | 'not_understood' } | { result: 'proven'; event: unknown };

/** Receives the events of stores, and has the license keys read that they are about. */
export class ReceivedStoreEvents implements StoreEvents {
  readonly #parts: StoreEventsParts;
  readonly #statuses = new Map<string, Omit<SenderStatus, 'name' | 'from'>>();
  /** Until when each result of a sender is not logged, and how many events that concerns. */
  readonly #quiet = new Map<string, { until: number; skipped: number }>();

  constructor(parts: StoreEventsParts) {
    this.#parts = parts;
  }

  async receive(event: ReceivedEvent): Promise<EventResult> {
    const sender = this.#parts.senders().get(event.name);
    if (sender === undefined) return this.#finish(null, 'unknown_name');
    const checked = check(sender, event, this.#parts.clock.now());
    if (checked.result !== 'proven') return this.#finish(event.name, checked.result);
    const subject = subjectOf(checked.event);
    const keys = [...this.#knownKeys(subject), ...this.#missingKeys(subject)].slice(0, maxKeys);
    const added = keys.filter(({ productId, licenseKey }) => this.#parts.reads.add(productId, licenseKey));
    if (added.length > 0) return this.#finish(event.name, 'accepted', added.length);
    return this.#finish(event.name, keys.length > 0 ? 'too_many' : 'nothing_known');
  }

  status(): StoreEventStatus {
    const senders = [...this.#parts.senders()].map(([name, { from }]) => ({
      name,
      from,
      ...(this.#statuses.get(name) ?? never),
    }));
    return { senders, waitingReads: this.#parts.reads.waiting };
  }

  /** The known keys that an event names, with their activations; without one, the known keys of its buyers and products. */
  #knownKeys(subject: EventSubject): readonly { productId: string; licenseKey: string }[] {
    const { snapshots } = this.#parts.reader;
    const named = subject.licenseKeys.flatMap((text) => {
      const spellings = licenseKeysIn(text);
      const known = spellings.map((spelling) => snapshots.get(spelling)).find((each) => each !== null);
      const activations = spellings.flatMap((spelling) => snapshots.activations(spelling, maxKeys));
      return [...(known === undefined ? [] : [known]), ...activations];
    });
    const found = named.length > 0 ? named : this.#ofBuyers(subject);
    const distinct = new Map(found.map((snapshot) => [snapshot.license.licenseKey, snapshot.productId]));
    return [...distinct].map(([licenseKey, productId]) => ({ productId, licenseKey }));
  }

  /** The keys that an event names and that callers asked for before the store showed them. Their 404s end. */
  #missingKeys({ licenseKeys }: EventSubject): readonly { productId: string; licenseKey: string }[] {
    const ids = this.#parts.products().map(({ id }) => id);
    const spellings = new Set(licenseKeys.flatMap((text) => licenseKeysIn(text)));
    return [...spellings].flatMap((licenseKey) =>
      this.#parts.fetcher.forgetMissing(ids, licenseKey).map((productId) => ({ productId, licenseKey })),
    );
  }

  /** Enabled licenses come first, then new ones: an event is seldom about a license that was refunded long ago. */
  #ofBuyers(subject: EventSubject): readonly LicenseSnapshot[] {
    const { snapshots } = this.#parts.reader;
    const products = this.#parts.products().filter(({ productKey }) => namesProduct(subject, productKey));
    const ids = new Set(products.map(({ id }) => id));
    return (
      subject.buyers
        .slice(0, maxBuyers)
        .flatMap((buyer) => snapshots.ofBuyer(buyer, maxKeysOfBuyer))
        // A store may name its products in another way than the configuration does.
        .filter(({ productId }) => ids.size === 0 || ids.has(productId))
        .toSorted(
          ({ license: one }, { license: other }) =>
            Number(other.enabled) - Number(one.enabled) || other.createdAt - one.createdAt,
        )
    );
  }

  #finish(name: string | null, result: EventResult, licenses = 0): EventResult {
    const now = this.#parts.clock.now();
    this.#parts.count(name ?? 'none', result);
    if (name !== null) {
      const before = this.#statuses.get(name) ?? never;
      const isRefused = result === 'wrong_signature' || result === 'not_understood';
      this.#statuses.set(
        name,
        isRefused ? { ...before, lastRefusedAt: now, lastRefusal: result } : { ...before, lastEventAt: now },
      );
    }
    this.#log(name, result, licenses);
    return result;
  }

  /** Logs a result once a minute: anybody can send events. */
  #log(name: string | null, result: EventResult, licenses: number): void {
    const { clock, log } = this.#parts;
    const key = `${name} ${result}`;
    const before = this.#quiet.get(key);
    const now = clock.monotonic();
    if (before !== undefined && now < before.until) {
      before.skipped += 1;
      return;
    }
    this.#quiet.set(key, { until: now + quietMs, skipped: 0 });
    const hint = hints[result];
    const unlogged = before?.skipped ?? 0;
    const fields = { webhook: name, result, licenses, unlogged, ...(hint !== undefined && { hint }) };
    if (result === 'accepted' || result === 'nothing_known') log.info(fields, messages[result]);
    else log.warn(fields, messages[result]);
  }
}

const never = { lastEventAt: null, lastRefusedAt: null, lastRefusal: null } as const;

const messages: Readonly<Record<EventResult, string>> = {
  accepted: 'an event of a store: its license keys are read',
  nothing_known: 'an event of a store is about no license key that is known here',
  too_many: 'an event of a store is ignored: too many license keys wait to be read',
  wrong_signature: 'an event of a store with a wrong signature is ignored',
  not_understood: 'an event of a store cannot be read and is ignored',
  unknown_name: 'an event of a store came to a name that is not in webhooks.in',
};

const hints: Readonly<Partial<Record<EventResult, string>>> = {
  wrong_signature: 'compare its secret in webhooks.in with that of the store',
  not_understood: 'check its from in webhooks.in',
  unknown_name: 'compare the end of the URL that the store has with the names in webhooks.in',
};

/** Checks what can be checked of an event. A signature proves the sender; no signature proves that the event is new. */
function check({ from, secret }: StoreEventSource, received: ReceivedEvent, now: number): Checked {
  const header = (name: string): string => {
    const value = received.headers[name];
    return typeof value === 'string' ? value : '';
  };
  switch (from) {
    case 'payhip': {
      const event = parse(received.body);
      // Payhip sends the same constant with every event: the digest of the API key.
      return event === null ? notUnderstood : proven(isSame(signatureIn(event), sha256(secret)), event);
    }
    case 'gumroad':
      return isSame(sha256(received.secret ?? ''), sha256(secret)) ? parsed(received.body) : wrongSignature;
    case 'lemonsqueezy':
      return isSame(header('x-signature').toLowerCase(), hmac(secret, received.body).toString('hex'))
        ? parsed(received.body)
        : wrongSignature;
    case 'standard':
      return isStandard(secret, received.body, header, now) ? parsed(received.body) : wrongSignature;
    default:
      return from satisfies never;
  }
}

const notUnderstood: Checked = { result: 'not_understood' };
const wrongSignature: Checked = { result: 'wrong_signature' };

function proven(isProven: boolean, event: unknown): Checked {
  return isProven ? { result: 'proven', event } : wrongSignature;
}

function parsed(body: Buffer): Checked {
  const event = parse(body);
  return event === null ? notUnderstood : { result: 'proven', event };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a JSON object or a form, whatever Content-Type says; null: the body is neither. */
function parse(body: Buffer): object | null {
  try {
    const text = utf8.decode(body).trim();
    if (text === '') return null;
    if (!text.startsWith('{')) return Object.fromEntries(new URLSearchParams(text));
    return JSON.parse(text) as object;
  } catch {
    return null;
  }
}

function signatureIn(event: object): string {
  const { signature } = event as { signature?: unknown };
  return typeof signature === 'string' ? signature.toLowerCase() : '';
}

/**
 * Whether an event has a signature of Standard Webhooks 1.0, and a timestamp of the last or next five minutes. Svix, from
 * which the standard comes, sends the same headers under its own name.
 */
function isStandard(secret: string, body: Buffer, header: (name: string) => string, now: number): boolean {
  const prefix = header('webhook-id') === '' ? 'svix' : 'webhook';
  const id = header(`${prefix}-id`);
  const timestamp = header(`${prefix}-timestamp`);
  if (id === '' || !/^[1-9]\d{0,11}$/.test(timestamp)) return false;
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceS) return false;
  const message = { id, timestampS: Number(timestamp), body };
  const expected = signingKeysOf(secret).map((key) => signatureOf(message, key));
  // While a secret is rotated, there are two signatures.
  const signatures = header(`${prefix}-signature`).split(' ').slice(0, 10);
  return signatures.flatMap((sent) => expected.map((right) => isSame(sent, right))).includes(true);
}

function hmac(key: string, message: Buffer): Buffer {
  return createHmac('sha256', key).update(message).digest();
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Compares in constant time. */
function isSame(sent: string, expected: string): boolean {
  const [one, other] = [Buffer.from(sent), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
