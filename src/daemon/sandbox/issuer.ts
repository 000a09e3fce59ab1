import { signingDirectoryOf } from '../../config/configuration.ts';
import type { SetUp } from '../../lease/signing-files.ts';
import { adminClient, dataOf, type LocalClient } from './server.ts';
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
  readonly #store: SandboxStore;
  readonly #directory: string;
  readonly #setUp: SetUp;

  private constructor(store: SandboxStore, directory: string, setUp: SetUp) {
    this.#store = store;
    this.#directory = directory;
    this.#setUp = setUp;
  }

  /**
   * Makes root keys and a signing key for a store that runs, or for an agent in front of it (`url`). The root keys go into
   * `DIRECTORY-roots`.
   */
  static async setUp(
    store: SandboxStore,
    { directory, time, url = store.url }: Pick<SandboxParts, 'directory' | 'time'> & { url?: string },
  ): Promise<SandboxIssuer> {
    const { setUp } = await import('../../lease/signing-files.ts');
    const place = {
      directory: signingDirectoryOf({ stateDir: directory, leases: { signingDir: null } }),
      rootsDirectory: `${directory}-roots`,
      issuer: url,
    };
    const made = await setUp(place, time.read().wall, { owner: null, restrict: () => undefined });
    return new SandboxIssuer(store, directory, made);
  }

  /** The issuer that a program has compiled in. */
  get issuer(): string {
    return this.#setUp.statement.issuer;
  }

  /** The root keys that a program has compiled in. */
  get roots(): readonly [SandboxRootKey, SandboxRootKey] {
    const [first, second] = this.#setUp.roots;
    return [first.jwk, second.jwk];
  }

  /** The files of the public root keys, for the configuration of a holder. */
  get rootFiles(): readonly string[] {
    return this.#setUp.roots.map(({ publicFile }) => publicFile);
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
