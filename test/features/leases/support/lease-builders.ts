import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DocumentClaims } from '../../../../src/features/leases/wire/lease.ts';
import { newKey, readPrivateKey, type KeyPair } from '../../../../src/features/leases/documents.ts';
import { setUp, type Ownership, type SetUp } from '../../../../src/features/leases/issuer/signing-files.ts';

export const leaseIssuer = 'https://licenses.example.com';

/** Makes a key as the commands and holders do. */
export async function keyPair(): Promise<KeyPair> {
  const pair = await readPrivateKey(JSON.stringify(await newKey()));
  if (pair === null) throw new Error('a new key cannot be read');
  return pair;
}

/** Valid claims of each type of document. `2027-01-01` is the end of the signing key, and the lease ends before. */
export function documentClaims(device: KeyPair, signing: KeyPair): DocumentClaims {
  return {
    keys: { iss: leaseIssuer, version: 3, keys: [{ jwk: signing.jwk, not_after: 1_798_761_600 }] },
    lease: {
      iss: leaseIssuer,
      aud: 'RGsF',
      sub: 'act_01',
      exp: 1_790_000_000,
      issued_at: 1_780_000_000,
      refresh_at: 1_780_086_400,
      rev: 1_780_000_000_123,
      license: {
        license_key: '85DB562A-C11D4B06-A2335A6B-8C079166',
        enabled: true,
        product_link: 'RGsF',
        buyer_email: '',
        uses: 4,
        date: '2026-01-02T03:04:05Z',
      },
      seats: { limit: 3, taken: 1 },
      cnf: { jkt: device.kid },
      request: signing.kid,
    },
    notice: {
      iss: leaseIssuer,
      sub: 'act_01',
      license_key: '85DB562A-C11D4B06-A2335A6B-8C079166',
      state: 'disabled',
      rev: 1_780_000_000_124,
      issued_at: 1_780_000_000,
      cnf: { jkt: device.kid },
      request: signing.kid,
    },
    sequence: {
      iss: leaseIssuer,
      last: 4,
      challenge: 'CCCCCCCCCCCCCCCC',
      uses: { recorded: 5, returned: 1 },
      restored: true,
      issued_at: 1_780_000_000,
      request: signing.kid,
    },
    request: {
      aud: leaseIssuer,
      jti: 'BBBBBBBBBBBBBBBBBBBBBB',
      act: 'renew',
      product_key: 'RGsF',
      license_key: '85DB562A-C11D4B06-A2335A6B-8C079166',
      seq: 2,
      challenge: 'CCCCCCCCCCCCCCCC',
      activation_id: 'act_01',
      nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
      device_name: 'Zoë’s laptop "1" \\ 2',
      uses: { recorded: 5, returned: 1 },
    },
    proof: { aud: 'RGsF', nonce: 'AAAAAAAAAAAAAAAAAAAAAA', lease_hash: signing.kid },
  };
}

/** Files get the rights of their modes, and belong to this user. */
export const ownFiles: Ownership = { owner: null, restrict: () => {} };

/** Sets an issuer up below a directory: its signing directory is `signing`, its root keys are in `roots`. */
export async function setUpIssuer(
  parent: string,
  now: number,
): Promise<SetUp & { directory: string; rootsDirectory: string; rootKeys: readonly [KeyPair, KeyPair] }> {
  const [directory, rootsDirectory] = [join(parent, 'signing'), join(parent, 'roots')];
  const made = await setUp({ directory, rootsDirectory, issuer: leaseIssuer }, now, ownFiles);
  const [first, second] = made.roots;
  const rootKeys = [await readKeyFile(first.privateFile), await readKeyFile(second.privateFile)] as const;
  return { ...made, directory, rootsDirectory, rootKeys };
}

export async function readKeyFile(path: string): Promise<KeyPair> {
  const pair = await readPrivateKey(readFileSync(path, 'utf8'));
  if (pair === null) throw new Error(`${path} has no private key`);
  return pair;
}
