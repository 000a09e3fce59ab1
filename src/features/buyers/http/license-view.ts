import type { License } from '../../../domain/license.ts';
import type { App } from '../../../http/app.ts';
import { maxMoves, movesWithinMs, type Activation } from '../../leases/domain/lease.ts';
import { leaseTermsFor } from '../../leases/domain/lease-rules.ts';

/** What a buyer sees of a license. Times are epoch ms. */
export type LicenseView = {
  license: License;
  productName: string;
  /** Null: any number. */
  seats: number | null;
  seatsTaken: number;
  /** The devices with a seat, at most `maxDevices`. */
  devices: readonly Activation[];
  /** How many seats were freed at once lately. */
  moves: number;
  movesLeft: number;
  /** How long a device that has renewed its lease is in use. */
  refreshMs: number;
  now: number;
};

export const maxDevices = 100;

type Reading = Pick<App, 'reader' | 'lists' | 'digest' | 'now'>;

/**
 * Opens a license with what its buyer has typed; null: it does not fit. `spellings`: the license keys that the text may
 * stand for. `email`: null if none is asked for. The same is done whether the license key or the address is unknown, so
 * that the response time tells nothing.
 */
export async function openLicense(
  app: Reading,
  { spellings, email }: { spellings: readonly string[]; email: string | null },
): Promise<LicenseView | null> {
  const found: (License | null)[] = [];
  for (const spelling of spellings) found.push(await app.reader.licenses.get(spelling));
  const license = found.find((each) => each !== null) ?? null;
  const isBuyer = email === null || isSameAddress(app, license?.buyerEmail ?? '', email);
  return await viewOf(app, isBuyer ? license : null);
}

/** Reads a license that its buyer has opened; null: there is no such license any more. */
export async function readLicense(app: Reading, licenseKey: string): Promise<LicenseView | null> {
  return await viewOf(app, await app.reader.licenses.get(licenseKey));
}

/** Hashes are compared, so that the time of the comparison does not tell how much of an address is right. */
function isSameAddress({ digest }: Reading, ...addresses: readonly [string, string]): boolean {
  const [theirs, sent] = addresses.map((each) => digest(each.trim().toLowerCase()));
  return theirs === sent && addresses[0].trim() !== '';
}

async function viewOf(
  { reader, lists, now: clock }: Reading,
  license: License | null,
): Promise<LicenseView | null> {
  const now = clock();
  const { licenseKey, productKey } = license ?? { licenseKey: '', productKey: '' };
  const product = await reader.products.get(productKey);
  const seatsTaken = await reader.activations.seatsTaken(licenseKey, now, '');
  const moves = await reader.activations.movesSince(licenseKey, now - movesWithinMs + 1);
  const devices = await lists.activations.list({ licenseKey, seatAt: now }, { limit: maxDevices, offset: 0 });
  if (license === null || product === null) return null;
  const { seats, refreshMs } = leaseTermsFor(license, product.leaseTerms);
  const movesLeft = Math.max(0, maxMoves - moves);
  return { license, productName: product.name, seats, seatsTaken, devices, moves, movesLeft, refreshMs, now };
}
