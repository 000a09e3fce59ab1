import type { License } from '../../../domain/license.ts';
import type { StoredResponse } from '../../../service/tables.ts';

/** A stored response, and where it is stored. `until`: epoch ms. */
export type FoundResponse = StoredResponse & { credential: string; key: string; until: number };

/** What a seller changes about the buyers of licenses. It has no reads of its own: everything is in tables of the core. */
export interface CustomerReads {}
export interface CustomerTable extends CustomerReads {
  /** Moves the purchases and the history of a license to its new key, and disables the old key for ever. */
  replaceKey(from: string, to: string): void;
  /** Gives licenses another buyer, and counts as a change of each. */
  setBuyer(licenseKeys: readonly string[], buyerEmail: string): void;
  /**
   * The licenses of a person, of one account or of all (null), which stay locked until the end of the transaction. The
   * address is in lower-case letters.
   */
  licensesOf(buyerEmail: string, accountId: string | null): Pick<License, 'licenseKey' | 'buyerEmail'>[];
  /** The responses under idempotency keys, behind one of them. */
  responsesAfter(credential: string, key: string, limit: number): FoundResponse[];
}

declare module '../../../service/tables.ts' {
  interface Reader {
    customers: CustomerReads;
  }
  interface Transaction {
    customers: CustomerTable;
  }
}
