import type { DialectName } from '../../domain/dialect.ts';
import type { AdvancingTime } from './advancing-time.ts';

/** What the store and the agent of a sandbox have in common. */
export type SandboxParts = {
  time: AdvancingTime;
  dialect: DialectName;
  credentials: { productKey: string; productSecret: string; apiKey: string };
  directory: string;
};
