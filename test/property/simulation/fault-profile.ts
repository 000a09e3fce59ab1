import type { Asked } from './ledger.ts';

/** Requests that one trouble is for; null: any. */
export type Target = { subject: string | null; what: Asked['what'] | null };

/** What the network and the upstream do to requests at the moment. Shares are from 0 to 1. */
export type FaultProfile = {
  /** The share of requests that meet one of the common troubles. */
  trouble: number;
  /** Nothing gets there at all: refused, or silence. */
  away: 'refused' | 'lost_request' | null;
  /** The share that is told that its secret is wrong. */
  unauthorized: number;
  /** The share of changes that the upstream declines for good (400, 422). */
  declining: number;
  /** What fails every time. */
  poison: (Target & { how: 'error_before' | 'error_after' | 'garbage_after' }) | null;
  /** What a gateway without routes answers, with 404 and an object. */
  noRoute: Target | null;
  /** The share of reads that a cache answers, where it may or does not care. */
  caching: number;
  cacheIsStubborn: boolean;
  /** Late requests arrive as late as the reconcile delay allows. */
  lateArrivals: boolean;
  /** The share that is answered 429, with a `Retry-After`. */
  throttling: number;
  /** The longest `Retry-After`, in seconds. */
  longestWaitS: number;
  /** How far the clock of the upstream is from the truth, in ms. */
  datesAheadMs: number;
  /** No answer has a `Date`. */
  isUndated: boolean;
  /** Which instance of a Latchkey the upstream is; null: it does not tell. */
  instance: number | null;
};

export const noFaults: FaultProfile = {
  trouble: 0,
  away: null,
  unauthorized: 0,
  declining: 0,
  poison: null,
  noRoute: null,
  caching: 0,
  cacheIsStubborn: false,
  lateArrivals: false,
  throttling: 0,
  longestWaitS: 8,
  datesAheadMs: 0,
  isUndated: false,
  instance: null,
};

export function isTroubled(target: Target | null, { subject, what }: Asked): boolean {
  return (
    target !== null &&
    (target.subject === null || target.subject === subject.toLowerCase()) &&
    (target.what === null || target.what === what)
  );
}
