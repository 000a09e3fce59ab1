import type { Random } from '../ports.ts';
import { newSecret } from '../access/secret.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

const setting = 'log_key';

/** The secret with which license keys are hashed in the log of this store. */
export async function logKey({ settings }: AuthorityReader): Promise<string> {
  const secret = await settings.get(setting);
  if (secret === null) throw new Error('the store was not taken into use');
  return secret;
}

/** Makes the secret on the first start. */
export async function keepLogKey({ settings }: AuthorityTransaction, random: Random): Promise<void> {
  if ((await settings.get(setting)) === null) await settings.set(setting, newSecret('lk_log', random));
}
