import { defaultAccountId } from '../../../domain/access/principal.ts';
import { type FreshnessPolicy, localLicense, verdict } from '../../../domain/agent/license-snapshot.ts';
import type { SignedRequest } from '../domain/lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import { parseLicenseKey } from '../../../domain/license.ts';
import { done, notFound, type Result } from '../../../domain/problem/problem.ts';
import type { Clock, LicenseFetch, WriteOptions } from '../../../service/ports.ts';
import { isOfLostHistory } from '../../../service/lifecycle/run-count.ts';
import { storedLicenseKey } from '../../../service/pasted-keys.ts';
import type { LicenseService } from '../../../service/services.ts';
import type { AuthorityReader, Awaitable, Reader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import { endAtAgent, snapshotOf } from './agent-request.ts';
import type { AnsweredRequest, LeaseCommand } from './answer.ts';
import { endOf, waitsUntil } from '../domain/lease-rules.ts';

/** The request may wait for a change of this license key, as stored, until an instant (epoch ms). */
export type LeaseWait = { licenseKey: string; until: number };

/**
 * Whether a request (`Prefer: wait`) may wait at an authority; null: answer it now. Call it again after each change of the
 * license key: it returns null as soon as there is something to say.
 */
export async function mayWait(
  reader: AuthorityReader,
  signedRequest: SignedRequest,
  now: number,
): Promise<LeaseWait | null> {
  const { request, device } = signedRequest;
  const licenseKey = await storedLicenseKey(reader, parseLicenseKey(request.licenseKey) ?? '');
  const license = await reader.licenses.get(licenseKey);
  if (license?.productKey !== request.productKey) return null;
  const activation = await reader.activations.ofDevice(licenseKey, device);
  const endsAt = endOf(license);
  const until = activation === null ? null : waitsUntil(activation, signedRequest, { license, endsAt, now });
  return until === null ? null : { licenseKey, until };
}

/** The same at an agent. `productId`: the id of the configured product whose key the request names. */
export function mayWaitAtAgent(
  reader: Reader,
  {
    signedRequest,
    productId,
    freshness,
  }: {
    signedRequest: SignedRequest;
    productId: string;
    freshness: FreshnessPolicy;
  },
  now: number,
): LeaseWait | null {
  const { request, device } = signedRequest;
  const snapshot = snapshotOf(reader, request.licenseKey);
  if (snapshot === null || snapshot.productId !== productId) return null;
  const license = localLicense(snapshot);
  const { licenseKey } = license;
  if (verdict(snapshot, freshness, now).verdict !== 'answer') return null;
  const activation = reader.activations.ofDevice(licenseKey, device);
  const endsAt = endAtAgent(snapshot, freshness, now);
  const until = activation === null ? null : waitsUntil(activation, signedRequest, { license, endsAt, now });
  return until === null ? null : { licenseKey, until };
}

/** Decides about requests of devices, in both roles of an issuer. It signs nothing. */
export interface LeaseService {
  /**
   * Makes sure that this process knows the license: an agent asks its upstream if it must. `requester`: look-ups of
   * different names take turns; null: they are not limited. `isConfirmed`: the upstream must confirm the license now.
   */
  prepare(
    signedRequest: SignedRequest,
    options: { requester: string | null; signal: AbortSignal; isConfirmed?: boolean },
  ): Promise<Result<unknown>>;
  /** Whether the device has asked for this license before. */
  isKnown(signedRequest: SignedRequest): Awaitable<boolean>;
  /** Until when the request may wait for a change; null: answer it now. */
  mayWait(signedRequest: SignedRequest): Awaitable<LeaseWait | null>;
  /** `accountId`: only products of the account count; null: all products. */
  answer(
    command: LeaseCommand,
    accountId: string | null,
    writeOptions: WriteOptions,
  ): Promise<Result<AnsweredRequest>>;
}

/** An authority knows all licenses. */
export function authorityLeaseService(
  reader: AuthorityReader,
  writer: Writer,
  clock: Pick<Clock, 'now'>,
): LeaseService {
  return {
    prepare: async () => done(null),
    async isKnown({ request, device }) {
      const licenseKey = await storedLicenseKey(reader, parseLicenseKey(request.licenseKey) ?? '');
      return (await reader.activations.ofDevice(licenseKey, device)) !== null;
    },
    mayWait: async (signedRequest) => await mayWait(reader, signedRequest, clock.now()),
    answer: async (command, accountId, writeOptions) =>
      await writer.write('answerLeaseRequest', { ...command, accountId }, writeOptions),
  };
}

type AgentLeaseParts = {
  reader: Reader;
  writer: Writer;
  clock: Pick<Clock, 'now'>;
  licenseService: Pick<LicenseService, 'verify'>;
  fetcher: Pick<LicenseFetch, 'fetchForCaller'>;
  /** Null if no configured product has this key. */
  productIdOf: (productKey: string) => string | null;
  termsOf: (productId: string) => LeaseTerms;
  settings: () => { freshness: FreshnessPolicy; maxPending: number };
  /** Sends the uses that were counted. */
  wake: (licenseKey: string) => void;
};

/** An agent answers from what its upstream last said. */
export function agentLeaseService(parts: AgentLeaseParts): LeaseService {
  const { reader, writer, clock, licenseService, fetcher, productIdOf } = parts;
  return {
    async prepare({ request }, { requester, signal, isConfirmed = false }) {
      const productId = productIdOf(request.productKey);
      const licenseKey = parseLicenseKey(request.licenseKey);
      if (productId === null || licenseKey === null) return notFound('license');
      // A lease is a verify that lasts longer: the key is looked up or refreshed by the same rules.
      const tenant = { accountId: defaultAccountId, productKey: productId };
      const verified = await licenseService.verify(
        tenant,
        licenseKey,
        signal,
        requester === null ? null : { credential: requester, connection: requester },
      );
      const snapshot = snapshotOf(reader, request.licenseKey);
      const isUncertain = snapshot !== null && isOfLostHistory(reader, snapshot);
      if (!verified.ok || !(isConfirmed || isUncertain)) return verified;
      await fetcher.fetchForCaller([productId], verified.value.license.licenseKey, signal, null);
      return verified;
    },
    isKnown({ request, device }) {
      const snapshot = snapshotOf(reader, request.licenseKey);
      const licenseKey = snapshot?.license.licenseKey ?? '';
      return reader.activations.ofDevice(licenseKey, device) !== null;
    },
    mayWait(signedRequest) {
      const productId = productIdOf(signedRequest.request.productKey);
      if (productId === null) return null;
      const { freshness } = parts.settings();
      return mayWaitAtAgent(reader, { signedRequest, productId, freshness }, clock.now());
    },
    async answer(command, accountId, writeOptions) {
      const productId = productIdOf(command.signedRequest.request.productKey);
      if (productId === null || (accountId !== null && accountId !== defaultAccountId))
        return notFound('license');
      const { freshness, maxPending } = parts.settings();
      const agent = { productId, terms: parts.termsOf(productId), freshness, maxPending };
      const answered = await writer.write('answerAgentLeaseRequest', { ...command, ...agent }, writeOptions);
      if (answered.ok && hasUses(answered.value)) parts.wake(answered.value.licenseKey);
      return answered;
    },
  };
}

function hasUses({ uses: { recorded, returned } }: AnsweredRequest): boolean {
  return recorded + returned > 0;
}
