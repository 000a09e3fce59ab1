import type { License, LicenseTrigger } from './license.ts';

/** The members of a license that changes modify. */
export type LicenseState = Pick<License, 'uses' | 'enabled'>;

/** How many changes of one license key are kept. */
export const maxHistoryEntries = 1_000;

/** One recorded change of a license. An agent records the change before the upstream has it. */
export type HistoryEntry = {
  licenseKey: string;
  /** Epoch ms. */
  at: number;
  change: LicenseTrigger;
  /** Who requested the change: the name of a credential (`Principal.credential`), never its secret. */
  credential: string;
  before: LicenseState;
  after: LicenseState;
};
