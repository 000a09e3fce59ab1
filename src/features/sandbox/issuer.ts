import { join } from 'node:path';
import { signingDirectoryOf } from '../../config/configuration.ts';
import { adminClient, type LocalClient } from '../../daemon/local-client.ts';
import { dataOf } from './daemon.ts';
import type { SandboxParts, SandboxStore } from './store.ts';

/** The public part of a root key (JWK), as a program has it compiled in. */
export interface SandboxRootKey {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
}

/** The terms of leases. A missing one stays as it is. */
export interface SandboxLeaseTerms {
  /** Devices that may use a license at the same time; null: any number. */
  readonly seats?: number | null;
  /** How long a seat stays taken after the last lease of its device has expired. */
  readonly holdMs?: number;
  /** How long a lease is valid: at least a minute. */
  readonly termMs?: number;
  /** After which time a holder renews a lease: at least ten seconds. */
  readonly refreshMs?: number;
}

/** A device that has asked for a seat of a license. */
export interface SandboxActivation {
  readonly activationId: string;
  readonly deviceName: string | null;
  readonly state: 'active' | 'ended' | 'replaced' | 'blocked';
  /** Whether the device takes a seat now. */
  readonly hasSeat: boolean;
  /** Two copies of the state of the device seem to be in use. */
  readonly isCopied: boolean;
}

/** The store as the issuer of leases, with root keys of its own. */
export class SandboxIssuer {
  /** The issuer that a program has compiled in. */
  readonly issuer: string;
  /** The root keys that a program has compiled in. */
  readonly roots: readonly [SandboxRootKey, SandboxRootKey];
  /** The files of the public root keys, for the configuration of a holder. */
  readonly rootFiles: readonly string[];
  readonly #store: SandboxStore;
  readonly #directory: string;

  private constructor(
    store: SandboxStore,
    directory: string,
    { issuer, roots, rootFiles }: Pick<SandboxIssuer, 'issuer' | 'roots' | 'rootFiles'>,
  ) {
    this.#store = store;
    this.#directory = directory;
    this.issuer = issuer;
    this.roots = roots;
    this.rootFiles = rootFiles;
  }

  /**
   * Makes root keys and a signing key for a store that runs, or for an agent in front of it (`url`), unless an earlier
   * sandbox has made them. The root keys go into `DIRECTORY-roots`.
   */
  static async setUp(
    store: SandboxStore,
    { directory, time, url = store.url }: Pick<SandboxParts, 'directory' | 'time'> & { url?: string },
  ): Promise<SandboxIssuer> {
    const { setUp } = await import('../leases/issuer/signing-files.ts');
    const { readSigningDirectory } = await import('../leases/issuer/signing-keys.ts');
    const signing = signingDirectoryOf({ stateDir: directory, leases: { signingDir: null } });
    const rootsDirectory = `${directory}-roots`;
    if ((await readSigningDirectory(signing)).statement === null) {
      const place = { directory: signing, rootsDirectory, issuer: url };
      await setUp(place, time.read().wall, { owner: null, restrict: () => undefined });
    }
    const { statement, roots } = await readSigningDirectory(signing);
    const [first, second] = roots;
    if (statement === null || first === undefined || second === undefined)
      throw new Error(`${signing} has no key statement with two root keys.`);
    const rootFiles = [1, 2].map((number) => join(rootsDirectory, `root-${number}.pub.jwk`));
    return new SandboxIssuer(store, directory, {
      issuer: statement.issuer,
      roots: [first, second],
      rootFiles,
    });
  }

  /** Changes the terms of the leases of the product. */
  async setTerms({ seats, holdMs, termMs, refreshMs }: SandboxLeaseTerms): Promise<void> {
    const path = `/admin/v1/products/${encodeURIComponent(this.#store.credentials.productKey)}`;
    const { name, recurring, archived } = dataOf(await this.#admin().get(path));
    const terms = {
      ...(seats !== undefined && { seats: seats === null ? 'unlimited' : String(seats) }),
      ...(holdMs !== undefined && { lease_hold_s: seconds(holdMs) }),
      ...(termMs !== undefined && { lease_term_s: seconds(termMs) }),
      ...(refreshMs !== undefined && { lease_refresh_s: seconds(refreshMs) }),
    };
    const facts = { name: String(name), recurring: String(recurring), archived: String(archived) };
    dataOf(await this.#admin().putForm(path, { ...facts, ...terms }));
  }

  /** The devices that have asked for seats of a license. */
  async activations(licenseKey: string): Promise<SandboxActivation[]> {
    const query = new URLSearchParams({ license_key: licenseKey, limit: '100' }).toString();
    const data = dataOf(await this.#admin().get(`/admin/v1/activations?${query}`));
    return ((data['activations'] ?? []) as Record<string, unknown>[]).map((each) => ({
      activationId: String(each['activation_id']),
      deviceName: (each['device_name'] ?? null) as string | null,
      state: each['state'] as SandboxActivation['state'],
      hasSeat: each['has_seat'] === true,
      isCopied: each['copied_at'] !== null && each['copied_at'] !== undefined,
    }));
  }

  /** Ends an activation, which frees its seat. The device may take a seat again. */
  async endActivation(activationId: string): Promise<void> {
    await this.#change(activationId, 'end');
  }

  /** Blocks the device of an activation. It gets no lease of the license again. */
  async blockActivation(activationId: string): Promise<void> {
    await this.#change(activationId, 'block');
  }

  async #change(activationId: string, change: 'end' | 'block'): Promise<void> {
    const path = `/admin/v1/activations/${encodeURIComponent(activationId)}/${change}`;
    dataOf(await this.#admin().postJson(path, {}));
  }

  #admin(): LocalClient {
    return adminClient(this.#directory, this.#store.url);
  }
}

function seconds(ms: number): string {
  return String(Math.round(ms / 1000));
}
