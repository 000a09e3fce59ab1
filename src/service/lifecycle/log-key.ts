import type { Random } from '../ports.ts';
import { newSecret } from '../access/secret.ts';
import type { Reader, Transaction } from '../tables.ts';

const setting = 'log_key';

/** The store's own secret, under which its log names license keys. */
export function logKey(reader: Reader): string {
  const secret = reader.settings.get(setting);
  if (secret === null) throw new Error('the store was not taken into use');
  return secret;
}

/** Makes the secret where there is none yet. */
export function keepLogKey({ settings }: Transaction, random: Random): void {
  if (settings.get(setting) === null) settings.set(setting, newSecret('lk_log', random));
}
