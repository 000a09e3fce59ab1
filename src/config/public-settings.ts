import type { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import { buyersSetting } from '../features/buyers/config/buyers.ts';

/** A setting that a feature has in `listen.public`. Its value is null unless it is given. */
type PublicSetting = {
  readonly name: string;
  readonly type: z.ZodType;
  /** The roles that have it. */
  readonly roles: readonly RoleName[];
};

/** The types of these settings. A feature adds its own. */
export interface PublicSettingsOfFeatures {}

export const publicSettings: readonly PublicSetting[] = [buyersSetting];
