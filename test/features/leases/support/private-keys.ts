import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VendorAndDevice } from './vendor-and-device.ts';

/** An issuer and a holder that has a lease. */
export interface IssuerAndKeys extends AsyncDisposable {
  readonly shop: VendorAndDevice;
  /** The private keys of two roots, of the issuer and of the device. */
  readonly keys: readonly string[];
  /** The activation of the device. */
  readonly activationId: string;
}

export async function startIssuer(): Promise<IssuerAndKeys> {
  const shop = await VendorAndDevice.start({ seats: 3 });
  await (await shop.device()).verify();
  const { data } = await shop.admin({}, 'activations');
  const [activation] = (data?.['activations'] ?? []) as { activation_id: string }[];
  const keys = privateKeysBelow(shop.directory);
  if (activation === undefined || keys.length !== 4) throw new Error('there is no lease, or not every key');
  return {
    shop,
    keys,
    activationId: activation.activation_id,
    [Symbol.asyncDispose]: () => shop[Symbol.asyncDispose](),
  };
}

/** Each file below a directory, by its path. */
export function filesBelow(directory: string): Map<string, Buffer> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(files.map((path) => [path, readFileSync(path)]));
}

function privateKeysBelow(directory: string): string[] {
  return [...filesBelow(directory)]
    .filter(([path]) => path.endsWith('.jwk'))
    .map(([, content]) => (JSON.parse(content.toString()) as { d?: string }).d)
    .filter((key) => key !== undefined);
}

/** The private keys that `bytes` contain: as text, in another encoding, or as numbers. */
export function keysIn(bytes: Buffer, keys: readonly string[]): string[] {
  return keys.filter((key) => {
    const raw = Buffer.from(key, 'base64url');
    return [key, raw, raw.toString('hex'), raw.toString('base64')].some((form) => bytes.includes(form));
  });
}
