import type { ParsedRequest } from './ledger.ts';

/** The requests that a trouble affects; null: any. */
export type Target = { subject: string | null; what: ParsedRequest['what'] | null };

/** How the network and the upstream treat requests now. Shares are from 0 to 1. */
export type FaultProfile = {
  /** The share of requests that meet one of the common troubles. */
  trouble: number;
  /** Nothing arrives: connections are refused, or time out. */
  away: 'refused' | 'lost_request' | null;
  /** The share of requests whose secret is rejected. */
  unauthorized: number;
  /** The share of changes that the upstream refuses permanently (400, 422). */
  declining: number;
  /** Requests that fail every time. */
  poison: (Target & { how: 'error_before' | 'error_after' | 'garbage_after' }) | null;
  /** Requests that a gateway without routes answers, with 404 and an object. */
  noRoute: Target | null;
  /** The share of reads that a cache answers, whether or not it is allowed to. */
  caching: number;
  cacheIsStubborn: boolean;
  /** Late requests arrive as late as the reconcile delay allows. */
  lateArrivals: boolean;
  /** The share of requests that get 429 with `Retry-After`. */
  throttling: number;
  /** The longest `Retry-After`, in seconds. */
  longestWaitS: number;
  /** How far the clock of the upstream is from the true time, in ms. */
  datesAheadMs: number;
  /** Responses have no `Date`. */
  isUndated: boolean;
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
};

export function isTroubled(target: Target | null, { subject, what }: ParsedRequest): boolean {
  return (
    target !== null &&
    (target.subject === null || target.subject === subject.toLowerCase()) &&
    (target.what === null || target.what === what)
  );
}
