import type { Product } from '../../domain/product.ts';
import {
  nameOfCredential,
  type Credentials,
  type Grant,
  type KnownGrants,
  type SentCredential,
} from '../../service/access/credential.ts';
import { RecentReads } from './recent-reads.ts';
import { authorityLicensing } from '../../service/authority/answers.ts';
import type { Clock } from '../../service/ports.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import { authorityRole } from './authority.ts';
import type { Role, RoleParts } from './role.ts';

/** What a copy of an authority has read of credentials and products; never of licenses, and never to decide by. */
export class CopyMemory implements KnownGrants {
  readonly #grants: RecentReads<Grant>;
  readonly #products: RecentReads<Product>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#grants = new RecentReads(clock);
    this.#products = new RecentReads(clock);
  }

  forget(): void {
    this.#grants.forget();
    this.#products.forget();
  }

  remembering(credentials: Credentials): Credentials {
    return {
      find: (sent) => this.#grants.read(nameOfCredential(sent), () => credentials.find(sent)),
      use: (grant) => credentials.use(grant),
    };
  }

  grantOf(sent: SentCredential): Grant | null {
    return this.#grants.recall(nameOfCredential(sent));
  }

  /** A reader whose products may be remembered ones. */
  products(reader: AuthorityReader): AuthorityReader {
    const { products } = reader;
    const get: typeof products.get = (productKey) =>
      this.#products.read(productKey, () => products.get(productKey));
    return { ...reader, products: { ...products, get } };
  }
}

/** Builds one of the copies of an authority on one database, which verifies by one read of it. */
export function copyRole(parts: RoleParts & { reader: AuthorityReader; memory: CopyMemory }): Role {
  const { reader, writer, memory } = parts;
  // The database reads lists: nothing waits for them here.
  const role = authorityRole({ ...parts, lists: reader });
  const recent = memory.products(reader);
  return {
    ...role,
    licensing: authorityLicensing(recent, writer),
    productName: async (productKey) => (await recent.products.get(productKey))?.name ?? null,
  };
}
