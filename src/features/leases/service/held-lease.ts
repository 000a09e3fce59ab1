import {
  afterAnswer,
  afterRefusal,
  continuedTotals,
  heldVerdict,
  licenseOf,
  pendingUses,
  requestedUses,
  type ReceivedDocument,
} from '../domain/held-lease.ts';
import { noUses, type HeldDocument, type HeldLease, type KnownSequence } from '../domain/lease.ts';
import { countAfter } from '../../../domain/license.ts';
import { isAboveLimit } from '../../../domain/terms.ts';
import { done, failWith, limitReached, notFound, type Result } from '../../../domain/problem/problem.ts';
import { recordChange } from '../../../service/history.ts';
import type { Context } from '../../../service/ports.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';

/** How many license keys one holder keeps. A caller can send millions of wrong ones. */
export const maxHeldLeases = 10_000;

/** Begins to hold a lease for a license key, or begins again after the seat was given back. */
export function holdLease(
  transaction: Transaction,
  { licenseKey, productKey }: Pick<HeldLease, 'licenseKey' | 'productKey'>,
  { now }: Context,
): Result<HeldLease> {
  const { heldLeases } = transaction;
  const before = heldLeases.get(licenseKey);
  if (before?.wanted === 'active') return { ...done(before), unchanged: true };
  if (before === null && heldLeases.count() >= maxHeldLeases) {
    const detail = `This holder has ${maxHeldLeases} license keys, which is its limit.`;
    return failWith('rate_limited', detail, { retryAfterS: 3600 });
  }
  const held: HeldLease =
    before === null
      ? {
          licenseKey,
          productKey,
          activationId: null,
          document: null,
          rev: 0,
          seq: 0,
          request: null,
          uses: noUses,
          confirmedUses: noUses,
          wanted: 'active',
          createdAt: now,
        }
      : { ...before, wanted: 'active' };
  heldLeases.put(held);
  return done(held);
}

/** Remembers that the user has given the seat back. The request that tells the issuer follows. */
export function endHeldLease(
  { heldLeases }: Transaction,
  { licenseKey }: { licenseKey: string },
): Result<HeldLease> {
  const before = heldLeases.get(licenseKey);
  if (before === null) return noLease();
  if (before.wanted === 'ended') return { ...done(before), unchanged: true };
  const held: HeldLease = { ...before, wanted: 'ended' };
  heldLeases.put(held);
  return done(held);
}

export type StoreLeaseRequest = {
  licenseKey: string;
  seq: number;
  request: NonNullable<HeldLease['request']>;
  /** The request that this request replaces; null: none is stored. */
  replaced: string | null;
  /** What the issuer knows; present after it has answered `out_of_sequence`. */
  issuer?: KnownSequence;
};

/**
 * Stores a signed request before it is sent. Changes nothing if another request was stored meanwhile. Uses that were counted
 * since the request was signed stay pending.
 */
export function storeLeaseRequest(
  { heldLeases }: Transaction,
  { licenseKey, seq, request, replaced, issuer }: StoreLeaseRequest,
): Result<HeldLease> {
  const before = heldLeases.get(licenseKey);
  if (before === null) return noLease();
  if ((before.request?.text ?? null) !== replaced) return { ...done(before), unchanged: true };
  const totals = issuer === undefined ? {} : continuedTotals(before, issuer);
  const held: HeldLease = { ...before, ...totals, seq, request };
  heldLeases.put(held);
  return done(held);
}

const statementSetting = 'lease_statement';

/** The key statement with the highest version that the issuer has sent; null: none yet. */
export function heldStatement({
  settings,
}: Pick<Reader, 'settings'>): { version: number; text: string } | null {
  const stored = settings.get(statementSetting) ?? '';
  return stored === '' ? null : (JSON.parse(stored) as { version: number; text: string });
}

export type RecordLeaseAnswer = {
  licenseKey: string;
  /** The request that was answered; null: no request that is stored here. */
  answered: string | null;
  received: ReceivedDocument;
  statement: { version: number; text: string };
};

/** Records a lease or notice of the issuer, whose signatures were checked. */
export function recordLeaseAnswer(
  transaction: Transaction,
  { licenseKey, answered, received, statement }: RecordLeaseAnswer,
): Result<HeldLease> {
  const { heldLeases, settings } = transaction;
  const before = heldLeases.get(licenseKey);
  if (before === null) return noLease();
  if (statement.version > (heldStatement(transaction)?.version ?? 0))
    settings.set(statementSetting, JSON.stringify(statement));
  const held = afterAnswer(before, answered, received);
  heldLeases.put(held);
  return done(held);
}

/**
 * Records a refusal of the issuer. `isRecorded`: the issuer has recorded the request. A key that the issuer does not know is
 * forgotten if this holder knows nothing about the key either; otherwise, a request with uses stays, and is repeated. Null: the
 * key was forgotten.
 */
export function recordLeaseRefusal(
  { heldLeases }: Transaction,
  command: { licenseKey: string; answered: string; isRecorded: boolean; isUnknownKey: boolean },
): Result<HeldLease | null> {
  const { licenseKey, answered, isRecorded, isUnknownKey } = command;
  const before = heldLeases.get(licenseKey);
  if (before?.request?.text !== answered) return { ...done(before), unchanged: true };
  // Its uses may have been counted before the key was unknown: under another number they would be counted again.
  if (isUnknownKey && before.activationId !== null && requestedUses(before) > 0)
    return { ...done(before), unchanged: true };
  const held = afterRefusal(before, isRecorded);
  if (isUnknownKey && held.seq === 0 && held.document === null && pendingUses(held) === 0) {
    heldLeases.remove(licenseKey);
    return done(null);
  }
  heldLeases.put(held);
  return done(held);
}

/** Counts a use, or takes one back. The issuer gets the total with the next request. */
export function countHeldUse(
  transaction: Transaction,
  { licenseKey, productKeys, trigger }: CountHeldUse,
  context: Context,
): Result<HeldLease> {
  const { heldLeases, history } = transaction;
  const held = heldLeases.get(licenseKey);
  if (held === null || !productKeys.includes(held.productKey)) return notFound('license');
  if (heldVerdict(held, context.now).verdict !== 'answer') {
    return failWith('verdict_expired', 'The lease has ended, and no other lease has arrived.');
  }
  const before = licenseOf(held);
  const counted = countAfter(before.uses, trigger);
  if (trigger === 'usage' && isAboveLimit(counted, before)) return limitReached();
  if (counted === before.uses) return { ...done(held), unchanged: true };
  const { recorded, returned } = held.uses;
  const uses =
    trigger === 'usage' ? { recorded: recorded + 1, returned } : { recorded, returned: returned + 1 };
  const changed: HeldLease = { ...held, uses };
  heldLeases.put(changed);
  recordChange(history, { change: trigger, before, after: { ...before, uses: counted } }, context);
  return done(changed);
}

export type CountHeldUse = {
  licenseKey: string;
  /** The products that the caller can see. */
  productKeys: readonly string[];
  trigger: 'usage' | 'decrease';
};

const issuerSetting = 'lease_issuer';
const deviceSetting = 'lease_device';

/** The thumbprint of the device key to which the store is bound; null: no holder has started on the store. */
export function boundDevice({ settings }: Pick<Reader, 'settings'>): string | null {
  return settings.get(deviceSetting) ?? null;
}

/**
 * Binds the store to the issuer of the configuration and to the key of this device (its thumbprint). If either has changed,
 * no stored lease or request is worth anything: each license key needs a lease again, and unsent uses go with the next
 * request. Returns how many keys that are. `hasOtherRoots`: other root keys have signed the known key statement, so that the
 * first statement of the new root keys replaces it, whatever its version.
 */
export function bindIssuer(
  { heldLeases, settings }: Transaction,
  { issuer, device, hasOtherRoots }: { issuer: string; device: string; hasOtherRoots: boolean },
): Result<{ forgotten: number }> {
  const [issuerBefore, deviceBefore] = [settings.get(issuerSetting), settings.get(deviceSetting)];
  const statement = hasOtherRoots ? heldStatement({ settings }) : null;
  if (statement !== null) settings.set(statementSetting, JSON.stringify({ ...statement, version: 0 }));
  else if (issuerBefore === issuer && deviceBefore === device)
    return { ...done({ forgotten: 0 }), unchanged: true };
  settings.set(issuerSetting, issuer);
  settings.set(deviceSetting, device);
  const isOtherIssuer = (issuerBefore ?? issuer) !== issuer;
  if (isOtherIssuer) settings.set(statementSetting, '');
  else if ((deviceBefore ?? device) === device) return done({ forgotten: 0 });
  const all = heldLeases.all();
  for (const held of all) {
    const { uses, confirmedUses } = held;
    heldLeases.put({
      ...held,
      activationId: null,
      document: null,
      rev: 0,
      seq: 0,
      request: null,
      uses: {
        recorded: uses.recorded - confirmedUses.recorded,
        returned: uses.returned - confirmedUses.returned,
      },
      confirmedUses: noUses,
    });
  }
  return done({ forgotten: all.length });
}

/** What the stored document of a license key proves. `text`: the document that was examined. */
export type HeldCorrection = {
  licenseKey: string;
  text: string;
  document: HeldDocument;
  rev: number;
};

/** Replaces what is stored of a document by what the document proves, unless another document was recorded meanwhile. */
export function correctHeldLease(
  { heldLeases }: Transaction,
  { licenseKey, text, document, rev }: HeldCorrection,
): Result<HeldLease | null> {
  const before = heldLeases.get(licenseKey);
  if (before?.document?.text !== text) return { ...done(before), unchanged: true };
  const held: HeldLease = { ...before, document, rev };
  heldLeases.put(held);
  return done(held);
}

export function noLease(
  detail = 'This device has no lease for the license key.',
): ReturnType<typeof failWith> {
  return failWith('lease_not_found', detail);
}
