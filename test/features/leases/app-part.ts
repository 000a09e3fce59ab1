import { failWith } from '../../../src/domain/problem/problem.ts';
import { countSeats } from '../../../src/features/leases/daemon/process.ts';
import type { LeaseIssuer } from '../../../src/features/leases/service/ports.ts';
import type { App, CoreApp } from '../../../src/http/app.ts';

/** What this feature adds to the app of tests (support/app/http-app.ts). */
export function appPart(app: CoreApp): Partial<App> {
  return {
    leaseIssuer: app.role === 'holder' ? null : silentIssuer,
    leaseHolder: null,
    seatsOf: async (licenseKey) => await countSeats(app.reader, licenseKey, app.now()),
  };
}

/** An issuer that signs nothing. */
const refuse = async () => failWith('not_an_issuer', 'This app issues no leases.');
const silentIssuer: LeaseIssuer = {
  answer: refuse,
  statement: refuse,
  sign: refuse,
  status: async () => null,
  host: () => null,
  stopWaiting: () => undefined,
};
