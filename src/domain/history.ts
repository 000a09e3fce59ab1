import type { License, LicenseTrigger } from './license.ts';

/** What of a license its changes move. */
export type LicenseState = Pick<License, 'uses' | 'enabled'>;

/** How many changes of one license key are kept: the last ones. */
export const changesKept = 1_000;

/** One change of a license as it is remembered. On an agent: as it was recorded there, before the upstream had it. */
export type HistoryEntry = {
  licenseKey: string;
  /** Epoch ms. */
  at: number;
  change: LicenseTrigger;
  /** Who asked for it: the name of a credential (`Principal.credential`), never its secret. */
  credential: string;
  before: LicenseState;
  after: LicenseState;
};
