import { defaultAccountId } from '../../../domain/access/principal.ts';
import type { FreshnessPolicy } from '../../../domain/agent/license-snapshot.ts';
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
import { snapshotOf } from './agent-request.ts';
import type { AnsweredRequest, LeaseCommand } from './answer.ts';
import { mayWait, mayWaitAtAgent, type LeaseWait } from './waiting.ts';

/** Decides about requests of devices, in both roles of an issuer. It signs nothing. */
export interface LeaseDesk {
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
export function authorityLeaseDesk(
  reader: AuthorityReader,
  writer: Writer,
  clock: Pick<Clock, 'now'>,
): LeaseDesk {
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

type AgentDeskParts = {
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
export function agentLeaseDesk(parts: AgentDeskParts): LeaseDesk {
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
